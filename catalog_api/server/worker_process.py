"""One worker process: makes the application from the environment and keeps house beside it while it serves.

`server/process_supervisor.py` starts workers with the settings in the environment. What must not live here: answering.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import resource
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from catalog_api.app import build_app
from catalog_api.server.connection_registry import Addresses, networks
from catalog_api.server.http_protocol import GuardedProtocol, Limits, sweep
from catalog_api.server.parent_watchdog import end_with
from catalog_api.server.request_statistics import REPORTS_FOLDER, Traffic, store
from catalog_api.settings import load_settings
from catalog_store.log import log_json
from catalog_store.log_stream import write_to_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from litestar.types import ASGIApp

    from catalog_api.live_catalog import LiveCatalog

log = structlog.get_logger("catalog_api")

LINES_WAIT_SECONDS = 0.2
REPORT_SECONDS = 1.0
_OTHER_FILES = 512
"""File handles of a worker beside its connections: two snapshots' files while one follows another, databases, uploads."""
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
    log_json(settings.log_level, quiet=["uvicorn"])  # its coming and going is told by server/process_supervisor.py and live_catalog.py
    GuardedProtocol.limits = Limits(
        head_seconds=settings.head_seconds,
        body_seconds=settings.body_seconds,
        read_seconds=settings.read_seconds,
        idle_seconds=settings.idle_seconds,
        connections=connections_that_fit(settings.connections),
        connections_per_address=settings.connections_per_address,
    )
    GuardedProtocol.addresses = Addresses(networks(settings.proxies))
    tells_requests = settings.log_requests and settings.log_level in {"debug", "info"}
    traffic = Traffic(write_to_log if tells_requests else None)
    return build_app(settings, traffic, housekeeping)


def connections_that_fit(connections: int) -> int:
    """Ask the system for as many file handles as that takes; how many connections fit into what it gives.

    A worker without a handle left can take nobody in, not even to refuse them or to have idle ones give way.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    given = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (given, hard))
    if given >= wanted:
        return connections
    fitting = max(given - _OTHER_FILES, given // 2)
    log.warning("fewer connections than set: the limit of open files is too low", connections=connections, taken=fitting, files=given)
    return fitting


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
            store(traffic.report(connections=len(GuardedProtocol.everyone), live=live), Path(folder))
