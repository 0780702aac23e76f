from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from account_store import Caller, rate_limits
from account_store.errors import InvalidValueError
from account_store.plans import Terms, load_plans
from account_store.rate_limits import MemoryBuckets, RateLimiter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def caller(key_id: int, rate: int = 5) -> Caller:
    return Caller(1, key_id, load_plans().find_plan("custom", Terms(1000, Decimal(1), rate)), has_card=False)


class Seconds:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def test_burst_passes_at_once_and_then_one_request_for_each_token_that_comes() -> None:
    seconds = Seconds()
    limiter = RateLimiter(MemoryBuckets(seconds))

    async def run() -> None:
        burst = [await limiter.take(caller(1)) for _ in range(11)]
        assert [one.is_allowed for one in burst] == [True] * 10 + [False]
        assert [one.remaining for one in burst] == [*range(9, -1, -1), 0]
        assert (burst[-1].retry_after, burst[-1].requests_per_second, burst[-1].burst) == (1, 5, 10)
        assert burst[-1].full_after == pytest.approx(2.0)
        assert (await limiter.take(caller(2))).is_allowed, "each key has a bucket of its own"
        seconds.now += 0.19
        assert not (await limiter.take(caller(1))).is_allowed
        seconds.now += 0.02
        assert (await limiter.take(caller(1))).is_allowed, "a refused request took nothing"
        seconds.now += 1
        assert [(await limiter.take(caller(1))).is_allowed for _ in range(6)] == [True] * 5 + [False]
        seconds.now += 100
        assert (await limiter.take(caller(1))).remaining == 9, "never more than the burst"

    asyncio.run(run())


@settings(deadline=None)
@given(rate=st.integers(1, 300), waits=st.lists(st.integers(0, 2000), max_size=60))
def test_bucket_counts_as_one_of_whole_tokens_does(rate: int, waits: list[int]) -> None:
    """The oracle holds milli-tokens; it may differ by what a float loses at the very edge, which whole milliseconds do not reach."""
    seconds = Seconds()
    seconds.now = 0.0
    buckets = MemoryBuckets(seconds)
    burst, milli = 2 * rate, 2 * rate * 1000
    for wait in waits:
        seconds.now += wait / 1000
        milli = min(milli + wait * rate, burst * 1000)
        is_allowed, full_after = asyncio.run(buckets.take(1, 1 / rate, burst))
        assert is_allowed == (milli >= 1000)
        milli -= 1000 * is_allowed
        assert full_after == pytest.approx((burst * 1000 - milli) / 1000 / rate, abs=1e-4)


def test_buckets_that_are_full_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "SWEEP_EVERY", 100)
    seconds = Seconds()
    buckets = MemoryBuckets(seconds)
    for key_id in range(1000):
        seconds.now += 0.1
        asyncio.run(buckets.take(key_id, 0.2, 10))
    assert len(buckets._full_at) <= 102


def test_addresses_of_other_stores_are_refused() -> None:
    for address in ("memcached://localhost", "sqlite:///x", "nonsense"):
        with pytest.raises(InvalidValueError, match="rate limits are kept in"):
            RateLimiter.open(address)


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    server = shutil.which("redis-server")
    if server is None:
        pytest.skip("no redis-server on this machine (Debian: apt install redis-server)")
    socket = tmp_path / "r.sock"
    command = [server, "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not socket.exists():
        time.sleep(0.02)
    yield f"redis+unix://{socket}"
    process.terminate()
    process.wait()


def test_processes_that_share_redis_share_the_buckets(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "REDIS_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(rate_limits, "REDIS_SECONDS", 20.0)  # on a machine that is busy with other things, too

    async def run() -> None:
        one, other = RateLimiter.open(redis_url), RateLimiter.open(redis_url)
        taken = await asyncio.gather(*[limiter.take(caller(7, rate=1)) for limiter in (one, other) * 5])
        assert sum(allowance.is_allowed for allowance in taken) == 2, "two nodes, one bucket of two tokens"
        refused = await other.take(caller(7, rate=1))
        assert (refused.is_allowed, refused.remaining, refused.retry_after) == (False, 0, 1)
        assert 1.5 < refused.full_after <= 2
        assert (await other.take(caller(8, rate=200))).remaining == 399
        await one.close()
        await other.close()

    asyncio.run(run())


def test_redis_that_takes_connections_and_answers_nothing_is_not_waited_for() -> None:
    """As one that is frozen (SIGSTOP): the kernel goes on taking connections and bytes in for it."""

    async def run() -> list[bool]:
        with socket.create_server(("127.0.0.1", 0)) as frozen:
            limiter = RateLimiter.open(f"redis://127.0.0.1:{frozen.getsockname()[1]}/0")
            taken = await asyncio.wait_for(asyncio.gather(*[limiter.take(caller(7, rate=1)) for _ in range(3)]), 60)
            await limiter.close()
            return [allowance.is_allowed for allowance in taken]

    assert asyncio.run(run()) == [True, True, False]


def test_process_counts_for_itself_without_redis(tmp_path: Path) -> None:
    limiter = RateLimiter.open(f"redis+unix://{tmp_path}/nobody.sock")

    async def run() -> list[bool]:
        allowed = [(await limiter.take(caller(7, rate=1))).is_allowed for _ in range(3)]
        await limiter.close()
        return allowed

    assert asyncio.run(run()) == [True, True, False]
