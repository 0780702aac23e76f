"""Tests of every form of the dashboard as its routes declare it: required token, allowed origin, limits of contents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest

from catalog_api.dashboard.site import PAGES
from tests.catalog_api.dashboard.conftest import Browser, new_user, token_of

if TYPE_CHECKING:
    from tests.contract.conftest import Api

FORMS = sorted(re.sub(r"\{\w+:(int|str)\}", "1", path) for page in PAGES for path in page.paths if "POST" in page.http_methods)


def test_every_form_of_the_dashboard_is_found() -> None:
    assert len(FORMS) == 28


@pytest.mark.parametrize("path", FORMS)
def test_form_without_our_token_or_from_another_site_is_refused(browser: Browser, server: Api, path: str) -> None:
    token = browser.form_token()
    _, foreign = new_user(server.accounts)
    with httpx.Client(base_url=server.base, cookies={"dashboard": foreign}) as other:
        token_of_another = token_of(other.get("/dashboard").text)
    form = {"email": "a@example.org", "password": "p" * 12}
    good = {**form, "form_token": token}
    assert token_of_another != token
    http, address = browser.http, f"/dashboard{path}"
    refused = [
        http.post(address, data=form),
        http.post(address, data={**form, "form_token": ""}),
        http.post(address, data={**form, "form_token": token_of_another}),
        http.post(address, data={**form, "form_token": token[:-1] + "\N{SNOWMAN}"}),
        http.post(address, data=good, headers={"origin": "https://evil.example"}),
        http.post(address, data=good, headers={"origin": "null"}),
        http.post(address, data=good, headers={"origin": server.base + ".evil.example"}),
        http.post(address, json=good),
        http.post(address, files={"form_token": (None, token)}),
        httpx.post(server.base + address, data=good),
    ]
    assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert all("<h1>Forbidden</h1>" in answer.text for answer in refused)
    assert browser.accounts.users.find_session_user(browser.http.cookies["dashboard"]) == browser.user
    assert browser.accounts.keys.list_summaries(browser.user.account_id) == []


def test_form_of_our_own_page_is_accepted(browser: Browser, server: Api) -> None:
    answer = browser.post("/dashboard/keys", headers={"origin": server.base})
    assert answer.status_code == 200
    assert len(browser.accounts.keys.list_summaries(browser.user.account_id)) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"form_token=%(token)s&label=%%ff%%fe", 400),
        (b"form_token=%(token)s&label=a%%00b", 400),
        (b"form_token=%(token)s&label=a%%1bb", 400),
        (b"form_token=%(token)s&label=\xff", 400),
        (b"form_token=%(token)s" + b"&a=1" * 40, 400),
        (b"form_token=%(token)s&label=" + b"x" * 101, 400),
        (b"form_token=%(token)s&label=" + b"x" * 40_000, 413),
        (b"", 403),
    ],
)
def test_form_with_foreign_content_is_refused_and_creates_nothing(browser: Browser, body: bytes, status: int) -> None:
    content = body % {b"token": browser.form_token().encode()} if b"%(token)s" in body else body
    answer = browser.http.post("/dashboard/keys", content=content, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert browser.accounts.keys.list_summaries(browser.user.account_id) == []
