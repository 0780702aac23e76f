from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from account_store import Caller
from account_store.plans import Terms, load_plans
from account_store.rate_limits import MemoryBuckets, RateLimiter
from account_store.shared_buckets import SETS, WAYS, SharedBuckets

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
TAKING = """
import sys
from pathlib import Path
from account_store.shared_buckets import SharedBuckets
buckets = SharedBuckets(Path(sys.argv[1]))
print(flush=True)
sys.stdin.readline()
print(sum(buckets.take_now(7, 3600.0, 500)[0] for _ in range(int(sys.argv[2]))), flush=True)
sys.stdin.readline()
"""
HOLDING = """
import fcntl, sys
from pathlib import Path
from account_store.shared_buckets import SharedBuckets
buckets = SharedBuckets(Path(sys.argv[1]))
buckets.take_now(7, 1.0, 2)
fcntl.lockf(buckets._file, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.readline()
"""


class Seconds:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def started(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code, str(tmp_path / "rates"), *map(str, arguments)]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        return process

    return start


def test_four_processes_take_exactly_the_tokens_of_one_bucket(started: Callable[..., subprocess.Popen[str]]) -> None:
    processes = [started(TAKING, 2000) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    taken = [int(process.stdout.readline()) for process in processes if process.stdout is not None]
    for process in processes:
        process.communicate("end\n")
    assert sum(taken) == 500


def test_process_killed_with_a_lock_leaves_no_lock_and_its_tokens_stay_taken(
    tmp_path: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    process = started(HOLDING)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    buckets = SharedBuckets(tmp_path / "rates")
    fcntl.lockf(buckets._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert [buckets.take_now(7, 3600.0, 2)[0] for _ in range(2)] == [True, False], "one of the two tokens is gone"


def test_process_stopped_with_a_lock_blocks_no_other(tmp_path: Path, started: Callable[..., subprocess.Popen[str]]) -> None:
    process = started(HOLDING)
    process.send_signal(signal.SIGSTOP)
    try:
        buckets = SharedBuckets(tmp_path / "rates")
        assert [buckets.take_now(8, 3600.0, 2)[0] for _ in range(3)] == [True, True, False]
    finally:
        process.kill()
        process.communicate()


@settings(deadline=None, max_examples=40)
@given(rate=st.integers(1, 300), waits=st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 5)), max_size=60))
def test_shared_buckets_answer_as_those_of_one_process_do(
    tmp_path_factory: pytest.TempPathFactory, rate: int, waits: list[tuple[int, int]]
) -> None:
    seconds = Seconds()
    one, other = SharedBuckets(tmp_path_factory.mktemp("rates") / "rates", seconds), MemoryBuckets(seconds)
    for wait, key in waits:
        seconds.now += wait / 1000
        assert one.take_now(key, 1 / rate, 2 * rate) == pytest.approx(other.take_now(key, 1 / rate, 2 * rate))


def test_flood_of_keys_takes_no_more_room_and_leaves_the_emptiest_buckets_alone(tmp_path: Path) -> None:
    seconds = Seconds()
    buckets = SharedBuckets(tmp_path / "rates", seconds)
    size = (tmp_path / "rates").stat().st_size
    for _ in range(10):
        assert buckets.take_now(1, 60.0, 10)[0]
    for key in range(2, 2 * SETS * WAYS):
        buckets.take_now(key, 0.001, 1)
        seconds.now += 0.000001
    assert not buckets.take_now(1, 60.0, 10)[0]
    assert (tmp_path / "rates").stat().st_size == size


def test_bucket_of_an_earlier_boot_is_ignored(tmp_path: Path) -> None:
    seconds = Seconds()
    seconds.now = 1e7
    SharedBuckets(tmp_path / "rates", seconds).take_now(1, 1.0, 2)
    seconds.now = 10.0
    buckets = SharedBuckets(tmp_path / "rates", seconds)
    assert [buckets.take_now(1, 1.0, 2)[0] for _ in range(3)] == [True, True, False]
    seconds.now += 1.0
    assert buckets.take_now(1, 1.0, 2)[0]


def test_table_is_its_owners_alone_and_has_no_holes(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        SharedBuckets(tmp_path / "rates")
    finally:
        os.umask(before)
    found = (tmp_path / "rates").stat()
    assert found.st_mode & 0o777 == 0o600
    assert found.st_blocks * 512 >= found.st_size


def test_process_counts_for_itself_when_the_table_has_no_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    limiter = RateLimiter.open("memory://", tmp_path / "not there")
    caller = Caller(1, 7, load_plans().find_plan("custom", Terms(1000, Decimal(1), 1)), has_card=False)
    taken = [asyncio.run(limiter.take(caller)) for _ in range(3)]
    assert [one.is_allowed for one in taken] == [True, True, False]
    assert "each process counts for itself" in caplog.text
