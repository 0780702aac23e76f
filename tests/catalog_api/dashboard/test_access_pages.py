"""Tests of password resets by mail, with a real SMTP server on loopback, and of the second factor."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from account_store.accounts import Accounts
from account_store.clock import read_utc_time
from account_store.second_factor import STEP_SECONDS, compute_code
from account_store.users import RESETS_OF_EMAIL
from catalog_api.settings import ApiSettings
from tests.catalog_api.dashboard.conftest import PASSWORD, Browser, Page, new_user, token_of
from tests.catalog_api.dashboard.test_settings_and_errors import running
from tests.mail_server import mail_server
from tests.migrated_databases import make_migrated_file
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    import httpx

    from tests.mail_server import MailServer

ORIGIN = "http://catalog.example.org"
SENT = "If this e-mail has an account, a mail with a link is on its way."


def with_mails(place: Path, server: str, scene: Callable[[httpx.AsyncClient], Awaitable[None]], origin: str = ORIGIN) -> None:
    """Run the scene over an application that sends mails through `server`."""
    made = {"accounts_url": f"sqlite:///{place}/accounts.db", "jobs_folder": place / "jobs", "catalog": place / "catalog"}
    settings = ApiSettings(**made, mail_server=server, mail_sender="catalog@example.org", dashboard_origin=origin)

    async def run() -> None:
        async with running(settings) as client:
            await scene(client)

    asyncio.run(run())


async def ask(client: httpx.AsyncClient, email: str, **headers: str) -> httpx.Response:
    token = token_of((await client.get("/dashboard/forgot")).text)
    return await client.post("/dashboard/forgot", data={"form_token": token, "email": email}, headers=headers)


async def set_password(client: httpx.AsyncClient, link: str, password: str) -> httpx.Response:
    page = await client.get(link)
    assert page.status_code == 200
    Page(page.text).check()
    [token] = re.findall(r"token=([\w-]+)", link)
    return await client.post("/dashboard/reset", data={"form_token": token_of(page.text), "token": token, "password": password})


def read_link(server: MailServer) -> str:
    [link] = re.findall(r"http\S+/dashboard/\S+", server.messages[-1].get_content())
    return str(link)


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    opened = Accounts.open(make_migrated_file(tmp_path))
    opened.close()
    return opened


def test_link_of_a_mail_sets_another_password_once_and_ends_sessions(tmp_path: Path, accounts: Accounts) -> None:
    user, session = new_user(accounts)

    async def scene(client: httpx.AsyncClient) -> None:
        answer = await ask(client, user.email.upper())
        assert (answer.status_code, SENT in answer.text) == (200, True)
        [mail] = server.messages
        assert (mail["to"], mail["from"]) == (user.email, "catalog@example.org")
        link = read_link(server)
        assert link.startswith(f"{ORIGIN}/dashboard/reset?token=")
        refused = await set_password(client, link, "short")
        assert (refused.status_code, "10 to 256 characters" in refused.text) == (400, True)
        assert (await set_password(client, link, "another password")).status_code == 303
        assert (await client.get(link)).status_code == 410
        assert accounts.users.find_session_user(session) is None
        assert accounts.users.sign_in(user.email, "another password").user == user

    with mail_server() as server:
        with_mails(tmp_path, server.url, scene)
        assert len(server.messages) == 1


def test_unknown_email_gets_the_same_answers_and_no_mail(tmp_path: Path, accounts: Accounts) -> None:
    user, _ = new_user(accounts)

    async def scene(client: httpx.AsyncClient) -> None:
        answers = {email: [await ask(client, email) for _ in range(RESETS_OF_EMAIL + 1)] for email in (user.email, "nobody@example.org")}
        seen = [[(one.status_code, re.sub(r'value="\w+"', "", one.text)) for one in some] for some in answers.values()]
        assert seen[0] == seen[1]
        assert [status for status, _ in seen[0]] == [200] * RESETS_OF_EMAIL + [429]

    with mail_server() as server:
        with_mails(tmp_path, server.url, scene)
        assert {mail["to"] for mail in server.messages} == {user.email}


def test_link_names_the_operators_site_whatever_the_host_header_says(tmp_path: Path, accounts: Accounts) -> None:
    user, _ = new_user(accounts)

    async def scene(client: httpx.AsyncClient) -> None:
        await ask(client, user.email, host="evil.example", **{"x-forwarded-host": "evil.example"})
        assert read_link(server).startswith(ORIGIN)

    with mail_server() as server:
        with_mails(tmp_path, server.url, scene)


@pytest.mark.parametrize("setting", ["origin", "server"])
def test_without_mail_server_or_origin_nothing_is_sent(tmp_path: Path, accounts: Accounts, setting: str) -> None:
    user, _ = new_user(accounts)

    async def scene(client: httpx.AsyncClient) -> None:
        page = await client.get("/dashboard/forgot")
        assert "sends no mails" in page.text
        token = token_of((await client.get("/dashboard/sign-in")).text)
        assert (await client.post("/dashboard/forgot", data={"form_token": token, "email": user.email})).status_code == 403

    with mail_server() as server:
        with_mails(tmp_path, "" if setting == "server" else server.url, scene, "" if setting == "origin" else ORIGIN)
        assert server.messages == []


def test_silent_mail_server_changes_no_answer_and_no_email_reaches_the_log(
    tmp_path: Path, accounts: Accounts, caplog: pytest.LogCaptureFixture
) -> None:
    user, _ = new_user(accounts)

    async def scene(client: httpx.AsyncClient) -> None:
        assert SENT in (await ask(client, user.email)).text

    with_mails(tmp_path, f"smtp://127.0.0.1:{free_port()}", scene)
    assert "could not be sent: ConnectionRefusedError" in caplog.text
    assert user.email not in caplog.text


def code_of(secret: str, steps: int = 0) -> str:
    return compute_code(secret, int(read_utc_time().timestamp()) // STEP_SECONDS + steps)


def test_second_factor_from_setting_it_up_to_switching_it_off(browser: Browser) -> None:
    other = browser.accounts.users.sign_in(browser.user.email, PASSWORD).token
    assert browser.post("/dashboard/second-factor/begin").status_code == 303
    page = browser.http.get("/dashboard/second-factor").text
    [shown] = re.findall(r'id="app-secret">([A-Z2-7 ]+)<', page)
    secret = shown.replace(" ", "")
    assert f"secret={secret}" in page
    wrong = browser.post("/dashboard/second-factor/confirm", {"code": "12"})
    assert (wrong.status_code, "This code is wrong" in wrong.text) == (400, True)
    made = browser.post("/dashboard/second-factor/confirm", {"code": code_of(secret)})
    codes = re.findall(r"<li><code>([a-z2-7-]+)</code>", made.text)
    assert len(codes) == 10
    Page(made.text).check()
    page = browser.http.get("/dashboard/second-factor").text
    assert codes[0] not in page
    assert secret not in page.replace(" ", "")
    assert browser.accounts.users.find_session_user(other) is None
    browser.post("/dashboard/sign-out")
    waiting = give_password(browser.http, browser.user.email)
    refused = give_code(browser.http, waiting, "000000")
    assert (refused.status_code, browser.http.get("/dashboard").status_code) == (401, 303)
    assert give_code(browser.http, waiting, code_of(secret, 1)).headers["location"] == "/dashboard/usage"
    assert browser.http.get("/dashboard").status_code == 200
    assert give_code(browser.http, waiting, code_of(secret, 1)).headers["location"] == "/dashboard/sign-in"
    assert give_code(browser.http, give_password(browser.http, browser.user.email), codes[1].upper()).status_code == 303
    assert browser.post("/dashboard/second-factor/off", {"password": "not my password"}).status_code == 401
    assert browser.accounts.second_factor.is_on(browser.user.user_id)
    assert browser.post("/dashboard/second-factor/off", {"password": PASSWORD}).status_code == 303
    assert browser.accounts.users.sign_in(browser.user.email, PASSWORD).user == browser.user


def give_password(http: httpx.Client, email: str) -> str:
    """Sign in with the password alone; return the token that waits for a code."""
    token = token_of(http.get("/dashboard/forgot").text + http.get("/dashboard/sign-up").text + http.get("/dashboard").text)
    form = {"form_token": token, "email": email, "password": PASSWORD, "next": "/dashboard/usage"}
    answer = http.post("/dashboard/sign-in", data=form)
    Page(answer.text).check()
    [waiting] = re.findall(r'name="waiting" value="([\w-]+)"', answer.text)
    return str(waiting)


def give_code(http: httpx.Client, waiting: str, code: str) -> httpx.Response:
    token = token_of(http.get("/dashboard/sign-in").text + http.get("/dashboard").text)
    form = {"form_token": token, "waiting": waiting, "code": code, "next": "/dashboard/usage"}
    return http.post("/dashboard/sign-in/code", data=form)


def test_password_change_with_a_second_factor_asks_for_no_code(browser: Browser) -> None:
    secret = browser.accounts.second_factor.begin(browser.user)
    browser.accounts.second_factor.confirm(browser.user, code_of(secret))
    answer = browser.post("/dashboard/password", {"present": PASSWORD, "following": "another password"})
    assert answer.status_code == 303
    assert browser.http.get("/dashboard").status_code == 200
    assert browser.accounts.second_factor.is_on(browser.user.user_id)
