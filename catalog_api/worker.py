"""One worker process: makes the application from the environment and keeps house beside it while it serves.

`supervisor.py` starts workers with the settings in the environment. What must not live here: answering.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from catalog_api.app import build_app
from catalog_api.edge import GuardedProtocol, Limits, sweep
from catalog_api.settings import load_settings
from catalog_api.tied import end_with
from catalog_api.traffic import REPORTS_FOLDER, Traffic, store
from catalog_store.log import log_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from litestar.types import ASGIApp

    from catalog_api.live_catalog import LiveCatalog

LINES_WAIT_SECONDS = 0.2
REPORT_SECONDS = 1.0
_COLLECT_AFTER = 50_000
"""Objects made before the collector looks at them: a request makes hundreds and no cycles."""
_SWITCH_SECONDS = 0.0005
"""How long a thread that wants the interpreter waits for a busy one. The one that books credits wants it some ten times a transaction, and
answers wait for it: with Python's own 5 ms, ten times 5 ms beside a busy loop."""


def application() -> ASGIApp:
    """The application of this worker."""
    if supervisor := multiprocessing.parent_process():
        end_with(supervisor.pid or 0)
    settings = load_settings(os.environ)
    log_json(settings.log_level, quiet=["uvicorn"])  # its coming and going is told by supervisor.py and live_catalog.py
    GuardedProtocol.limits = Limits(
        head_seconds=settings.head_seconds,
        body_seconds=settings.body_seconds,
        read_seconds=settings.read_seconds,
        idle_seconds=settings.idle_seconds,
        connections=settings.connections,
    )
    tells_requests = settings.log_requests and settings.log_level in {"debug", "info"}
    traffic = Traffic(partial(os.write, sys.stderr.fileno()) if tells_requests else None)
    return build_app(settings, traffic, housekeeping)


@asynccontextmanager
async def housekeeping(traffic: Traffic, live: LiveCatalog) -> AsyncIterator[None]:
    """What goes on beside the requests: slow clients are ended, lines and reports written."""
    # What is loaded now lives as long as the process: the collector need not walk it on every round.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 50)
    sys.setswitchinterval(_SWITCH_SECONDS)
    tasks = [asyncio.create_task(one) for one in (sweep(GuardedProtocol.everyone), _flush(traffic), _report(traffic, live))]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        traffic.flush()
        _store(traffic, live)


async def _flush(traffic: Traffic) -> None:
    while True:
        await asyncio.sleep(LINES_WAIT_SECONDS)
        traffic.flush()


async def _report(traffic: Traffic, live: LiveCatalog) -> None:
    while True:
        _store(traffic, live)
        await asyncio.sleep(REPORT_SECONDS)


def _store(traffic: Traffic, live: LiveCatalog) -> None:
    folder = os.environ.get(REPORTS_FOLDER)
    if folder:
        # A full disk must not stop the server; the metrics then stand still, which an alert on their age shows.
        with suppress(OSError):
            store(traffic.report(connections=len(GuardedProtocol.everyone), snapshot=live.snapshot, refused=live.refused), Path(folder))
