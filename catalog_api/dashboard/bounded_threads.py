"""Threads of the dashboard's own, for work that blocks: so many at once, so many waiting, so long.

The default pool of the event loop is left to /v1, whose key look-ups must not wait behind pages. Work that has begun cannot be stopped:
past the deadline its visitor is told, it ends by itself, and until then it takes its place in the lane.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class BusyError(Exception):
    """Too many wait for the lane already."""


class TooSlowError(Exception):
    """The work was not done by its deadline."""


class Lane:
    """`threads` at once, `waiting` more in line, each done within `seconds` of being asked for."""

    def __init__(self, name: str, *, threads: int, waiting: int, seconds: float) -> None:
        """The threads start with the first work."""
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"dashboard-{name}")
        self._places = threading.BoundedSemaphore(threads + waiting)
        self._seconds = seconds

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` returns or raises. BusyError, TooSlowError."""
        if not self._places.acquire(blocking=False):
            raise BusyError
        job = self._pool.submit(work, *args, **kwargs)
        job.add_done_callback(lambda _job: self._places.release())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job), self._seconds)
        except TimeoutError:
            if job.done() and not job.cancelled():
                raise  # the work's own
            raise TooSlowError from None

    def close(self) -> None:
        """Drop what waits; what has begun ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
