"""Learns what aired recordings are called before a report asks: a worker's first over a snapshot would spend a second on it.

At the start for a moment before the worker takes requests, then beside them, some hundred at a time in the thread that makes reports: one
that is asked for meanwhile is made in between. What must not live here: where names are kept (sheets.py), how they are read (current.py).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from catalog_api.airplay.stream_sheets import MOST_DAYS, learn
from catalog_api.airplay.streamed_answer import run_in_report_thread
from catalog_api.airplay.track_names import MOST_NAMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from catalog_api.service import Service

log = structlog.get_logger("catalog_api")

_DAYS = MOST_DAYS + 31
"""Whole months, asked for in the month behind them."""
_STARTING_SECONDS = 5.0
"""Some fifty streams' three months take one to three."""
_AGAIN_SECONDS = 900.0
"""After which what has aired since is learnt, too."""
_AT_ONCE = 500
"""Names, in some 10 ms: a report may have to wait so long."""
_MOST_LEARNED = MOST_NAMES * 3 // 4
"""The rest is for reports: with more than MOST_NAMES all are forgotten."""
_MOST_STREAMS = 500
"""Whose days are read for it, at a few milliseconds each."""


@asynccontextmanager
async def preload_names(service: Service) -> AsyncIterator[None]:
    """Around the time in which requests are taken; begins when the names are known, or in some seconds."""
    is_first = asyncio.Event()
    task = asyncio.create_task(_keep_learned(service, is_first))
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(is_first.wait(), _STARTING_SECONDS)
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _keep_learned(service: Service, is_first: asyncio.Event) -> None:
    """For each snapshot, and again and again: what is known by then costs nothing, what has aired since is little."""
    learned, again_at = None, 0.0
    while True:
        snapshot, now = service.live.snapshot, time.monotonic()
        if snapshot is not None and (snapshot != learned or now >= again_at):
            learned, again_at = snapshot, now + _AGAIN_SECONDS
            try:
                await _learn(service)
            except Exception as error:  # noqa: BLE001 - whatever it is, a report does without
                log.warning("names of what aired are left to the first report", snapshot=snapshot[0], reason=str(error))
        is_first.set()
        await asyncio.sleep(service.settings.look_seconds)


async def _learn(service: Service) -> None:
    known: set[int] = set()
    streams = service.accounts.airplay.recordings(_DAYS)
    for _ in range(_MOST_STREAMS):
        aired = await asyncio.to_thread(next, streams, None)
        if aired is None or len(known) >= _MOST_LEARNED:
            return
        new = [one for one in aired.tolist() if one not in known][: _MOST_LEARNED - len(known)]
        known.update(new)
        for start in range(0, len(new), _AT_ONCE):
            await run_in_report_thread(partial(learn, service, new[start : start + _AT_ONCE]))
