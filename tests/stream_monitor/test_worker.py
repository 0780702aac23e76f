from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sqlalchemy import select

from account_store.errors import UnavailableError
from account_store.streams.leases import Leases
from account_store.streams.registry import FAILED, RECONNECTING, RUNNING, STOPPED
from account_store.streams.segments import MUSIC_UNKNOWN, SILENCE, TALK, SegmentLog
from account_store.streams.stream_tables import airing, stream, stream_gap, stream_segment
from account_store.streams.traces import load_trace, save_traces
from audio_recognition.matching import Matcher
from outbound_http import Outbound
from outbound_http.allow_list import parse_allow_list
from stream_monitor import listener
from stream_monitor.capture.decoders import Decoders
from stream_monitor.clock import SampleClock
from stream_monitor.fingerprint_buffer import FingerprintBuffer
from stream_monitor.listener import SharedResources
from stream_monitor.meters import Meters
from stream_monitor.play import Play
from stream_monitor.trace import Trace
from stream_monitor.worker import Worker
from stream_monitor.write_queue import BatchWriter
from tests.conftest import run_module
from tests.stream_monitor.conftest import EPOCH_MS, LENGTHS, Songs
from tests.stream_monitor.servers import ok, serving
from tests.stream_monitor.shows import RATE, Part, agrees, sound, track
from tests.stream_monitor.sounds import encoded
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from account_store import Accounts
    from audio_recognition.index.fingerprint_index import Index

OVER = threading.Event()
PARTS = [Part(1, 30), Part(None, 6), Part(2, 22), Part(2, 22), Part(0, 5), Part(4, 26), Part(None, 12)]


@pytest.fixture(scope="session")
def show() -> bytes:
    return encoded(sound(PARTS, LENGTHS), "mp3", source_rate=RATE, rate=RATE)


@contextmanager
def working(accounts: Accounts, songs: Index, *, lease_seconds: float = 5.0, allowed: str = "127.0.0.1:*") -> Iterator[Meters]:
    """Yield a worker that reads as fast as it can. Samples are its clock."""
    meters, decoders = Meters(), Decoders()
    shared = SharedResources(Outbound(parse_allow_list(allowed)), Songs(songs), Matcher(songs).match, meters, decoders, SampleClock, 1e9)  # type: ignore[arg-type]
    stopping = threading.Event()
    worker = Worker(accounts.engine, shared, 50, lease_seconds=lease_seconds)
    thread = threading.Thread(target=worker.run, args=(stopping,))
    thread.start()
    try:
        yield meters
    finally:
        stopping.set()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
        decoders.close()


def new_stream(accounts: Accounts, url: str) -> tuple[int, str]:
    account_id = accounts.create(f"radio {url}").account_id
    return account_id, accounts.streams.create(account_id, url, "Radio").stream_id


def rows(accounts: Accounts, stream_id: str) -> list[tuple[int, float, int]]:
    with accounts.engine.connect() as connection:
        created = connection.execute(stream.select().where(stream.c.stream_id == stream_id)).one().created_at.timestamp()
        found = connection.execute(airing.select().where(airing.c.stream_id == stream_id).order_by(airing.c.started_ms))
        return [(row.recording_id, row.started_ms / 1000 - created, row.duration_seconds) for row in found]


def endless(data: bytes) -> Callable[[socket.socket, str], None]:
    def answer(connection: socket.socket, _path: str) -> None:
        connection.sendall(ok() + data)
        OVER.wait(PATIENCE_SECONDS)

    return answer


def test_airing_is_written_while_it_plays(accounts: Accounts, songs: Index, show: bytes) -> None:
    with serving(endless(show)) as address, working(accounts, songs) as meters:
        account_id, stream_id = new_stream(accounts, address)
        until(lambda: len(rows(accounts, stream_id)) == 4)
        until(lambda: rows(accounts, stream_id)[-1][2] >= 25)
        # The airing is written before the end of the show is heard.
        until(lambda: meters.heard_seconds._value.get() >= 121)
        now = accounts.streams.get(account_id, stream_id)
        assert (now.runtime_status, now.last_error, now.audio_format) == (RUNNING, None, "mp3float, 22050 Hz, mono")
        assert now.last_recognized_at is not None
    delay = rows(accounts, stream_id)[0][1]
    assert agrees([(song, start - delay, seconds) for song, start, seconds in rows(accounts, stream_id)], PARTS)
    assert delay >= -1, "no airing begins before its stream was created"
    assert meters.heard_seconds._value.get() == pytest.approx(123, abs=2)
    assert meters.airings._value.get() == 4
    with accounts.engine.connect() as connection:
        row = connection.execute(stream.select().where(stream.c.stream_id == stream_id)).one()
    assert (row.worker_id, row.lease_ends_ms) == (None, None), "a worker that stops gives its streams back"
    assert row.listened_ms > 0


def test_stopped_stream_is_disconnected_at_once(accounts: Accounts, songs: Index, show: bytes) -> None:
    hung_up = threading.Event()

    def answer(connection: socket.socket, _path: str) -> None:
        connection.sendall(ok() + show)
        connection.recv(1)
        hung_up.set()

    with serving(answer) as address, working(accounts, songs):
        account_id, stream_id = new_stream(accounts, address)
        until(lambda: rows(accounts, stream_id))
        accounts.streams.stop(account_id, stream_id)
        aired = rows(accounts, stream_id)
        assert hung_up.wait(PATIENCE_SECONDS)
    assert rows(accounts, stream_id) == aired
    assert accounts.streams.get(account_id, stream_id).runtime_status == STOPPED


def test_changed_address_is_followed_at_once_and_its_history_stays(accounts: Accounts, songs: Index) -> None:
    old = encoded(sound([Part(1, 16)], LENGTHS), "mp3", source_rate=RATE, rate=RATE)
    new = encoded(sound([Part(None, 15), Part(5, 33), Part(None, 8)], LENGTHS), "opus", source_rate=RATE, rate=48_000)

    def answer(connection: socket.socket, path: str) -> None:
        connection.sendall(ok() + (new if path == "/new" else old))
        OVER.wait(PATIENCE_SECONDS)

    with serving(answer) as address, working(accounts, songs, lease_seconds=1.0):
        account_id, stream_id = new_stream(accounts, f"{address}/old")
        until(lambda: len(rows(accounts, stream_id)) == 1)
        accounts.streams.change(account_id, stream_id, url=f"{address}/new")
        until(lambda: [song for song, _, _ in rows(accounts, stream_id)] == [1, 5])
        now = accounts.streams.get(account_id, stream_id)
        assert (now.runtime_status, now.audio_format, now.last_error) == (RUNNING, "opus, 48000 Hz, mono", None)
    with accounts.engine.connect() as connection:
        row = connection.execute(stream.select().where(stream.c.stream_id == stream_id)).one()
    assert row.lease_token == 1, "the worker kept its lease"


def test_changed_address_ends_a_long_wait(accounts: Accounts, songs: Index, show: bytes) -> None:
    page = b"HTTP/1.0 401 No\r\n\r\n"
    refusal = serving(lambda connection, _path: connection.sendall(page))
    with refusal as refusing, serving(endless(show)) as address, working(accounts, songs, lease_seconds=1.0):
        account_id, stream_id = new_stream(accounts, refusing)
        until(lambda: accounts.streams.get(account_id, stream_id).runtime_status == FAILED)
        accounts.streams.change(account_id, stream_id, url=address)
        until(lambda: len(rows(accounts, stream_id)) == 4)


def test_sound_that_is_not_known_is_written_as_segments(accounts: Accounts, songs: Index) -> None:
    parts = [Part(90, 20), Part(1, 30), Part(0, 12), Part(91, 30)]
    data = encoded(sound(parts, LENGTHS | {90: 25.0, 91: 30.0}), "mp3", source_rate=RATE, rate=RATE)
    with serving(endless(data)) as address, working(accounts, songs):
        _, stream_id = new_stream(accounts, address)
        read = lambda: accounts.segments.list_segments(stream_id, None, None)  # noqa: E731 -- short, and used here alone
        until(lambda: len(rows(accounts, stream_id)) == 1 and sum(one.ended_ms - one.started_ms for one in read()) >= 56_000)
        found = read()
    start = found[0].started_ms
    spans = [(one.kind, round((one.started_ms - start) / 1000), round((one.ended_ms - start) / 1000)) for one in found]
    assert [kind for kind, _, _ in spans] == [MUSIC_UNKNOWN, SILENCE, MUSIC_UNKNOWN]
    for (_, began, ended), (low, high) in zip(spans, [(0, 20), (50, 62), (62, 92)], strict=True):
        assert abs(began - low) <= 5
        assert abs(ended - high) <= 5


def test_lost_source_is_retried_and_leaves_a_gap(accounts: Accounts, songs: Index, show: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "SHORTEST_GAP_MS", 100)
    attempts = []

    def answer(connection: socket.socket, path: str) -> None:
        attempts.append(path)
        if len(attempts) < 3:
            connection.sendall(b"HTTP/1.0 404 Not Found\r\n\r\n")
        else:
            endless(show)(connection, path)

    with serving(answer) as address, working(accounts, songs):
        account_id, stream_id = new_stream(accounts, address)
        until(lambda: accounts.streams.get(account_id, stream_id).runtime_status == RECONNECTING)
        until(lambda: accounts.streams.get(account_id, stream_id).runtime_status == RUNNING)
        until(lambda: rows(accounts, stream_id))
        now = accounts.streams.get(account_id, stream_id)
    assert "no such mount point" in (now.last_error or "")
    with accounts.engine.connect() as connection:
        [gap] = connection.execute(stream_gap.select().where(stream_gap.c.stream_id == stream_id))
    assert (gap.cause, "no such mount point" in gap.detail, gap.ended_at is not None) == ("source", True, True)


@pytest.mark.parametrize(
    ("sent", "allowed", "expected_error"),
    [
        (ok("text/html") + b"<!DOCTYPE html><p>Listen!</p>", "127.0.0.1:*", "web page"),
        (b"HTTP/1.0 401 Unauthorized\r\n\r\n", "127.0.0.1:*", "password"),
        (b"HTTP/1.0 401 No\0body\r\n\r\n", "127.0.0.1:*", "No\ufffdbody"),
        (ok(), "", "not allowed"),
    ],
)
def test_lasting_error_sets_the_stream_to_failed_with_a_reason(
    accounts: Accounts, songs: Index, sent: bytes, allowed: str, expected_error: str
) -> None:
    with serving(lambda connection, _path: connection.sendall(sent)) as address, working(accounts, songs, allowed=allowed):
        account_id, stream_id = new_stream(accounts, address)
        until(lambda: accounts.streams.get(account_id, stream_id).runtime_status == FAILED)
        assert expected_error in (accounts.streams.get(account_id, stream_id).last_error or "")


def test_two_workers_share_and_the_one_that_is_left_takes_all(accounts: Accounts, songs: Index) -> None:
    quiet = encoded(np.zeros(RATE * 4, np.int16), "mp3", source_rate=RATE, rate=RATE)

    def holders() -> list[str]:
        with accounts.engine.connect() as connection:
            return [str(row.worker_id) for row in connection.execute(stream.select())]

    with serving(endless(quiet)) as address, working(accounts, songs):
        account_id = accounts.create("radio").account_id
        for number in range(4):
            accounts.streams.create(account_id, f"{address}/{number}", "Radio")
        until(lambda: "None" not in holders())
        with working(accounts, songs):
            until(lambda: len(set(holders())) == 2 and "None" not in holders())
        until(lambda: len(set(holders())) == 1 and "None" not in holders())


def test_worker_continues_from_the_trace_of_a_dead_one(accounts: Accounts, songs: Index) -> None:
    before, behind = sound([Part(None, 6), Part(3, 8, 10)], LENGTHS), sound([Part(3, 16, 22), Part(None, 12)], LENGTHS)
    buffer, clock = FingerprintBuffer(), SampleClock()
    buffer.feed(np.ascontiguousarray(before[::2]))
    with serving(endless(encoded(behind, "mp3", source_rate=RATE, rate=RATE))) as address:
        _, stream_id = new_stream(accounts, address)
        dead = Leases(accounts.engine, "dead", 1, 0.2)
        [lease] = dead.claim()
        clock.note_arrival(buffer.samples, died_ms := time.time_ns() // 1_000_000 - 4_000)
        trace = Trace.of(buffer, clock, 0)
        assert trace is not None
        with accounts.engine.begin() as connection:
            save_traces(connection, [(lease, trace.stored)])
        dead.renew([lease], {stream_id: died_ms})
        with working(accounts, songs):
            until(lambda: rows(accounts, stream_id) and rows(accounts, stream_id)[0][2] >= 22)
    [(song, _, seconds)] = rows(accounts, stream_id)
    with accounts.engine.connect() as connection:
        [started_ms] = connection.execute(select(airing.c.started_ms)).scalars()
    assert (song, abs(started_ms - (died_ms - 8_000)) <= 2_000) == (3, True), "it began late, 8 s before the other worker died"
    assert abs(seconds - 28) <= 3


def test_writer_writes_each_stream_under_its_lease_and_loses_no_others(accounts: Accounts) -> None:
    account_id = accounts.create("radio").account_id
    ids = [accounts.streams.create(account_id, f"https://radio.example/{n}", "Radio").stream_id for n in range(3)]
    leases = {one.stream_id: one for one in Leases(accounts.engine, "writer", 10).claim()}
    meters = Meters()
    writer = BatchWriter(accounts.engine, meters)
    good, broken, lost = (writer.open_queue(leases[one]) for one in ids)
    written = []

    def write(connection: Connection, stream_id: str) -> None:
        connection.execute(stream.update().where(stream.c.stream_id == stream_id).values(audio_format="written"))
        written.append(stream_id)

    def fail(_connection: Connection, _stream_id: str) -> None:
        raise ValueError("a bug")

    accounts.streams.stop(account_id, ids[2])
    trace = Trace(EPOCH_MS, np.arange(4 * 20, dtype=np.uint32).reshape(4, 20))
    for queue in (good, broken, lost):
        queue.keep_trace(trace)
        queue.post(write, replaces="the same")
        queue.post(write, replaces="the same")
    broken.post(fail)
    writer.flush()
    assert [accounts.streams.get(account_id, one).audio_format for one in ids] == ["written", None, None]
    assert (lost.is_lost, good.is_lost, sorted(written)) == (True, False, sorted(ids[:2]))
    assert meters.dropped_writes._value.get() == 2
    with accounts.engine.connect() as connection:
        kept = [Trace.load(load_trace(connection, one)) for one in ids]
    assert [None if one is None else (one.first_ms, one.items.tolist()) for one in kept] == [(EPOCH_MS, trace.items.tolist())] * 2 + [None]
    good.post(write)
    writer.flush()
    assert written.count(ids[0]) == 2


def test_findings_of_an_undone_transaction_are_written_again_and_touch_no_other_stream(accounts: Accounts) -> None:
    account_id = accounts.create("radio").account_id
    ids = sorted(accounts.streams.create(account_id, f"https://radio.example/{n}", "Radio").stream_id for n in range(2))
    leases = {one.stream_id: one for one in Leases(accounts.engine, "writer", 10).claim()}
    writer = BatchWriter(accounts.engine, Meters())
    first, second = (writer.open_queue(leases[one]) for one in ids)
    talk, silence = SegmentLog(), SegmentLog()
    faults: list[Exception] = [UnavailableError("the disk is full")]

    def fail_once(_connection: Connection, _stream_id: str) -> None:
        if faults:
            raise faults.pop()

    talk.note(TALK, 0, 5_000, first.post)
    silence.note(SILENCE, 0, 5_000, second.post)
    second.post(fail_once)
    with pytest.raises(UnavailableError):
        writer.flush()
    writer.flush()
    plays = [Play(track(number, 30.0), [], EPOCH_MS, EPOCH_MS, EPOCH_MS + 5_000, 0.9) for number in (1, 2)]
    faults.append(ValueError("a bug"))
    first.post(plays[0].write_start)
    first.post(fail_once)
    second.post(plays[1].write_start)
    writer.flush()
    plays[0].heard_ms = EPOCH_MS + 20_000
    for write in (plays[0].write_progress, plays[0].write_end):
        first.post(write)
    talk.note(TALK, 5_000, 9_000, first.post)
    writer.flush()
    with accounts.engine.connect() as connection:
        columns = (stream_segment.c.stream_id, stream_segment.c.kind, stream_segment.c.ended_ms)
        segments = connection.execute(select(*columns).order_by(columns[0])).all()
        query = select(airing.c.stream_id, airing.c.recording_id, airing.c.duration_seconds, airing.c.ended_at.is_(None))
        aired = connection.execute(query.order_by(airing.c.recording_id)).all()
    assert segments == [(ids[0], TALK, 9_000), (ids[1], SILENCE, 5_000)]
    assert aired == [(ids[0], 1, 20, False), (ids[1], 2, 5, True)]


def test_command_prints_the_error(tmp_path: Path) -> None:
    arguments = ("stream_monitor", "--catalog", tmp_path, "--matcher-socket", tmp_path / "socket", "--accounts")
    wrong = run_module(*arguments, "mysql://host/name", check=False)
    assert (wrong.returncode, "not a database for accounts" in wrong.stderr) == (1, True)
    away = run_module(*arguments, f"postgresql://nobody@/none?host={tmp_path}", check=False)
    assert (away.returncode, "does not answer" in away.stderr) == (3, True)
