"""Rate limits: a token bucket per account key, filled at the plan's requests per second, as large as its burst (contract A9).

    limiter = RateLimiter.open("memory://", folder)    # the processes that name this folder count together
    limiter = RateLimiter.open("redis://host:6379/0")  # all processes and machines count together
    allowance = await limiter.take(caller)
    if not allowance.is_allowed: ...                   # 429, Retry-After: allowance.retry_after

`limits` supplies the Redis storage (plain, TLS, sentinel and cluster addresses; script loading). The bucket is ours, because none of its
strategies refills evenly (decision 0013). A bucket is one number, the moment at which it will be full (generic cell rate algorithm). While
Redis fails, each machine counts for itself. Out of scope: credits (ledger/), the buckets that processes of one machine share
(shared_buckets.py).
"""

from __future__ import annotations

import logging
import math
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from limits.storage import storage_from_string

from account_store.errors import InvalidValueError
from account_store.shared_buckets import SharedBuckets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from account_store.api_keys import Caller
    from account_store.plans import Plan

log = logging.getLogger("account_store")

SWEEP_EVERY = 100_000
"""Tokens after which full buckets are dropped: bounds the memory to the keys of that many requests."""
REDIS_SECONDS = 0.25
"""Time without an answer after which Redis counts as away."""
REDIS_PAUSE_SECONDS = 2.0
"""Time for which a machine counts alone before it asks Redis again."""

# KEYS: the bucket. ARGV: seconds per token, tokens of a full bucket. Returns {allowed, seconds until full}, the seconds as text.
# It reads Redis' own clock, because machines with different clocks share a bucket. A full bucket and an absent one mean the same, so the
# key expires when the bucket is full. 0.000001 s of slack: sums of steps are not exact in floating point.
_TAKE = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local step, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local allowed = 0
if full + step <= now + burst * step + 0.000001 then
    full = full + step
    allowed = 1
    redis.call('SET', KEYS[1], string.format('%.6f', full), 'PX', math.ceil((full - now) * 1000) + 1)
end
return {allowed, string.format('%.6f', full - now)}
"""


class Allowance(NamedTuple):
    """The result of one take."""

    is_allowed: bool
    requests_per_second: int
    burst: int
    remaining: int
    """Requests that could come at once now."""
    retry_after: int
    """Whole seconds, at least 1, after which a refused request would pass; 0 when this one passed."""
    full_after: float
    """Seconds until the bucket is full again."""


class Buckets(Protocol):
    """A store of buckets."""

    async def take(self, key_id: int, step: float, burst: int) -> tuple[bool, float]:
        """Take a token of a bucket of `burst` tokens that gains one each `step` seconds; return success and the seconds until full."""

    async def close(self) -> None:
        """Close connections."""


class RateLimiter:
    """Limits the requests of callers."""

    def __init__(self, buckets: Buckets) -> None:
        """Use `open`."""
        self._buckets = buckets

    @classmethod
    def open(cls, url: str = "memory://", folder: Path | None = None) -> Self:
        """Open `memory://`, or a Redis address in the form of `limits`. InvalidValueError: it is neither.

        The processes of one server share `folder`; without one this process counts for itself.
        """
        # For Redis, too: these buckets count while it is away.
        local = open_buckets(folder, "rates")
        return cls(local if url.startswith("memory:") else RedisBuckets(url, local))

    async def take(self, caller: Caller) -> Allowance:
        """Count one request of the caller's key."""
        plan = caller.plan
        return _build_allowance(plan, *await self._buckets.take(caller.key_id, 1 / plan.requests_per_second, plan.burst))

    async def close(self) -> None:
        """Close connections."""
        await self._buckets.close()


def _build_allowance(plan: Plan, is_allowed: bool, full_after: float) -> Allowance:  # noqa: FBT001 - a bucket's result
    rate, burst = plan.requests_per_second, plan.burst
    # The slack of `take`, in tokens: without it 0.9999999 would show as no request left.
    room = burst - full_after * rate + 1e-6
    wait = 0 if is_allowed else max(math.ceil((1 + 1e-6 - room) / rate), 1)
    return Allowance(is_allowed, rate, burst, int(room) if room > 0 else 0, wait, full_after)


class MemoryBuckets:
    """Buckets of this process. Full buckets are dropped now and then."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        """Read the time by `seconds`."""
        self._seconds = seconds
        self._full_at: dict[int, float] = {}
        self._takes = 0

    async def take(self, key_id: int, step: float, burst: int) -> tuple[bool, float]:
        """See `Buckets`."""
        return self.take_now(key_id, step, burst)

    def take_now(self, key_id: int, step: float, burst: int) -> tuple[bool, float]:
        """See `Buckets`. Atomic within one event loop."""
        now = self._seconds()
        full = max(self._full_at.get(key_id, now), now)
        if full + step > now + burst * step + 1e-6:
            return False, full - now
        self._full_at[key_id] = full = full + step
        self._takes += 1
        if self._takes == SWEEP_EVERY:
            self._takes = 0
            self._full_at = {key: moment for key, moment in self._full_at.items() if moment > now}
        return True, full - now

    async def close(self) -> None:
        """Do nothing."""


LocalBuckets = MemoryBuckets | SharedBuckets
"""Buckets of this machine: `take_now` does not wait."""


def open_buckets(folder: Path | None, name: str) -> LocalBuckets:
    """Open the buckets of all processes that name `folder`; those of this process without a folder, or when it has no room."""
    if folder is None:
        return MemoryBuckets()
    try:
        return SharedBuckets(folder / name)
    except OSError as error:
        log.warning("rate limits: no room in %s (%s): each process counts for itself until the server restarts", folder, error)
        return MemoryBuckets()


class RedisBuckets:
    """Buckets in Redis, which machines share; on this machine while Redis does not answer."""

    def __init__(self, url: str, local: LocalBuckets | None = None) -> None:
        """Connect to `redis://`, `rediss://`, `redis+unix://`, `redis+sentinel://` or `redis+cluster://`; else count in `local`."""
        options = {"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": REDIS_SECONDS}
        try:
            storage: Any = storage_from_string(f"async+{url}", implementation="redispy", **options)
            self._take = storage.bridge.get_connection().register_script(_TAKE)
        except Exception as error:  # noqa: BLE001 - nothing connects yet, and the errors of the libraries have no common class
            shown = re.sub(r"//.*@", "//...@", url)  # a password in it is nobody's business
            reason = " ".join(str(error).replace("async+", "").replace(url, shown).split())
            raise InvalidValueError(f"rate limits are kept in memory:// or redis://host:port, not {shown!r}: {reason}") from None
        self._storage = storage
        self._meanwhile = local or MemoryBuckets()
        self._again_at = 0.0

    async def take(self, key_id: int, step: float, burst: int) -> tuple[bool, float]:
        """See `Buckets`."""
        if time.monotonic() >= self._again_at:
            try:
                allowed, full_after = await self._take(keys=[self._storage.bridge.prefixed_key(str(key_id))], args=[step, burst])
                return bool(allowed), float(full_after)
            # A request is not refused because Redis is away: this machine counts alone for a while. The pause spares
            # other requests the wait of REDIS_SECONDS.
            except self._storage.base_exceptions as error:
                log.warning("rate limits: Redis does not answer, this machine counts for itself: %s", error)
                self._again_at = time.monotonic() + REDIS_PAUSE_SECONDS
        return self._meanwhile.take_now(key_id, step, burst)

    async def close(self) -> None:
        """Close the connections."""
        await self._meanwhile.close()
        await self._storage.bridge.get_connection().aclose()
