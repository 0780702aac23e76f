"""Token buckets in a file that the workers of one machine map into memory, so that each sees the tokens of all.

    buckets = SharedBuckets(folder / "buckets")          # any process may be the first
    is_allowed, full_after = buckets.take_now(key, 0.2, 10)

The file is a table of fixed size. A key belongs to one set of `WAYS` slots; a slot is the key and the moment at which its bucket will be
full. When a set has no free slot, the bucket nearest to full is replaced: it loses least. Taking a token holds a record lock of the kernel
on the set for some microseconds. A process that dies drops its locks, and nobody waits longer than LOCK_WAIT_SECONDS for a stopped one.
Out of scope: plans, callers and refusals (rate_limits.py).
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETS: Final = 8192
WAYS: Final = 8
"""65,536 buckets in 1 MiB. With 10,000 keys in use at once a set holds 1.2 buckets on average, and more than 8 once in 100,000 sets."""
LOCK_WAIT_SECONDS: Final = 0.02
"""After that a token is taken without the lock: its holder was stopped, and one token taken twice is better than a standstill."""
_SLOTS: Final = struct.Struct("<" + "qd" * WAYS)
_SLOT: Final = struct.Struct("<qd")
_MIX: Final = 0x9E3779B97F4A7C15
"""Spreads consecutive keys over the sets (Fibonacci hashing)."""
_SLACK_SECONDS: Final = 1e-6
"""Rounding of sums of steps."""
_FAR_SECONDS: Final = 1e-3
"""A bucket fuller than its plan allows by more than this is not a bucket of this plan and this boot."""


class SharedBuckets:
    """The table in one file. For one thread of each process: the process owns a lock."""

    def __init__(self, file: Path, seconds: Callable[[], float] = time.monotonic) -> None:
        """Open the file, or make it, 0600. OSError: there is no room. `seconds` is a clock that all processes share."""
        self._seconds = seconds
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Allocate now: on a full disk the first write into a hole would kill the process.
            os.posix_fallocate(self._file, 0, SETS * _SLOTS.size)
            self._table = mmap.mmap(self._file, SETS * _SLOTS.size)
        except BaseException:
            os.close(self._file)
            raise

    async def take(self, key: int, step: float, burst: int) -> tuple[bool, float]:
        """Take a token, see `take_now`."""
        return self.take_now(key, step, burst)

    def take_now(self, key: int, step: float, burst: int) -> tuple[bool, float]:
        """Take a token of bucket `key` (1 to 2^63 - 1); return whether there was one, and the seconds until the bucket is full."""
        # The upper 13 bits of the 64-bit product number the 8192 sets: in multiplicative hashing they are mixed best.
        place = ((key * _MIX & 0xFFFFFFFFFFFFFFFF) >> 51) * _SLOTS.size
        is_locked = self._lock(place)
        try:
            return self._take(place, key, step, burst)
        finally:
            if is_locked:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def _take(self, place: int, key: int, step: float, burst: int) -> tuple[bool, float]:
        slots = _SLOTS.unpack_from(self._table, place)
        keys = slots[::2]
        # The clock is read under the lock, so that it never runs backwards from one process to the next.
        now = self._seconds()
        if key in keys:
            slot = keys.index(key)
            full = max(slots[2 * slot + 1], now)
            if full > now + burst * step + _FAR_SECONDS:  # written before a reboot, or under another plan
                full = now
        else:
            # A free slot holds 0, the earliest moment of all. Otherwise the bucket nearest to full loses least.
            slot = min(range(WAYS), key=slots[1::2].__getitem__)
            full = now
        if full + step > now + burst * step + _SLACK_SECONDS:
            return False, full - now
        full += step
        _SLOT.pack_into(self._table, place + slot * _SLOT.size, key, full)
        return True, full - now

    def _lock(self, place: int) -> bool:
        until = 0.0
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except OSError:  # another process holds it
                now = time.monotonic()
                until = until or now + LOCK_WAIT_SECONDS
                if now > until:
                    return False
                # The holder needs some microseconds: a sleep would last longer than the wait.
                os.sched_yield()
            else:
                return True

    async def close(self) -> None:
        """Unmap and close the file; it stays for the others."""
        self._table.close()
        os.close(self._file)
