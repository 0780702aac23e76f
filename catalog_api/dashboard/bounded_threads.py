"""Threads of the dashboard for blocking work, with a bound on running and waiting jobs and a deadline.

The default pool of the event loop stays free for /v1, whose key look-ups must not wait behind pages. A thread cannot be stopped: after the
deadline the visitor gets an answer, while the work ends by itself and occupies its place until then.
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
    """Too many jobs wait already."""


class TooSlowError(Exception):
    """The work was not done by its deadline."""


class BoundedThreads:
    """`threads` jobs at once, `waiting` more in the queue, each done within `seconds` of its submission."""

    def __init__(self, name: str, *, threads: int, waiting: int, seconds: float) -> None:
        """Create the pool; its threads start with the first job."""
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"dashboard-{name}")
        self._places = threading.BoundedSemaphore(threads + waiting)
        self._seconds = seconds

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return or raise what `work` returns or raises. BusyError, TooSlowError."""
        if not self._places.acquire(blocking=False):
            raise BusyError
        job = self._pool.submit(work, *args, **kwargs)
        # Released by the job, not by the waiter: a job that outlives its deadline still occupies a thread.
        job.add_done_callback(lambda _job: self._places.release())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job), self._seconds)
        except TimeoutError:
            if job.done() and not job.cancelled():
                raise  # a TimeoutError of the work itself
            raise TooSlowError from None

    def close(self) -> None:
        """Drop what waits; running work ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
