"""Retries of deliveries and rests of failing endpoints.

A delivery has ten attempts within a day, at the offsets of Standard Webhooks 1.0 from the first. After each failure an endpoint
rests, twice as long as before. So an endpoint that is down costs an attempt every few minutes for any number of deliveries, and waiting
deliveries keep their attempts until it is up. Out of scope: the database.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

OFFSETS = tuple(
    timedelta(seconds=seconds) for seconds in (0, 5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
"""Time of each attempt from the first. After the last one a delivery fails."""
JITTER = 0.1
"""Random share of a wait, more or less: deliveries that failed together are not repeated together."""
LONGEST_REST = timedelta(minutes=5)
LONGEST_REQUESTED_REST = timedelta(days=1)
"""Longest pause that a receiver gets by asking for it."""
FAILING_FOR = timedelta(days=5)
"""Time of failures without a success after which an endpoint is disabled."""
_RANDOM = secrets.SystemRandom()


def compute_wait(tries: int) -> timedelta | None:
    """Return the wait after the `tries`-th failed attempt (from 1); None after the last one."""
    if tries >= len(OFFSETS):
        return None
    return (OFFSETS[tries] - OFFSETS[tries - 1]) * _RANDOM.uniform(1 - JITTER, 1 + JITTER)


def compute_rest(failures: int) -> timedelta:
    """Return the rest of an endpoint after a number of consecutive failures (from 1)."""
    # The bound of 30 keeps the power small: timedelta overflows from 2**47 s on.
    return min(LONGEST_REST, timedelta(seconds=2 ** min(failures - 1, 30)))
