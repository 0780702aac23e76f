"""Read the names of aired recordings before a report asks for them. The first report on a snapshot would spend a second on it.

It begins shortly before the worker accepts requests, then goes on beside them: some hundred names at a time, in the thread of the reports,
so that a report can run in between. Out of scope: where names are kept (stream_sheets.py), how they are read (track_names.py).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from catalog_api.airplay.stream_sheets import MOST_DAYS, remember_names
from catalog_api.airplay.streamed_answer import run_in_report_thread
from catalog_api.airplay.track_names import MOST_NAMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from catalog_api.service import Service

log = structlog.get_logger("catalog_api")

_DAYS = MOST_DAYS + 31
"""Reports of whole months may be requested in the following month."""
_STARTING_SECONDS = 5.0
"""Three months of some fifty streams take one to three."""
_AGAIN_SECONDS = 900.0
"""The interval at which new airings are preloaded."""
_BATCH_SIZE = 500
"""Names in one call: some 10 ms, for which a report may have to wait."""
_MOST_PRELOADED = MOST_NAMES * 3 // 4
"""The rest is for reports: above MOST_NAMES the cache starts again."""
_MOST_STREAMS = 500
"""Streams whose days are read, at a few milliseconds each."""


@asynccontextmanager
async def preload_names(service: Service) -> AsyncIterator[None]:
    """Preload around the time in which requests are accepted. The block begins when the names are known, or after some seconds."""
    is_first = asyncio.Event()
    task = asyncio.create_task(_keep_preloaded(service, is_first))
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(is_first.wait(), _STARTING_SECONDS)
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _keep_preloaded(service: Service, is_first: asyncio.Event) -> None:
    """Preload for each snapshot, and again at an interval: known names cost nothing, and few are new."""
    preloaded, again_at = None, 0.0
    while True:
        snapshot, now = service.live.snapshot, time.monotonic()
        if snapshot is not None and (snapshot != preloaded or now >= again_at):
            preloaded, again_at = snapshot, now + _AGAIN_SECONDS
            try:
                await _preload(service)
            except Exception as error:  # noqa: BLE001 - a report reads the names itself
                log.warning("the names of airings were not preloaded; the first report reads them", snapshot=snapshot[0], reason=str(error))
        # Set after a failure too: a database that is away must not keep the worker from starting.
        is_first.set()
        await asyncio.sleep(service.settings.look_seconds)


async def _preload(service: Service) -> None:
    known: set[int] = set()
    streams = service.accounts.airplay.iterate_recordings(_DAYS)
    for _ in range(_MOST_STREAMS):
        # In a thread of its own: this read waits for the database, and reports must not wait with it.
        aired = await asyncio.to_thread(next, streams, None)
        if aired is None or len(known) >= _MOST_PRELOADED:
            return
        new = [one for one in aired.tolist() if one not in known][: _MOST_PRELOADED - len(known)]
        known.update(new)
        for start in range(0, len(new), _BATCH_SIZE):
            await run_in_report_thread(partial(remember_names, service, new[start : start + _BATCH_SIZE]))
