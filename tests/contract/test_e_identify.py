"""Section E of the contract: identify."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from account_store.plans import Terms
from audio_recognition.chromaprint import fingerprint
from audio_recognition.chromaprint.compressed import encode
from catalog_api.routes.identify import LONGEST_SECONDS, MOST_FINGERPRINT_ITEMS
from tests.audio_recognition.audio import ENCODERS, encoded, melody
from tests.audio_recognition.sound_damage import telephone
from tests.contract.awkward import song
from tests.contract.conftest import Api, problem
from tests.processes import children
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx
    from numpy.typing import NDArray

IDENTIFY = "/v1/tracks/identify"
MEBIBYTE = 2**20
RATE = 11025
UNKNOWN = 99
"""Seed of a melody that is in no catalog."""


def clip(seed: int, seconds: float = 15, *, start: float = 5) -> NDArray[np.int16]:
    """Return a piece of a song of the catalog."""
    return song(seed)[round(start * RATE) : round((start + seconds) * RATE)]


def items_of(seed: int) -> NDArray[np.uint32]:
    return fingerprint(clip(seed))


def wav(samples: NDArray[np.int16]) -> bytes:
    return encoded(samples, "wav", rate=RATE)


def upload(api: Api, file: bytes, **headers: str) -> httpx.Response:
    return api.request("POST", IDENTIFY, content=file, headers={"content-type": "application/octet-stream", **headers})


def announced(api: Api, size: int) -> bytes:
    """Return the answer to the head of an upload, before any of its body is sent."""
    address = urlsplit(api.base)
    head = f"POST {IDENTIFY} HTTP/1.1\r\nhost: x\r\nx-api-key: {api.key}\r\ncontent-type: application/octet-stream\r\n"
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(f"{head}content-length: {size}\r\n\r\n".encode())
        return connection.recv(65536)


def identified(answer: httpx.Response) -> Any:  # noqa: ANN401 - JSON
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) >= {"matched", "results", "credits_charged"}
    assert body["matched"] == bool(body["results"])
    assert ("reason" in body) != body["matched"]
    assert answer.headers["x-credits-used"] == str(body["credits_charged"])
    return body


def ids(answer: httpx.Response) -> list[str]:
    return [result["id"] for result in identified(answer)["results"]]


def used(api: Api) -> int:
    credits_: int = api.ask("/v1/usage")["credits_used"]
    return credits_


def matcher_pid(api: Api) -> int:
    [found] = children(api.pid, b"\0matcher\0")
    return found


@contextmanager
def frozen_matcher(api: Api) -> Iterator[None]:
    """Freeze the matcher. Every question to it stays unanswered, and the caller learns so after seconds."""
    process = matcher_pid(api)
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def test_e1_items_are_taken_signed_and_unsigned_and_as_compressed_text(api: Api) -> None:
    items = items_of(1)
    for sent in (items.tolist(), items.view(np.int32).tolist(), encode(items)):
        for duration in ({}, {"fingerprint_duration": 40}, {"fingerprint_duration": None}):
            assert ids(api.post(IDENTIFY, {"fingerprint": sent, **duration})) == ["1"]
    assert min(items.view(np.int32)) < 0
    assert max(items) > 2**31


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, ["fingerprint"]),
        ({"fingerprint": None}, ["fingerprint"]),
        ({"fingerprint": []}, ["fingerprint"]),
        ({"fingerprint": {}}, ["fingerprint"]),
        ({"fingerprint": [1, 2, "3"]}, ["fingerprint[2]"]),
        ({"fingerprint": [1, 2.5]}, ["fingerprint[1]"]),
        ({"fingerprint": [True]}, ["fingerprint[0]"]),
        ({"fingerprint": [None]}, ["fingerprint[0]"]),
        ({"fingerprint": [2**32]}, ["fingerprint[0]"]),
        ({"fingerprint": [0, -(2**31) - 1]}, ["fingerprint[1]"]),
        ({"fingerprint": [10**30]}, ["fingerprint[0]"]),
        ({"fingerprint": [1] * (MOST_FINGERPRINT_ITEMS + 1)}, ["fingerprint"]),
        ({"fingerprint": ""}, ["fingerprint"]),
        ({"fingerprint": "AQAA"}, ["fingerprint"]),
        ({"fingerprint": "no text of ours!"}, ["fingerprint"]),
        ({"fingerprint": encode(np.arange(200, dtype=np.uint32), algorithm=0)}, ["fingerprint"]),
        ({"fingerprint": "AQ___w" + "A" * 50_000}, ["fingerprint"]),
        ({"fingerprint": [1], "fingerprint_duration": 0}, ["fingerprint_duration"]),
        ({"fingerprint": [1], "fingerprint_duration": LONGEST_SECONDS + 1}, ["fingerprint_duration"]),
        ({"fingerprint": [1], "fingerprint_duration": "40"}, ["fingerprint_duration"]),
        ({"fingerprint": "?", "fingerprint_duration": 1.5}, ["fingerprint", "fingerprint_duration"]),
        ([], ["body"]),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_e1_malformed_fingerprint_is_400(on_sqlite: Api, body: object, names: list[str]) -> None:
    api = on_sqlite.as_caller()
    assert problem(api.post(IDENTIFY, body)) == (400, "invalid_parameter", names)
    assert used(api) == 0


@pytest.mark.parametrize("form", ENCODERS)
def test_e2_each_format_is_detected_from_its_bytes(on_sqlite: Api, form: str) -> None:
    sound = np.repeat(clip(2, 12), 4)  # at 44,100 Hz
    file = encoded(np.stack([sound, sound], axis=1), form)
    assert ids(upload(on_sqlite, file)) == ["2"]


def test_e2_an_upload_is_named_whether_its_length_is_known_or_not(api: Api) -> None:
    file = wav(clip(1))
    assert ids(upload(api, file)) == ["1"]
    chunks = (file[start : start + 50_000] for start in range(0, len(file), 50_000))
    sent = api.request("POST", IDENTIFY, content=chunks, headers={"content-type": "Application/Octet-Stream; x=y"})
    assert ids(sent) == ["1"]


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (b"", "unsupported_audio"),
        (b"#EXTM3U\nfile:///etc/passwd\n", "unsupported_audio"),
        (b"\x89PNG\r\n\x1a\n" + bytes(500), "unsupported_audio"),
        (np.random.default_rng(1).bytes(100_000), "unsupported_audio"),
        (b"fLaC" + bytes(5_000), "undecodable_audio"),
        (wav(clip(1))[:30], "undecodable_audio"),
        (b"OggS" + np.random.default_rng(2).bytes(20_000), "undecodable_audio"),
        (encoded(clip(1), "m4a", rate=44100)[:2_000], "undecodable_audio"),
    ],
    ids=["empty", "playlist", "picture", "noise", "bare mark", "head alone", "mark and noise", "cut off"],
)
def test_e2_upload_without_audio_is_415_and_free(on_sqlite: Api, file: bytes, code: str) -> None:
    api = on_sqlite.as_caller()
    assert problem(upload(api, file)) == (415, code, [])
    assert used(api) == 0


def test_e2_other_bodies_are_415_and_too_large_ones_413_before_they_are_sent(api: Api) -> None:
    for media_type in ("audio/mpeg", "multipart/form-data; boundary=x", ""):
        sent = api.request("POST", IDENTIFY, content=b"{}", headers={"content-type": media_type})
        assert problem(sent) == (415, "unsupported_media_type", [])
    assert problem(upload(api, wav(clip(1)), **{"content-encoding": "gzip"})) == (415, "unsupported_media_type", [])
    assert announced(api, 100 * MEBIBYTE + 1).startswith(b"HTTP/1.1 413 ")
    assert used(api) == 0


def test_e3_a_fingerprint_costs_10_and_an_upload_one_more_for_each_megabyte_begun_matched_or_not(api: Api) -> None:
    api.post(IDENTIFY, {"fingerprint": items_of(1).tolist()})
    assert used(api) == 10
    assert identified(api.post(IDENTIFY, {"fingerprint": items_of(UNKNOWN).tolist()}))["matched"] is False
    assert used(api) == 20
    small = wav(clip(1))
    for size, price in ((len(small), 11), (MEBIBYTE, 11), (MEBIBYTE + 1, 12)):
        before = used(api)
        answer = identified(upload(api, small + bytes(size - len(small))))  # bytes after the sound are charged, too
        assert (answer["credits_charged"], used(api) - before) == (price, price)
    before = used(api)
    assert identified(upload(api, wav(clip(UNKNOWN))))["matched"] is False
    assert used(api) - before == 11


def test_e3_request_over_the_credits_is_refused_before_any_matching(server: Api) -> None:
    poor, file = server.with_credits(9), wav(clip(1))
    with frozen_matcher(server):
        answers = [poor.post(IDENTIFY, {"fingerprint": items_of(1).tolist()})]
        richer = server.with_credits(11)
        answers.append(upload(richer, file + bytes(MEBIBYTE)))
        answers.append(
            richer.request("POST", IDENTIFY, content=iter([file, bytes(MEBIBYTE)]), headers={"content-type": "application/octet-stream"})
        )
    for answer, required, left in zip(answers, (10, 12, 12), (9, 11, 11), strict=True):
        assert problem(answer) == (429, "quota_exceeded", [])
        assert (answer.json()["credits_required"], answer.json()["credits_remaining"]) == (required, left)
        assert int(answer.headers["retry-after"]) >= 1
    assert (used(poor), used(richer)) == (0, 0)
    assert ids(upload(richer, file)) == ["1"]
    assert used(richer) == 11


def test_e3_faults_of_a_body_are_reported_before_rate_and_credits(server: Api) -> None:
    spent = server.as_caller(terms=Terms(credits=1, price_eur=Decimal(1), requests_per_second=1))
    statuses = [problem(upload(spent, b"no audio"))[:2] for _ in range(4)]
    assert statuses == [(415, "unsupported_audio")] * 4
    assert [problem(spent.post(IDENTIFY, {}))[0] for _ in range(4)] == [400] * 4
    codes = {problem(spent.post(IDENTIFY, {"fingerprint": [1]}))[1] for _ in range(4)}
    assert codes == {"quota_exceeded", "rate_limited"}


def test_e3_many_at_once_get_exactly_the_answers_that_are_paid_for(server: Api) -> None:
    caller, body, statuses = server.with_credits(55), {"fingerprint": items_of(1).tolist()}, []
    threads = [threading.Thread(target=lambda: statuses.append(caller.post(IDENTIFY, body).status_code)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 5 + [429] * 7
    assert used(caller) == 50


def test_e3_a_free_plan_is_refused_before_the_body_is_looked_at(server: Api) -> None:
    free = server.as_caller("free")
    assert problem(free.post(IDENTIFY, {})) == (403, "plan_required", [])
    assert problem(upload(free, b"nothing")) == (403, "plan_required", [])
    assert announced(free, 200 * MEBIBYTE).startswith(b"HTTP/1.1 403 ")


def test_e4_missing_match_is_200_with_the_reason(api: Api) -> None:
    cases = {
        "not_found": {"fingerprint": items_of(UNKNOWN).tolist()},
        "too_short": {"fingerprint": items_of(UNKNOWN)[:20].tolist()},
        "silence": {"fingerprint": [627964279] * 100},
        "low_diversity": {"fingerprint": [7, 8] * 50},
    }
    for reason, body in cases.items():
        answer = identified(api.post(IDENTIFY, body))
        assert (answer["matched"], answer["results"], answer["reason"]) == (False, [], reason)
    silent = identified(upload(api, wav(np.zeros(12 * RATE, np.int16))))
    assert (silent["matched"], silent["reason"]) == (False, "silence")
    assert identified(upload(api, wav(clip(1, 2))))["reason"] == "too_short"


def test_e4_deeper_windows_are_tried_and_the_first_that_is_recognised_ends_the_search(api: Api) -> None:
    unknown, silence = melody(35, seed=UNKNOWN), np.zeros(40 * RATE, np.int16)
    late = identified(upload(api, wav(np.concatenate([unknown, silence, song(2)]))))
    assert [result["id"] for result in late["results"]] == ["2"]
    assert late["window_offset_seconds"] > 50
    both = identified(upload(api, wav(np.concatenate([song(2), unknown, song(1)]))))
    assert ([result["id"] for result in both["results"]], both["window_offset_seconds"]) == (["2"], 0.0)
    neither = identified(upload(api, wav(np.concatenate([silence, unknown]))))
    assert (neither["matched"], neither["reason"]) == (False, "not_found")


@pytest.mark.parametrize("form", ["wav", "mp3", "ogg"])
def test_e4_silence_before_or_between_music_does_not_hide_it(on_sqlite: Api, form: str) -> None:
    silence, piece = np.zeros(35 * RATE, np.int16), clip(2, 10)
    sounds = {
        "before": (np.concatenate([silence, piece]), 35),
        "between": (np.concatenate([piece[: 5 * RATE // 2], silence, piece]), 37.5),
        "long before": (np.concatenate([np.tile(silence, 5), piece]), 175),
    }
    for name, (samples, place) in sounds.items():
        file = np.repeat(samples, 4)
        answer = identified(upload(on_sqlite, encoded(np.stack([file, file], axis=1) if form == "ogg" else file, form)))
        assert [result["id"] for result in answer["results"]] == ["2"], name
        # The window may begin with less than a pause of silence.
        assert place - 3.1 <= answer["window_offset_seconds"] <= place + 0.1, name
        assert answer["results"][0]["offset_seconds"] == pytest.approx(5 - (place - answer["window_offset_seconds"]), abs=0.5), name


@pytest.mark.parametrize("speed", [1.03, 0.98])
def test_e4_audio_at_another_speed_is_named_with_its_speed(on_sqlite: Api, speed: float) -> None:
    whole = song(2)
    at = np.arange(5 * RATE, 25 * RATE, speed)
    played = np.interp(at, np.arange(len(whole)), whole).astype(np.int16)
    answer = identified(upload(on_sqlite, wav(played)))
    [result] = answer["results"]
    assert result["id"] == "2"
    assert (result["speed"], result["pitch"]) == pytest.approx((speed, speed), abs=0.011)
    assert result["offset_seconds"] == pytest.approx(5, abs=0.5)
    assert "speed" not in identified(upload(on_sqlite, wav(clip(2))))["results"][0]


def test_e4_audio_coloured_by_a_device_is_named_by_its_landmarks(on_sqlite: Api) -> None:
    [result] = identified(upload(on_sqlite, wav(telephone(clip(2, 10)))))["results"]
    assert (result["id"], result["method"]) == ("2", "landmarks")
    assert result["offset_seconds"] == pytest.approx(5, abs=0.1)
    assert result["probability"] > 0.9
    assert identified(upload(on_sqlite, wav(clip(2, 10))))["results"][0]["method"] == "fingerprint"
    assert identified(upload(on_sqlite, wav(telephone(melody(10, seed=UNKNOWN)))))["matched"] is False


def ask_timeline(api: Api, file: bytes, **headers: str) -> httpx.Response:
    return api.request("POST", f"{IDENTIFY}?mode=timeline", content=file, headers={"content-type": "application/octet-stream", **headers})


def test_e4_a_timeline_lists_every_track_and_gap_of_an_upload(on_sqlite: Api) -> None:
    api = on_sqlite.as_caller()
    sound = [melody(17, seed=UNKNOWN), song(2), telephone(song(1)[10 * RATE : 35 * RATE]), np.zeros(12 * RATE, np.int16)]
    answer = identified(ask_timeline(api, encoded(np.concatenate(sound), "mp3", rate=RATE, kbps=64)))
    assert answer["credits_charged"] == used(api) == 15
    parts = answer["timeline"]
    assert [part["track"] and part["track"]["id"] for part in parts] == [None, "2", "1", None]
    assert [result["id"] for result in answer["results"]] == ["2", "1"]
    assert parts[1]["start_seconds"] == pytest.approx(17, abs=0.5)
    assert parts[1]["track"]["offset_seconds"] == pytest.approx(0, abs=0.5)
    assert (parts[2]["start_seconds"], parts[2]["end_seconds"]) == pytest.approx((57, 82), abs=10.5)
    assert parts[2]["track"]["method"] == "landmarks"
    assert all(one["end_seconds"] == other["start_seconds"] for one, other in itertools.pairwise(parts))
    assert (parts[0]["start_seconds"], parts[-1]["end_seconds"]) == (0, pytest.approx(94, abs=0.5))


def test_e4_a_timeline_without_a_known_track_is_one_gap_with_a_reason(on_sqlite: Api) -> None:
    for sound, reason in ((melody(20, seed=UNKNOWN), "not_found"), (np.zeros(12 * RATE, np.int16), "silence"), (clip(1, 2), "too_short")):
        answer = identified(ask_timeline(on_sqlite, wav(sound)))
        assert (answer["reason"], [part["track"] for part in answer["timeline"]]) == (reason, [None])
    assert "timeline" not in identified(upload(on_sqlite, wav(clip(1))))


def test_e4_a_timeline_needs_a_file_a_known_mode_and_the_credits_of_its_size(server: Api) -> None:
    body = {"fingerprint": items_of(1).tolist()}
    assert problem(server.post(f"{IDENTIFY}?mode=timeline", body)) == (400, "invalid_parameter", ["mode"])
    assert problem(server.post(f"{IDENTIFY}?mode=list", body)) == (400, "invalid_parameter", ["mode"])
    assert ids(server.as_caller().post(f"{IDENTIFY}?mode=track", body)) == ["1"]
    poor, file = server.with_credits(14), wav(clip(1))
    assert problem(ask_timeline(poor, file)) == (429, "quota_exceeded", [])
    assert problem(ask_timeline(poor, b"no audio")) == (415, "unsupported_audio", [])
    caller, headers = server.with_credits(26), {"idempotency-key": "set"}
    first = ask_timeline(caller, file, **headers)
    assert identified(first)["credits_charged"] == 15
    assert ask_timeline(caller, file, **headers).content == first.content
    assert problem(upload(caller, file, **headers)) == (409, "idempotency_key_reused", [])
    assert problem(ask_timeline(caller, wav(clip(2)))) == (429, "quota_exceeded", [])
    assert used(caller) == 15


def test_e3_short_clip_is_named_or_undecided_at_the_price_of_any_answer(api: Api) -> None:
    before = used(api)
    named = identified(upload(api, wav(clip(2, 5))))
    assert [result["id"] for result in named["results"]] == ["2"]
    undecided = identified(upload(api, wav(melody(5, seed=UNKNOWN))))
    assert (undecided["matched"], undecided["reason"]) == (False, "too_short")
    assert named["credits_charged"] == undecided["credits_charged"] == 11
    assert used(api) - before == 22


def test_e4_offset_is_where_the_query_begins_in_the_recording(api: Api) -> None:
    [result] = identified(api.post(IDENTIFY, {"fingerprint": fingerprint(clip(2, 20, start=10)).tolist()}))["results"]
    assert result["offset_seconds"] == pytest.approx(10, abs=0.3)


def test_e5_a_killed_matcher_is_503_free_of_charge_and_comes_back_by_itself(server: Api) -> None:
    api, body = server.as_caller(), {"fingerprint": items_of(1).tolist()}
    headers = {"idempotency-key": "again"}
    before = matcher_pid(server)
    os.kill(server.pid, signal.SIGSTOP)  # the supervisor would restart it in the middle of the requests
    try:
        os.kill(before, signal.SIGKILL)
        until(lambda: not children(server.pid, b"\0matcher\0"), "its death")
        refused = [api.post(IDENTIFY, body), api.post(IDENTIFY, body, headers=headers), upload(api, wav(clip(1)))]
    finally:
        os.kill(server.pid, signal.SIGCONT)
    for answer in refused:
        assert problem(answer) == (503, "recognition_unavailable", [])
        assert int(answer.headers["retry-after"]) >= 1
    assert used(api) == 0
    answers = []

    def is_back() -> bool:
        answers.append(api.post(IDENTIFY, body, headers=headers))
        return answers[-1].status_code != 503

    until(is_back)
    assert ids(answers[-1]) == ids(upload(api, wav(clip(1)))) == ["1"]
    assert used(api) == 21
    assert matcher_pid(server) != before


def test_e5_a_matcher_that_does_not_answer_is_503_and_the_rest_of_the_service_goes_on(on_sqlite: Api) -> None:
    api, statuses = on_sqlite.as_caller(), []
    with frozen_matcher(on_sqlite):
        asking = threading.Thread(target=lambda: statuses.append(problem(api.post(IDENTIFY, {"fingerprint": items_of(1).tolist()}))))
        asking.start()
        assert api.get("/v1/tracks/1").status_code == 200
        assert asking.is_alive()
        asking.join()
    assert statuses == [(503, "recognition_unavailable", [])]
    assert used(api) == 1
    assert ids(api.post(IDENTIFY, {"fingerprint": items_of(1).tolist()})) == ["1"]


def test_e5_a_repeat_under_an_idempotency_key_gets_the_first_answer_and_pays_nothing(server: Api) -> None:
    caller, file = server.with_credits(25), wav(clip(1))
    headers = {"idempotency-key": "song"}
    first = upload(caller, file, **headers)
    assert ids(first) == ["1"]
    again = upload(caller, file, **headers)
    assert (again.content, again.headers["x-credits-used"], again.headers["idempotency-replayed"]) == (first.content, "0", "true")
    assert problem(upload(caller, wav(clip(2)), **headers)) == (409, "idempotency_key_reused", [])
    assert problem(caller.post(IDENTIFY, {"fingerprint": [1]}, headers=headers)) == (409, "idempotency_key_reused", [])
    body = {"fingerprint": items_of(2).tolist()}
    paid = caller.post(IDENTIFY, body, headers={"idempotency-key": "items"})
    assert caller.post(IDENTIFY, body, headers={"idempotency-key": "items"}).content == paid.content
    assert used(caller) == 21
    assert upload(caller, file, **headers).status_code == 200, "paid for before the credits ran out"


def has_decoded(process: int) -> bool:
    """Return whether the process is confined and waits for the next question. A new process replaces one that dies before that."""

    def state() -> tuple[str, ...]:
        return tuple(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:13])

    before = state()
    time.sleep(0.3)
    return "NoNewPrivs:\t1" in Path(f"/proc/{process}/status").read_text() and before == state() and before[0] == "S"


def test_e6_a_decoder_that_dies_of_a_file_costs_its_request_alone_and_nothing(on_sqlite: Api) -> None:
    api, answers = on_sqlite.as_caller(), []
    assert ids(upload(api, wav(clip(1)))) == ["1"]
    [worker] = children(on_sqlite.pid, b"spawn_main")
    [fork_server] = children(worker, b"uploads.fork_server")
    until(lambda: not children(fork_server, b""))  # that of the previous upload
    file = wav(np.concatenate([melody(35, seed=UNKNOWN), song(1)]))
    with frozen_matcher(on_sqlite):  # the decoder of its first window waits for the request of the second
        asking = threading.Thread(target=lambda: answers.append(upload(api, file)))
        asking.start()
        until(lambda: any(has_decoded(child) for child in children(fork_server, b"")))
        for victim in children(fork_server, b""):
            os.kill(victim, signal.SIGKILL)
    asking.join()
    assert problem(answers[0]) == (415, "undecodable_audio", [])
    assert used(api) == 11
    assert ids(upload(api, wav(clip(1)))) == ["1"]
