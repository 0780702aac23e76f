"""One worker process: build the application from the environment, run periodic tasks beside it.

process_supervisor.py starts workers with the settings in the environment. Out of scope: answers.
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
from catalog_api.server.connection_registry import ConnectionRegistry, parse_networks
from catalog_api.server.http_protocol import GuardedProtocol, Limits, sweep
from catalog_api.server.parent_watchdog import end_with_parent
from catalog_api.server.request_statistics import REPORTS_FOLDER, RequestStatistics, write_report
from catalog_api.settings import load_settings
from catalog_store.log import log_json
from catalog_store.log_stream import write_to_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from litestar.types import ASGIApp

    from catalog_api.live_catalog import LiveCatalog

log = structlog.get_logger("catalog_api")

FLUSH_SECONDS = 0.2
REPORT_SECONDS = 1.0
_OTHER_FILES = 512
"""File handles of a worker beside its connections: the files of two snapshots during a change, databases, uploads."""
_COLLECT_AFTER = 50_000
"""New objects before a garbage collection: a request makes hundreds and no cycles."""
_SWITCH_SECONDS = 0.0005
"""The time that a thread waits for the interpreter lock beside a busy one. The thread that books credits takes the lock some ten times a
transaction, and answers wait for it: with Python's default of 5 ms that would be 50 ms beside a busy loop."""


def build_application() -> ASGIApp:
    """Build the application of this worker."""
    if supervisor := multiprocessing.parent_process():
        end_with_parent(supervisor.pid or 0)
    settings = load_settings(os.environ)
    log_json(settings.log_level, quiet=["uvicorn"])  # process_supervisor.py and live_catalog.py log its start and stop
    GuardedProtocol.limits = Limits(
        head_seconds=settings.head_seconds,
        body_seconds=settings.body_seconds,
        read_seconds=settings.read_seconds,
        idle_seconds=settings.idle_seconds,
        connections=raise_file_limit(settings.connections),
        connections_per_address=settings.connections_per_address,
    )
    GuardedProtocol.registry = ConnectionRegistry(parse_networks(settings.proxies))
    is_logged = settings.log_requests and settings.log_level in {"debug", "info"}
    statistics = RequestStatistics(write_to_log if is_logged else None)
    return build_app(settings, statistics, run_periodic_tasks)


def raise_file_limit(connections: int) -> int:
    """Raise the limit of open files for this many connections; return how many fit.

    A worker without a free file handle cannot accept a connection, not even to refuse it or to close an idle one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    # RLIM_INFINITY is -1, so it is not compared as a number.
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    if granted >= wanted:
        return connections
    # Below _OTHER_FILES handles, half of them serve better than no connection at all.
    fitting = max(granted - _OTHER_FILES, granted // 2)
    log.warning("fewer connections than set: the limit of open files is too low", connections=connections, taken=fitting, files=granted)
    return fitting


@asynccontextmanager
async def run_periodic_tasks(statistics: RequestStatistics, live: LiveCatalog) -> AsyncIterator[None]:
    """Run what goes on beside the requests: disconnect slow clients, write log lines and reports."""
    # Everything loaded by now lives as long as the process: the collector need not visit it again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 50)
    sys.setswitchinterval(_SWITCH_SECONDS)
    tasks = [asyncio.create_task(one) for one in (sweep(GuardedProtocol.open_connections), _flush(statistics), _report(statistics, live))]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # The last lines and counts: the metrics keep those of workers that ended.
        statistics.flush()
        _write(statistics, live)


async def _flush(statistics: RequestStatistics) -> None:
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        statistics.flush()


async def _report(statistics: RequestStatistics, live: LiveCatalog) -> None:
    while True:
        _write(statistics, live)
        await asyncio.sleep(REPORT_SECONDS)


def _write(statistics: RequestStatistics, live: LiveCatalog) -> None:
    folder = os.environ.get(REPORTS_FOLDER)
    if folder:
        # A full disk must not stop the server. The metrics then stand still; an alert on their age notices.
        with suppress(OSError):
            write_report(statistics.build_report(connections=len(GuardedProtocol.open_connections), live=live), Path(folder))
