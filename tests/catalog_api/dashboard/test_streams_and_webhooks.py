"""Tests of the pages of streams and webhooks. The pages of other accounts answer as if they did not exist."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from account_store.streams import airings, runtime
from account_store.streams.stream_tables import stream
from tests.catalog_api.dashboard.conftest import HOSTILE, Browser, Page, new_user
from tests.contract.conftest import UNHURRIED

if TYPE_CHECKING:
    from tests.contract.conftest import Api

PUBLIC = "http://93.184.215.14:8000/live.mp3"
FORM = {"url": PUBLIC, "name": "Radio Amber", "once": "1"}


@pytest.fixture
def radio(browser: Browser) -> Browser:
    """With a card on file and a key, and in no hurry about rates."""
    browser.accounts.change_plan(browser.user.account_id, "custom", terms=UNHURRIED)
    browser.accounts.set_card(browser.user.account_id, has_card=True)
    browser.key()
    return browser


def new_stream(radio: Browser, name: str = "Radio Amber", url: str = PUBLIC) -> str:
    return radio.accounts.streams.create(radio.user.account_id, url, name).stream_id


def air(radio: Browser, stream_id: str, recording_id: int, start: datetime, *, ended: bool = True) -> None:
    begins = int(start.timestamp() * 1000)
    with radio.accounts.engine.begin() as connection:
        track = airings.PlayedTrack(recording_id, HOSTILE, HOSTILE, None, 200)
        airings.start(connection, stream_id, track, airings.Hearing(begins, begins, begins + 60_000, 0.9, 3))
        if ended:
            airings.close_open(connection, stream_id)


def test_stream_form_sent_twice_creates_one_stream(radio: Browser) -> None:
    for _ in range(2):
        answer = radio.post("/dashboard/streams", FORM)
        assert answer.status_code == 303
    [made] = radio.accounts.streams.read_page(radio.user.account_id)
    assert answer.headers["location"] == f"/dashboard/streams/{made.stream_id}"
    assert radio.accounts.usage.read_month_now(radio.user.account_id).used == 0


def test_on_air_lists_what_active_streams_play_known_tracks_first(radio: Browser) -> None:
    now = datetime.now(UTC)
    names = {name: new_stream(radio, name, f"{PUBLIC}?{name}") for name in ("Amber", "Birch", "Cedar", "Dune")}
    radio.accounts.streams.stop(radio.user.account_id, names["Dune"])
    air(radio, names["Birch"], 1, now - timedelta(seconds=60), ended=False)
    with radio.accounts.engine.begin() as connection:
        for name in ("Birch", "Cedar"):
            runtime.update_runtime(connection, names[name], runtime.State("running"), now)
    page = Page(radio.http.get("/dashboard/streams/on-air").text)
    page.check()
    places = [page.text.index(text) for text in ("Birch", "Midnight Running", "Amber", "nobody listens", "Cedar", "unrecognized")]
    assert places == sorted(places)
    assert "Dune" not in page.text


def test_account_without_a_card_cannot_monitor_and_the_page_gives_the_reason(browser: Browser) -> None:
    browser.key()
    assert "no payment card" in browser.http.get("/dashboard/streams/new").text
    answer = browser.post("/dashboard/streams", FORM)
    assert (answer.status_code, "no payment card" in answer.text) == (403, True)
    assert browser.accounts.streams.read_page(browser.user.account_id) == []


def test_problem_of_a_stream_is_shown_at_its_field(radio: Browser) -> None:
    answer = radio.post("/dashboard/streams", {"url": "http://127.0.0.1/live", "name": "", "once": "1"})
    assert answer.status_code == 400
    assert 'id="name-problem"' in answer.text
    answer = radio.post("/dashboard/streams", {"url": "http://127.0.0.1/live", "name": HOSTILE, "once": "2"})
    assert 'id="url-problem"' in answer.text
    page = Page(answer.text)
    page.check()
    assert "http://127.0.0.1/live" in [attributes.get("value") for _, attributes in page.tags], "what was typed stays"


def test_streams_of_other_accounts_are_not_found(radio: Browser, server: Api) -> None:
    other, _ = new_user(server.accounts)
    theirs = server.accounts.streams.create(other.account_id, PUBLIC, "Theirs").stream_id
    for identity in (theirs, str(uuid.uuid4()), "x", "..%2F..%2Fusage", "%00", "é"):
        assert radio.http.get(f"/dashboard/streams/{identity}").status_code in {400, 404}, identity
        assert radio.post(f"/dashboard/streams/{identity}/stop").status_code in {400, 404}, identity
    assert "Theirs" not in radio.http.get("/dashboard/streams").text
    assert server.accounts.streams.get(other.account_id, theirs).status == "active"


def test_stream_page_draws_a_day_and_links_to_another(radio: Browser) -> None:
    stream_id = new_stream(radio)
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=3)
    air(radio, stream_id, 1, noon)
    air(radio, stream_id, 5_000_000, noon + timedelta(minutes=5))
    page = radio.http.get(f"/dashboard/streams/{stream_id}", params={"day": str(noon.date())})
    Page(page.text).check()
    assert re.findall(r'class="(?:odd|even)" x="([\d.]+)" y="4" width="([\d.]+)"', page.text) == [("720.00", "1.00"), ("725.00", "1.00")]
    assert "Midnight Running" in page.text
    assert HOSTILE in Page(page.text).text, "a track that left the catalog is called as it was then"
    assert 'http-equiv="refresh"' not in page.text, "a day that is over does not change"
    for day in ("", "yesterday", "2026-99-99", "9999-12-31", "0001-01-01"):
        assert radio.http.get(f"/dashboard/streams/{stream_id}", params={"day": day}).status_code == 200, day


def test_stream_page_shows_the_airing_and_the_reason_of_a_gap(radio: Browser) -> None:
    stream_id = new_stream(radio, HOSTILE)
    with radio.accounts.engine.begin() as connection:
        runtime.update_runtime(connection, stream_id, runtime.State("running"), datetime.now(UTC))
    air(radio, stream_id, 1, datetime.now(UTC) - timedelta(seconds=60), ended=False)
    for path in ("/dashboard/streams", f"/dashboard/streams/{stream_id}"):
        page = radio.http.get(path).text
        assert "Midnight Running" in page
        assert '<meta http-equiv="refresh" content="20">' in page
        assert 'http-equiv="refresh"' not in radio.http.get(path, params={"still": "1"}).text
        Page(page).check()
    with radio.accounts.engine.begin() as connection:
        runtime.update_runtime(connection, stream_id, runtime.State("failed", f"HTTP 404 {HOSTILE}"), datetime.now(UTC))
    page = radio.http.get("/dashboard/streams").text
    assert "nobody listens" in page
    assert "HTTP 404" in page
    Page(page).check()


def test_report_file_holds_only_the_account(radio: Browser, server: Api) -> None:
    stream_id = new_stream(radio)
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=3)
    with radio.accounts.engine.begin() as connection:
        connection.execute(stream.update().where(stream.c.stream_id == stream_id).values(created_at=noon - timedelta(days=9)))
    air(radio, stream_id, 1, noon)
    days = {"from": str(noon.date()), "until": str(noon.date()), "timezone": "UTC"}
    page = radio.http.get("/dashboard/streams/report", params=days)
    links = [
        attributes["href"] or "" for tag, attributes in Page(page.text).tags if tag == "a" and "/report/file" in (attributes["href"] or "")
    ]
    assert len(links) == 3
    for link, kind in zip(links, ("text/csv", "application/vnd.apache.parquet", "application/json"), strict=True):
        answer = radio.http.get(link)
        assert answer.headers["content-type"].startswith(kind)
        assert answer.headers["content-disposition"].startswith("attachment")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert stream_id.encode() in answer.content
    other, token = new_user(server.accounts)
    assert other.account_id != radio.user.account_id
    radio.http.cookies.set("dashboard", token, domain="127.0.0.1", path="/")
    assert stream_id not in radio.http.get(links[0]).text
    refused = radio.http.get("/dashboard/streams/report", params={**days, "until": "2199-01-01", "timezone": HOSTILE})
    assert (refused.status_code, "Such as" in refused.text) == (400, True)
    Page(refused.text).check()
    assert radio.http.get("/dashboard/streams/report/file").status_code == 400
    radio.http.cookies.clear()
    assert radio.http.get(links[0]).status_code == 303


def test_new_webhook_shows_its_secret_once(radio: Browser) -> None:
    answer = radio.post(
        "/dashboard/webhooks", {"url": "https://93.184.215.14/hook", "description": HOSTILE, "event catalog.published": "yes"}
    )
    shown = re.search(r'id="new-secret">(whsec_[^<]+)<', answer.text)
    assert shown
    [made] = radio.accounts.webhooks.list_all(radio.user.account_id)
    assert (made.url, made.event_types) == ("https://93.184.215.14/hook", ("catalog.published",))
    for path in ("/dashboard/webhooks", f"/dashboard/webhooks/{made.endpoint_id}"):
        page = radio.http.get(path).text
        assert shown[1] not in page
        Page(page).check()


def test_webhook_is_pinged_switched_and_deleted(radio: Browser) -> None:
    made = radio.accounts.webhooks.create(radio.user.account_id, "https://93.184.215.14/hook", (), HOSTILE, is_vetted=True).endpoint
    place = f"/dashboard/webhooks/{made.endpoint_id}"
    assert radio.post(f"{place}/ping").headers["location"] == place
    page = radio.http.get(place).text
    [number] = re.findall(rf"{place}/deliveries/(\d+)", page)
    delivery = radio.http.get(f"{place}/deliveries/{number}")
    assert "webhook.ping" in delivery.text
    Page(delivery.text).check()
    assert radio.post(f"{place}/deliveries/{number}/replay").headers["location"] == place
    assert radio.post(f"{place}/replay", {"hours": "24"}).headers["location"] == place
    assert "whsec_" in radio.post(f"{place}/rotate", {"overlap": "24"}).text
    assert radio.post(f"{place}/status", {"status": "disabled"}).status_code == 303
    refused = radio.post(f"{place}/ping")
    assert (refused.status_code, "disabled" in refused.text) == (409, True)
    assert radio.post(f"{place}/status", {"status": "nonsense"}).status_code == 400
    assert radio.post(f"{place}/delete").headers["location"] == "/dashboard/webhooks"
    assert radio.http.get(place).status_code == 404


def test_webhooks_of_other_accounts_are_not_found(radio: Browser, server: Api) -> None:
    other, _ = new_user(server.accounts)
    theirs = server.accounts.webhooks.create(other.account_id, "https://93.184.215.14/theirs", (), "", is_vetted=True).endpoint
    sent = server.accounts.deliveries.ping(other.account_id, theirs.endpoint_id)
    mine = server.accounts.webhooks.create(radio.user.account_id, "https://93.184.215.14/mine", (), "", is_vetted=True).endpoint
    for place in (theirs.endpoint_id, str(uuid.uuid4()), "x", "..%2Fusage"):
        assert radio.http.get(f"/dashboard/webhooks/{place}").status_code in {400, 404}
        for action in ("ping", "status", "delete", "rotate", "replay", f"deliveries/{sent.delivery_id}/replay"):
            answer = radio.post(f"/dashboard/webhooks/{place}/{action}", {"status": "disabled", "hours": "1"})
            assert answer.status_code in {400, 404}, (place, action)
    assert radio.http.get(f"/dashboard/webhooks/{mine.endpoint_id}/deliveries/{sent.delivery_id}").status_code == 404
    assert server.accounts.webhooks.get(other.account_id, theirs.endpoint_id).is_enabled
