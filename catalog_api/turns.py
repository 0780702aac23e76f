"""Turns of long questions in the event loop: after some milliseconds of them everybody else has a round.

asyncio does all that is ready in one round of its loop. Fifty searches that came together would be worked on, then booked, then answered:
the first with the last. One a round costs a fifth more in small transactions of the ledger. What must not live here: what takes turns
(metering.py).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROUND_SECONDS = 0.005
"""Of long questions, after which the loop goes round."""


class Turns:
    """Of one event loop. First come, first served."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._lock = asyncio.Lock()
        self._seconds = 0.0
        """Worked since the loop last went round for others."""

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Around work that does not wait for anything."""
        async with self._lock:
            started = time.perf_counter()
            try:
                yield
            finally:
                self._seconds += time.perf_counter() - started
                if self._seconds >= ROUND_SECONDS:
                    self._seconds = 0.0
                    await asyncio.sleep(0)
