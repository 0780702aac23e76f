"""Tests of the matcher process: many clients, kills and restarts, new snapshots, full queues."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from audio_recognition.chromaprint import WEAK_BITS
from audio_recognition.matcher_process import MatcherBusyError, MatcherClient, MatcherDownError
from audio_recognition.matcher_process.frames import LONGEST_FRAME
from audio_recognition.matcher_process.matcher_errors import MatcherFailedError
from audio_recognition.matcher_process.meters import Meters
from audio_recognition.matching import Pace, Reason
from tests.audio_recognition.matcher_process.indexes import (
    events,
    make_index,
    matcher,
    publish_index,
    recording,
    switch,
    write_manifest,
)
from tests.conftest import ROOT
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from audio_recognition.matching import Answer

CATALOG = {number: recording(number) for number in range(1, 40)}


@dataclass
class Shared:
    path: Path
    metrics: Path
    process: subprocess.Popen[bytes]
    client: MatcherClient


@pytest.fixture
def root(tmp_path: Path) -> Path:
    publish_index(tmp_path / "catalog", "first", CATALOG)
    return tmp_path / "catalog"


@pytest.fixture
def socket_path(tmp_path: Path) -> Path:
    return tmp_path / "m.sock"


@pytest.fixture
def running(root: Path, socket_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with matcher(root, socket_path) as process:
        yield process


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """Yield a process for all tests that neither publish nor kill."""
    place = tmp_path_factory.mktemp("shared")
    publish_index(place / "catalog", "first", CATALOG)
    with matcher(place / "catalog", place / "m.sock", "--metrics-file", str(place / "m.prom")) as process:
        client = MatcherClient(str(place / "m.sock"))
        yield Shared(place / "m.sock", place / "m.prom", process, client)
        client.close_now()
        assert process.poll() is None


@pytest.fixture
def client(socket_path: Path) -> Iterator[MatcherClient]:
    client = MatcherClient(str(socket_path))
    yield client
    client.close_now()


def ids(answer: Answer) -> list[int]:
    return [match.recording_id for match in answer.matches]


def test_matcher_names_a_recording_or_the_reason_for_none(shared: Shared) -> None:
    answer = shared.client.match_now([CATALOG[7][100:300]])
    assert ids(answer) == [7]
    assert answer.matches[0].confidence == 1.0
    assert answer.matches[0].offset_seconds == pytest.approx(100 * 1365 / 11025)
    assert shared.client.match_now([recording(999)[:200]]).reason is Reason.NOT_FOUND
    assert shared.client.match_now([CATALOG[7][:4]]).reason is Reason.TOO_SHORT
    assert ids(shared.client.match_now([CATALOG[8][:200]], duration_seconds=180)) == [8]
    assert oct(shared.path.stat().st_mode)[-3:] == "700"


def test_concurrent_questions_on_few_connections_get_their_own_answers(shared: Shared) -> None:
    async def ask_all() -> list[list[int]]:
        client = MatcherClient(str(shared.path))
        found = await asyncio.gather(*(client.match([CATALOG[number][50:250]]) for number in range(1, 21)))
        await client.close()
        return [ids(answer) for answer in found]

    answers: list[list[list[int]]] = []
    threads = [threading.Thread(target=lambda: answers.append(asyncio.run(ask_all()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [[[number] for number in range(1, 21)]] * 3


def test_killed_matcher_is_down_until_it_is_restarted(root: Path, socket_path: Path, client: MatcherClient) -> None:
    async def asked() -> Answer:
        return await client.match([CATALOG[3][:200]])

    with asyncio.Runner() as runner:
        with pytest.raises(MatcherDownError) as before:
            runner.run(asked())
        assert before.value.retry_after >= 1
        with matcher(root, socket_path) as process:
            assert ids(runner.run(asked())) == ids(client.match_now([CATALOG[3][:200]])) == [3]
            os.kill(process.pid, signal.SIGSTOP)
            under_way = runner.get_loop().create_task(asked())
            runner.run(asyncio.sleep(0.05))
            process.kill()
            with pytest.raises(MatcherDownError):
                runner.run(asyncio.wait_for(under_way, PATIENCE_SECONDS))
            with pytest.raises(MatcherDownError):
                runner.run(asked())
        with matcher(root, socket_path):  # the blocking side was not asked in between: it still holds a connection to the one before
            assert ids(client.match_now([CATALOG[3][:200]])) == ids(runner.run(asked())) == [3]
        runner.run(client.close())


def test_full_queue_refuses_at_once_and_expired_questions_are_not_matched(root: Path, socket_path: Path) -> None:
    with matcher(root, socket_path, "--most-waiting", "3") as process:

        async def flood() -> tuple[list[object], list[object]]:
            client = MatcherClient(str(socket_path), patience_seconds=20)
            await client.match([CATALOG[1][:200]])
            os.kill(process.pid, signal.SIGSTOP)  # all of them wait in the socket when it goes on
            waiting = [asyncio.create_task(client.match([CATALOG[1][:200]])) for _ in range(30)]
            hasty = MatcherClient(str(socket_path), patience_seconds=0.2)
            late = await asyncio.gather(hasty.match([CATALOG[1][:200]]), return_exceptions=True)
            os.kill(process.pid, signal.SIGCONT)
            found = await asyncio.gather(*waiting, return_exceptions=True)
            assert ids(await client.match([CATALOG[1][:200]])) == [1]
            await client.close()
            await hasty.close()
            return found, late

        found, late = asyncio.run(flood())
    refused = [one for one in found if isinstance(one, MatcherBusyError)]
    assert refused
    assert len(refused) < 30
    assert all(one.retry_after >= 1 for one in refused)
    assert isinstance(late[0], MatcherBusyError)


def test_matcher_follows_current_keeps_the_old_index_if_the_new_is_broken_and_frees_unused_ones(
    root: Path, socket_path: Path, running: subprocess.Popen[bytes], client: MatcherClient
) -> None:
    log = socket_path.with_suffix(".log")
    assert ids(client.match_now([CATALOG[5][:200]])) == [5]
    (make_index(root, "second", {1: recording(77)}) / "index.json").write_text("{}")
    write_manifest(root / "snapshots" / "second")
    switch(root, "second")
    until(lambda: "recognition index refused" in events(log))
    assert ids(client.match_now([CATALOG[5][:200]])) == [5]

    turned = make_index(root, "turned", {1: recording(77)}) / "base" / "store.npy"
    content = bytearray(turned.read_bytes())
    content[-2] ^= 0xFF  # as good as any other for opening it
    turned.write_bytes(content)
    switch(root, "turned")
    until(lambda: events(log).count("recognition index refused") == 2)
    assert ids(client.match_now([CATALOG[5][:200]])) == [5]

    publish_index(root, "third", {1: recording(88)})
    until(lambda: "recognition index is freed" in events(log))
    assert client.match_now([CATALOG[5][:200]]).reason is Reason.NOT_FOUND
    assert ids(client.match_now([recording(88)[:200]])) == [1]
    maps = Path(f"/proc/{running.pid}/maps").read_text()
    assert "snapshots/third/" in maps
    assert "snapshots/first/" not in maps

    publish_index(root, "fourth", {})
    until(lambda: events(log).count("recognition index is freed") == 2)
    assert client.match_now([recording(88)[:200]]).reason is Reason.NOT_FOUND


def test_matcher_without_an_index_is_down_until_one_is_published(tmp_path: Path, socket_path: Path, client: MatcherClient) -> None:
    command = [sys.executable, "-m", "audio_recognition", "matcher", "--catalog", str(tmp_path / "catalog"), "--socket", str(socket_path)]
    process = subprocess.Popen([*command, "--look-seconds", "0.05"], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        until(socket_path.exists, "its socket", process)
        with pytest.raises(MatcherDownError) as raised:
            client.match_now([CATALOG[1][:200]])
        assert raised.value.retry_after >= 1
        publish_index(tmp_path / "catalog", "first", {4: CATALOG[4]})

        def is_found() -> bool:
            try:
                return ids(client.match_now([CATALOG[4][:200]])) == [4]
            except MatcherDownError:
                return False

        until(is_found, "the recording", process)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "sent",
    [
        (LONGEST_FRAME + 1).to_bytes(4, "little"),
        (5).to_bytes(4, "little") + b"hello",
        (1).to_bytes(4, "little") + b"\x80",
        b"\xff\xff\xff\xff",
        b"\x01",
    ],
    ids=["too long", "no message", "another message", "far too long", "torn"],
)
def test_invalid_question_ends_only_its_connection(shared: Shared, sent: bytes) -> None:
    shared.client.match_now([CATALOG[1][:200]])
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(PATIENCE_SECONDS)
        stranger.connect(str(shared.path))
        stranger.sendall(sent)
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(100) == b""
    assert ids(shared.client.match_now([CATALOG[1][:200]])) == [1]


def test_question_that_cannot_be_matched_fails_alone(shared: Shared) -> None:
    async def ask() -> None:
        client = MatcherClient(str(shared.path))
        try:
            with pytest.raises(MatcherFailedError):
                await client.match([CATALOG[1][:200]], weak_bits=[np.zeros((3, WEAK_BITS), np.uint8)])
            answer = await client.match([CATALOG[1][:200]], weak_bits=[np.zeros((200, WEAK_BITS), np.uint8)], pace=Pace(1.02))
            assert (ids(answer), answer.matches[0].speed) == ([1], 1.02)
        finally:
            await client.close()

    asyncio.run(ask())
    assert ids(shared.client.match_now([CATALOG[1][:200]])) == [1]
    assert "a question could not be matched" in events(shared.path.with_suffix(".log"))


def test_matcher_exits_without_a_socket_and_refuses_a_second_matcher(
    root: Path, socket_path: Path, running: subprocess.Popen[bytes]
) -> None:
    command = [sys.executable, "-m", "audio_recognition", "matcher", "--catalog", str(root), "--socket", str(socket_path)]
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert second.returncode == 1
    assert second.stderr.startswith("error: another matcher listens")
    running.send_signal(signal.SIGTERM)
    assert running.wait(PATIENCE_SECONDS) == 0
    assert not socket_path.exists()


def test_matcher_that_cannot_listen_names_its_socket(root: Path, tmp_path: Path) -> None:
    place = tmp_path / ("x" * 120)
    command = [sys.executable, "-m", "audio_recognition", "matcher", "--catalog", str(root), "--socket", str(place)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert ended.returncode == 1
    assert f"error: cannot listen on {place}: AF_UNIX path too long; name another socket" in ended.stderr


def test_metrics_count_the_outcomes_of_questions(shared: Shared) -> None:
    def read_metrics() -> dict[str, float]:
        lines = shared.metrics.read_text().splitlines() if shared.metrics.exists() else []
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}

    # The metrics file is written now and then, so wait until it contains the earlier questions.
    begun = time.time_ns()
    until(lambda: shared.metrics.exists() and shared.metrics.stat().st_mtime_ns > begun)
    names = [f'matcher_questions_total{{outcome="{one}"}}' for one in ("matched", "not_found", "silence")]
    names += ["matcher_match_seconds_count", "matcher_confidence_count"]
    before = [read_metrics().get(name, 0) for name in names]
    for items in (CATALOG[1][:200], recording(999)[:200], np.full(200, 627964279, np.uint32)):
        shared.client.match_now([items])
    until(lambda: [read_metrics().get(name, 0) - then for name, then in zip(names, before, strict=True)] == [1, 1, 1, 3, 1])
    assert (read_metrics()["matcher_recordings"], read_metrics()["matcher_waiting"], read_metrics()["matcher_refuses_snapshot"]) == (
        len(CATALOG),
        0,
        0,
    )
    assert read_metrics()["matcher_connections"] >= 1


def test_every_metric_is_described_for_the_operator(tmp_path: Path) -> None:
    Meters().write(tmp_path / "matcher.prom")
    names = re.findall(r"^# TYPE (matcher_\w+?)(?:_created)? ", (tmp_path / "matcher.prom").read_text(), flags=re.MULTILINE)
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    assert len(set(names)) >= 8
    assert [name for name in names if f"`{name}`" not in page] == []


def test_hanging_matcher_is_busy_and_a_dropped_question_leaves_nothing(shared: Shared) -> None:
    os.kill(shared.process.pid, signal.SIGSTOP)
    hasty = MatcherClient(str(shared.path), patience_seconds=0.1)
    with pytest.raises(MatcherBusyError):
        hasty.match_now([CATALOG[1][:200]])
    os.kill(shared.process.pid, signal.SIGCONT)
    assert ids(hasty.match_now([CATALOG[2][:200]])) == [2]  # not the answer to the first
    assert ids(shared.client.match_now([CATALOG[1][:200]])) == [1]
    hasty.close_now()
