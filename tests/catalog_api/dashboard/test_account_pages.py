"""Tests of signing up, in and out: cookies, sessions, and equal answers for known and unknown users."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx
import pytest

from account_store.schema import dashboard_session
from account_store.users import ATTEMPTS
from catalog_api.dashboard.site import PAGES
from tests.catalog_api.dashboard.conftest import PASSWORD, Browser, new_user, token_of

if TYPE_CHECKING:
    from tests.contract.conftest import Api

OPEN = {"/sign-in", "/sign-up", "/forgot", "/reset", "/invitation", "/style.css", "/icon.svg"}
PRIVATE = sorted(
    re.sub(r"\{\w+:(int|str)\}", "1", path) for page in PAGES for path in page.paths if "GET" in page.http_methods and ":path" not in path
)


def sign_in(visitor: httpx.Client, email: str, password: str = PASSWORD, **form: str) -> httpx.Response:
    token = token_of(visitor.get("/dashboard/sign-in").text)
    return visitor.post("/dashboard/sign-in", data={"form_token": token, "email": email, "password": password, **form})


@pytest.mark.parametrize("path", sorted(set(PRIVATE) - OPEN))
def test_pages_need_a_signed_in_user(visitor: httpx.Client, path: str) -> None:
    answer = visitor.get(f"/dashboard{path}".rstrip("/"))
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/dashboard/sign-in")


def test_root_redirects_to_the_dashboard(visitor: httpx.Client) -> None:
    answer = visitor.get("/")
    assert (answer.status_code, answer.headers["location"]) == (302, "/dashboard")


def test_sign_up_signs_in_and_gives_the_free_plan(visitor: httpx.Client, server: Api) -> None:
    token = token_of(visitor.get("/dashboard/sign-up").text)
    answer = visitor.post("/dashboard/sign-up", data={"form_token": token, "email": "New@Example.org", "password": PASSWORD})
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard")
    assert "new@example.org" in visitor.get("/dashboard").text
    assert server.accounts.find_by_name("new@example.org").plan.name == "free"
    with httpx.Client(base_url=server.base) as other:
        token = token_of(other.get("/dashboard/sign-up").text)
        taken = other.post("/dashboard/sign-up", data={"form_token": token, "email": "new@example.org", "password": PASSWORD})
        assert taken.status_code == 409


@pytest.mark.parametrize(
    ("email", "password", "messages"),
    [
        ("password", "nonsense9", ["Not an e-mail address.", "A password must have 10 to 256 characters, got 9."]),
        ("password", PASSWORD, ["Not an e-mail address."]),
        ("brief@example.org", "nonsense9", ["A password must have 10 to 256 characters, got 9."]),
    ],
)
def test_sign_up_names_all_wrong_fields_at_once(visitor: httpx.Client, email: str, password: str, messages: list[str]) -> None:
    token = token_of(visitor.get("/dashboard/sign-up").text)
    wrong = visitor.post("/dashboard/sign-up", data={"form_token": token, "email": email, "password": password})
    assert wrong.status_code == 400
    assert wrong.text.count('aria-invalid="true"') == len(messages)
    assert all(line in wrong.text for line in messages)
    assert f'value="{email}"' in wrong.text
    assert password not in wrong.text


def test_cookies_are_hidden_from_scripts_and_other_sites(visitor: httpx.Client, server: Api) -> None:
    user, _ = new_user(server.accounts)
    before = visitor.get("/dashboard/sign-in").headers["set-cookie"]
    after = sign_in(visitor, user.email).headers["set-cookie"]
    for cookie in (before, after):
        assert "HttpOnly" in cookie
        assert "samesite=lax" in cookie.lower()
        assert "Path=/" in cookie
        assert "domain" not in cookie.lower()
    assert "Max-Age=1209600" in after
    assert "Secure" not in after


def test_over_https_cookies_are_secure_and_bound_to_the_host(server: Api) -> None:
    user, _ = new_user(server.accounts)
    over_https = {"x-forwarded-proto": "https"}
    with httpx.Client(base_url=server.base, headers=over_https) as visitor:
        page = visitor.get("/dashboard/sign-in")
        held = {"cookie": page.headers["set-cookie"].partition(";")[0]}
        form = {"form_token": token_of(page.text), "email": user.email, "password": PASSWORD}
        answer = visitor.post("/dashboard/sign-in", data=form, headers=held)
    for cookie in (page.headers["set-cookie"], answer.headers["set-cookie"]):
        assert cookie.startswith("__Host-dashboard=")
        assert "Secure" in cookie


def test_planted_cookie_never_becomes_a_session(visitor: httpx.Client, server: Api) -> None:
    user, _ = new_user(server.accounts)
    visitor.cookies.set("dashboard", "planted", domain="127.0.0.1", path="/")
    assert sign_in(visitor, user.email).status_code == 303
    assert visitor.cookies["dashboard"] != "planted"
    assert visitor.get("/dashboard").status_code == 200
    assert httpx.get(f"{server.base}/dashboard", cookies={"dashboard": "planted"}).status_code == 303


def test_new_sign_in_and_sign_out_end_the_session_on_the_server(browser: Browser, server: Api) -> None:
    first = browser.http.cookies["dashboard"]
    other, _ = new_user(server.accounts)
    token = browser.form_token()
    browser.http.post("/dashboard/sign-in", data={"form_token": token, "email": other.email, "password": PASSWORD})
    second = browser.http.cookies["dashboard"]
    assert server.accounts.users.find_session_user(first) is None
    assert browser.post("/dashboard/sign-out").headers["location"] == "/dashboard/sign-in"
    for ended in (first, second):
        assert httpx.get(f"{server.base}/dashboard", cookies={"dashboard": ended}).status_code == 303


def test_session_expires_and_is_valid_on_every_worker(browser: Browser, server: Api) -> None:
    for _ in range(8):
        assert httpx.get(f"{server.base}/dashboard", cookies={"dashboard": browser.http.cookies["dashboard"]}).status_code == 200
    with server.accounts.engine.begin() as connection:
        change = dashboard_session.update().where(dashboard_session.c.user_id == browser.user.user_id)
        connection.execute(change.values(expires_at=datetime.now(UTC)))
    assert browser.http.get("/dashboard").status_code == 303


def test_unknown_email_and_wrong_password_get_the_same_answer_and_are_limited(visitor: httpx.Client, server: Api) -> None:
    user, _ = new_user(server.accounts)
    unknown = "nobody@example.org"
    answers = {email: sign_in(visitor, email, "wrong password") for email in (user.email, unknown)}
    pages = {email: answer.text.replace(email, "") for email, answer in answers.items()}
    assert pages[user.email] == pages[unknown]
    assert {answer.status_code for answer in answers.values()} == {401}
    for email in (user.email, unknown):
        for _ in range(ATTEMPTS - 1):
            sign_in(visitor, email, "wrong password")
        refused = sign_in(visitor, email, PASSWORD)
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 900


@pytest.mark.parametrize(
    ("wanted", "led_to"),
    [
        ("/dashboard/tracks/1?x=%2F", "/dashboard/tracks/1?x=%2F"),
        ("//evil.example", "/dashboard"),
        ("https://evil.example/dashboard", "/dashboard"),
        ("/dashboard.evil.example", "/dashboard"),
        ("/dashboard/../v1", "/dashboard"),
        ("/dashboard\r\nset-cookie: a=b", "/dashboard"),
    ],
)
def test_sign_in_redirects_only_inside_the_dashboard(visitor: httpx.Client, server: Api, wanted: str, led_to: str) -> None:
    user, _ = new_user(server.accounts)
    assert sign_in(visitor, user.email, next=wanted).headers["location"] == led_to


def test_sign_in_leads_to_the_page_that_was_requested_before(visitor: httpx.Client, server: Api) -> None:
    user, _ = new_user(server.accounts)
    address = visitor.get("/dashboard/search?artist=a+b&title=%C3%A9").headers["location"]
    page = visitor.get(address).text
    found = re.search(r'name="next" value="([^"]*)"', page)
    assert found
    answer = sign_in(visitor, user.email, next=found[1].replace("&amp;", "&"))
    assert answer.headers["location"] == "/dashboard/search?artist=a+b&title=%C3%A9"


def test_password_change_needs_the_present_one_and_ends_other_sessions(browser: Browser, server: Api) -> None:
    elsewhere = server.accounts.users.sign_in(browser.user.email, PASSWORD).token
    wrong = browser.post("/dashboard/password", {"present": "not my password", "following": "another password"})
    assert wrong.status_code == 401
    short = browser.post("/dashboard/password", {"present": PASSWORD, "following": "short"})
    assert short.status_code == 400
    done = browser.post("/dashboard/password", {"present": PASSWORD, "following": "another password"})
    assert done.status_code == 303
    assert browser.http.get("/dashboard").status_code == 200
    assert server.accounts.users.find_session_user(elsewhere) is None
    assert server.accounts.users.sign_in(browser.user.email, "another password").user == browser.user


def test_the_api_takes_no_cookies(browser: Browser) -> None:
    key = browser.key()
    assert browser.http.get("/v1/usage").status_code == 401
    answer = browser.http.get("/v1/usage", headers={"x-api-key": key})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
