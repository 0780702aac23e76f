"""When a delivery is tried again, and how long an endpoint that fails is left alone.

A delivery is tried ten times within a day, at the offsets of Standard Webhooks 1.0 from the first attempt. An endpoint that failed rests
for a moment, doubled with every failure: one that is down costs an attempt every few minutes however much waits for it, and what waits
keeps its tries for when it is up again. What must not live here: the database.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

OFFSETS = tuple(
    timedelta(seconds=seconds) for seconds in (0, 5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
"""Of each attempt from the first. After the last a delivery is given up."""
JITTER = 0.1
"""The share by which a wait is shortened or lengthened at random, so that what failed together is not tried again together."""
LONGEST_REST = timedelta(minutes=5)
LONGEST_ASKED_REST = timedelta(days=1)
"""A receiver that asks for more is tried again after so long all the same."""
FAILING_FOR = timedelta(days=5)
"""An endpoint that failed for so long, without one success, is disabled."""
_RANDOM = secrets.SystemRandom()


def wait_after(tries: int) -> timedelta | None:
    """How long after an attempt that failed, the `tries`-th (from 1), comes the next; None when it was the last."""
    if tries >= len(OFFSETS):
        return None
    return (OFFSETS[tries] - OFFSETS[tries - 1]) * _RANDOM.uniform(1 - JITTER, 1 + JITTER)


def rest_after(failures: int) -> timedelta:
    """How long an endpoint rests after so many (from 1) failures on end."""
    return min(LONGEST_REST, timedelta(seconds=2 ** min(failures - 1, 30)))
