"""Tests of the pages of use: the request log with its filter, charts, errors, the CSV; and that an account sees its own only."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.catalog_api.dashboard.conftest import HOSTILE, Browser, Page, new_user
from tests.waiting import until

if TYPE_CHECKING:
    from tests.contract.conftest import Api


def log_requests(browser: Browser, count: int, *, status: int = 200, code: str | None = None, route: str = "/v1/tracks/{id}") -> None:
    """Log requests of one minute ago, with the ids r-0, r-1 and so on."""
    at = datetime.now(UTC).timestamp() - 60
    [key] = browser.accounts.keys.list_summaries(browser.user.account_id) or [None]
    key_id = key.key_id if key else 0
    browser.accounts.requests.add(
        [
            (browser.user.account_id, at + number / 1000, key_id, "GET", route, status, code, 1, 1500, f"r-{number}")
            for number in range(count)
        ]
    )


def test_request_over_the_api_appears_in_the_log(browser: Browser, server: Api) -> None:
    key = browser.key()
    answer = server.get("/v1/tracks/999999", key=key)
    request_id = answer.headers["x-request-id"]
    until(lambda: request_id in browser.http.get("/dashboard/requests").text, "the entry")
    page = Page(browser.http.get("/dashboard/requests", params={"code": "not_found"}).text)
    page.check()
    for text in ("GET /v1/tracks/{id}", "404", request_id, " ms"):
        assert text in page.text
    assert request_id not in browser.http.get("/dashboard/requests", params={"outcome": "success"}).text
    usage = browser.http.get("/dashboard/usage").text
    Page(usage).check()
    assert "/dashboard/requests?code=not_found" in usage


def test_log_is_paged(browser: Browser) -> None:
    browser.key()
    log_requests(browser, 120)
    place, seen = "", []
    for _ in range(3):
        html = browser.http.get(f"/dashboard/requests{place}").text
        page = Page(html)
        seen += re.findall(r"<code>(r-\d+)</code>", html)
        links = [attributes["href"] or "" for tag, attributes in page.tags if tag == "a" and "before=" in (attributes.get("href") or "")]
        place = links[0].removeprefix("/dashboard/requests") if links else ""
    assert seen == [f"r-{number}" for number in range(119, -1, -1)]
    assert place == ""


@pytest.mark.parametrize("query", ["before=x", "before=99999999999999999999-1", "key=x", "outcome=x", "route=%00", "id=" + "x" * 5000])
def test_nonsense_in_the_filter_is_no_error(browser: Browser, query: str) -> None:
    assert browser.http.get(f"/dashboard/requests?{query}").status_code == 200


def test_account_sees_its_own_requests_only(browser: Browser, server: Api) -> None:
    log_requests(browser, 3, status=404, code="not_found")
    _, token = new_user(server.accounts)
    for path in ("requests", "usage"):
        other = httpx.get(f"{server.base}/dashboard/{path}", cookies={"dashboard": token}).text
        assert "/v1/tracks/{id}" in browser.http.get(f"/dashboard/{path}").text
        assert "/v1/tracks/{id}" not in other


def test_charts_have_their_figures_in_tables(browser: Browser, server: Api) -> None:
    key = browser.key()
    log_requests(browser, 2000)
    log_requests(browser, 500, status=503, code="unavailable")
    server.get("/v1/tracks/1", key=key)
    page = Page(browser.http.get("/dashboard/usage").text)
    page.check()
    charts = [(place, attributes["aria-labelledby"]) for place, (tag, attributes) in enumerate(page.tags) if tag == "svg"]
    assert [label for _, label in charts] == ["credits", "requests legend"]
    hours = page.tags[charts[1][0] :]
    assert max(float(one["height"] or 0) for tag, one in hours if tag == "rect" and one["class"] == "success") == pytest.approx(80, abs=1)
    assert "2,500" in page.text or "2,501" in page.text
    assert "1.5 ms" in page.text


def test_csv_has_the_days_and_keys_of_the_statement(browser: Browser, server: Api) -> None:
    key = browser.key()
    for track in (1, 2):
        assert server.get(f"/v1/tracks/{track}", key=key).status_code == 200
    answer = browser.http.get("/dashboard/usage.csv")
    [row] = csv.DictReader(io.StringIO(answer.text))
    [made] = browser.accounts.keys.list_summaries(browser.user.account_id)
    assert row == {
        "day": str(datetime.now(UTC).date()),
        "key_id": str(made.key_id),
        "key_prefix": key[:10],
        "credits": "2",
        "requests": "2",
    }
    assert answer.headers["content-disposition"].startswith('attachment; filename="usage_20')
    assert browser.http.get("/dashboard/usage.csv?month=2025-01").text == "day,key_id,key_prefix,credits,requests\r\n"


@pytest.mark.parametrize("month", ["2025-13", "1999-01", "x", HOSTILE])
def test_month_of_another_form_is_refused(browser: Browser, month: str) -> None:
    for path in ("usage", "usage.csv"):
        answer = browser.http.get(f"/dashboard/{path}", params={"month": month})
        assert answer.status_code == 400
        Page(answer.text).check()
