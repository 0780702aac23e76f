"""Section G of the contract, live streams: registration, status, what plays now, history, limits."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from account_store.streams.segments import SegmentLog
from account_store.streams.stream_tables import stream
from catalog_api.metering import format_timestamp
from catalog_api.routes.streams import encode_place
from catalog_store.cursors import CursorCodec, Place
from tests.contract.awkward import MERGED, RETIRED, isrc
from tests.contract.conftest import Api, problem
from tests.contract.stream_callers import NOON, PUBLIC, REPORT, STREAMS, TIMESTAMP, account_of, air, new_stream, tell, with_card


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


def test_g1_other_errors_are_named_at_once(radio: Api) -> None:
    assert problem(radio.post(STREAMS, {})) == (400, "invalid_parameter", ["url", "name"])
    assert problem(radio.post(STREAMS, {"url": PUBLIC, "name": " "}))[2] == ["name"]
    assert problem(radio.post(STREAMS, {"url": PUBLIC, "name": "x" * 201}))[2] == ["name"]
    assert problem(radio.post(STREAMS, {"url": "http://93.184.215.14/" + "x" * 2000, "name": "x"}))[2] == ["url"]
    assert problem(radio.request("POST", STREAMS, content=b"{}", headers={"content-type": "text/plain"}))[1] == "unsupported_media_type"


def test_g1_a_name_that_does_not_resolve_now_is_taken_and_marked(radio: Api) -> None:
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


def test_g2_statuses_are_those_of_the_contract_and_the_last_error_is_shown(radio: Api) -> None:
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


def test_g3_g5_sealed_cursors_with_invalid_places_are_refused(radio: Api) -> None:
    stream_id = new_stream(radio)
    sealed = CursorCodec().encode(("streams", str(account_of(radio))), encode_place(str(uuid.uuid4())))
    assert radio.refused(STREAMS, cursor=sealed)[:2] == (400, "invalid_cursor")
    for second in (datetime.max.replace(tzinfo=UTC).timestamp() + 1, 2.0**52):
        sealed = CursorCodec().encode(("airings", stream_id), Place(second, 0, 1))
        assert radio.refused(f"{STREAMS}/{stream_id}/history", cursor=sealed)[:2] == (400, "invalid_cursor")
    latest = CursorCodec().encode(("airings", stream_id), Place(253_402_300_799, 0, 1))
    assert radio.ask(f"{STREAMS}/{stream_id}/history", cursor=latest)["results"] == []


def test_g3_a_changed_stream_keeps_its_id_and_history_and_says_what_changed(radio: Api) -> None:
    stream_id = new_stream(radio)
    air(radio, stream_id, 1, datetime.now(UTC) - timedelta(seconds=300))
    before = radio.ask(f"{STREAMS}/{stream_id}")
    assert (before["detection_mode"], before["linger_seconds"]) == ("balanced", 30)
    changes = {"url": "http://93.184.215.14:8000/moved", "detection_mode": "strict", "linger_seconds": 90, "name": None}
    changed = radio.request("PUT", f"{STREAMS}/{stream_id}", json=changes)
    assert changed.status_code == 200, changed.text
    assert changed.json() == {**before, **changes, "name": before["name"]}
    assert radio.ask(f"{STREAMS}/{stream_id}") == changed.json()
    assert len(radio.ask(f"{STREAMS}/{stream_id}/history")["results"]) == 1
    assert radio.request("PUT", f"{STREAMS}/{stream_id}", json={}).json() == changed.json()


def test_g3_changes_are_refused_like_registrations(server: Api, radio: Api) -> None:
    first, second = new_stream(radio), new_stream(radio)
    path = f"{STREAMS}/{second}"
    before = radio.ask(path)
    for body, member in (
        ({"url": "http://127.0.0.1/live"}, "url"), ({"url": "ftp://x.example/"}, "url"), ({"name": " "}, "name"),
        ({"detection_mode": "loud"}, "detection_mode"), ({"linger_seconds": 9}, "linger_seconds"),
        ({"linger_seconds": "9"}, "linger_seconds"),
    ):  # fmt: skip
        assert problem(radio.request("PUT", path, json=body)) == (400, "invalid_parameter", [member])
    taken = radio.request("PUT", path, json={"url": radio.ask(f"{STREAMS}/{first}")["url"]})
    assert (problem(taken)[:2], taken.json()["stream_id"]) == ((409, "stream_exists"), first)
    assert problem(with_card(server).request("PUT", path, json={"name": "Mine"}))[:2] == (404, "not_found")
    assert problem(server.as_caller("free").request("PUT", path, json={"name": "Mine"}))[:2] == (403, "payment_method_required")
    assert radio.ask(path) == before
    radio.request("DELETE", path)
    assert problem(radio.request("PUT", path, json={"name": "Again"}))[:2] == (409, "stream_stopped")


def test_g1_settings_of_detection_come_with_the_registration(radio: Api) -> None:
    body = {"url": PUBLIC, "name": "Radio", "detection_mode": "sensitive", "linger_seconds": 300}
    made = radio.post(STREAMS, body).json()
    assert (made["detection_mode"], made["linger_seconds"]) == ("sensitive", 300)
    assert problem(radio.post(STREAMS, {**body, "detection_mode": 1, "linger_seconds": 301}))[2] == ["detection_mode", "linger_seconds"]


def test_g5_segments_are_a_member_of_their_own_and_pages_share_them_out(radio: Api) -> None:
    stream_id, began = new_stream(radio), NOON - timedelta(days=2)
    for number in range(3):
        air(radio, stream_id, 1 + number, began + timedelta(seconds=300 * number), 200)
    log, base = SegmentLog(), int(began.timestamp() * 1000)

    def post(write: Any, replaces: object = None) -> None:  # noqa: ANN401, ARG001 -- as a worker's queue
        with radio.accounts.engine.begin() as connection:
            write(connection, stream_id)

    for number, kind in enumerate(("talk", "music_unknown", "silence")):
        log.note(kind, base + 1000 * (300 * number + 190), base + 1000 * (300 * number + 300), post)
    path = f"{STREAMS}/{stream_id}/history"
    assert "segments" not in radio.ask(path)
    whole = radio.ask(path, include="segments")["segments"]
    assert [(one["kind"], one["duration_seconds"]) for one in whole] == [("silence", 100), ("music_unknown", 100), ("talk", 100)]
    assert whole[2] == {"kind": "talk", "started_at": format_timestamp(began + timedelta(seconds=200)),
                        "ended_at": format_timestamp(began + timedelta(seconds=300)), "duration_seconds": 100}  # fmt: skip
    page = radio.ask(path, include="segments", limit=1)
    turned = page["segments"]
    assert [one["kind"] for one in turned] == ["silence"]
    while page["next_cursor"]:
        page = radio.ask(path, include="segments", limit=1, cursor=page["next_cursor"])
        turned += page["segments"]
    assert turned == whole
    assert radio.refused(path, include="segments,links") == (400, "invalid_parameter", ["include"])


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


def test_g3_streams_of_others_and_unknown_streams_are_404(server: Api, radio: Api) -> None:
    stream_id = new_stream(radio)
    other = with_card(server)
    for identity in (stream_id, str(uuid.uuid4()), "1", "not-a-uuid", stream_id.upper() + "x", "%00", "%ff"):
        for path in (f"{STREAMS}/{identity}", f"{STREAMS}/{identity}/history"):
            assert problem(other.get(path))[:2] in {(404, "not_found"), (400, "invalid_parameter")}, path
        assert other.request("DELETE", f"{STREAMS}/{identity}").status_code in {400, 404}
    assert problem(other.get(f"{STREAMS}/{stream_id}"))[:2] == (404, "not_found")
    assert problem(other.request("DELETE", f"{STREAMS}/{stream_id}"))[:2] == (404, "not_found")
    assert radio.ask(f"{STREAMS}/{stream_id}")["status"] == "active"
    assert radio.ask(f"{STREAMS}/{stream_id.upper()}")["id"] == stream_id
    assert problem(radio.request("PATCH", f"{STREAMS}/{stream_id}"))[:2] == (405, "method_not_allowed")


def test_g4_the_track_that_plays_now_is_shown(radio: Api) -> None:
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
