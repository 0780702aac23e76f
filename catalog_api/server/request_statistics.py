"""Count the requests of a worker and log each as one JSON line.

Counting must cost a microsecond, not the ten of a metrics library that shares memory between processes. So each worker counts alone and
writes its `WorkerReport` to a file once a second; metrics_endpoint.py adds the files up. Log lines are written in batches, some hundred
milliseconds later. Keys, query strings and bodies never get here. Out of scope: names of metrics (metrics_endpoint.py).
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from catalog_store.folder_listing import list_folder
from catalog_store.log_stream import count_lost_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from catalog_store.live_snapshot import LiveSnapshot

    Live = LiveSnapshot[Any]

REPORTS_FOLDER = "CATALOG_REPORTS_FOLDER"
"""Environment variable: the folder for the reports of the workers. The supervisor sets it."""
BUCKETS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the latency histogram, in seconds; one more bucket is above them."""
LINE_BATCH_SIZE = 16
"""Encoding takes 1.5 us a line, and waiting requests wait for a whole batch: 0.3 ms for 200 lines."""
UNKNOWN_ROUTE = "-"
"""The route of unknown paths. Clients choose paths, so their number has no bound."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@lru_cache(1024)
def name_route(route: str | None) -> str:
    """Return the route as people write it, `/v1/tracks/{id}`; UNKNOWN_ROUTE for None."""
    return (route or UNKNOWN_ROUTE).replace(":str}", "}")


def name_method(method: str) -> str:
    """Return the method, or `other` for one that no route knows: clients choose methods, so their number has no bound."""
    return method if method in _METHODS else "other"


class Row(msgspec.Struct):
    """Totals of one route, method and status: requests, seconds, requests per latency bucket, credits charged."""

    route: str
    method: str
    status: int
    requests: int = 0
    seconds: float = 0.0
    buckets: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    credits: int = 0


class WorkerReport(msgspec.Struct):
    """The counts of one worker since its start; `at` is the time of writing (seconds since 1970)."""

    pid: int
    at: float
    rows: list[Row]
    refusals: dict[str, int]
    connections: int
    snapshot: str | None
    snapshot_made_at: str | None
    refused_snapshot: str | None
    behind_seconds: float = 0.0
    """For how long `current` has named another snapshot than the one served."""
    is_following: bool = True
    """Whether the thread that checks `current` is alive."""
    lost_lines: int = 0
    """Log lines that could not be written."""


class LogLine(msgspec.Struct, omit_defaults=True):
    """One request in the log."""

    timestamp: str
    level: str
    event: str
    method: str
    path: str
    status: int
    milliseconds: float
    request_id: str
    code: str | None = None
    account: int | None = None


class RequestStatistics:
    """Counts and log lines of one worker. Only its event loop uses them."""

    def __init__(self, write: Callable[[bytes], object] | None = None) -> None:
        """`write` takes encoded log lines; without it none are made."""
        self._write = write
        self._encode_lines = msgspec.json.Encoder().encode_lines
        self._rows: dict[tuple[str | None, str, int], Row] = {}
        self._lines: list[tuple[float, str, str, int, float, str, str | None, int | None]] = []
        self.refusals: dict[str, int] = {}

    def record(
        self, *, route: str | None, method: str, path: str, status: int, seconds: float, request_id: str, credits_: int = 0,
        code: str | None = None, account: int | None = None,
    ) -> None:  # fmt: skip
        """Record one finished request; `code` is that of its problem document, if it got one."""
        # Unknown routes and methods always miss here: rows of their own would let clients fill the memory.
        row = self._rows.get((route, method, status))
        if row is None:
            row = self._get_row(route, method, status)
        row.requests += 1
        row.seconds += seconds
        # The bucket alone; metrics_endpoint.py adds up the buckets below, once a scrape.
        row.buckets[bisect_left(BUCKETS, seconds)] += 1
        row.credits += credits_
        if code is not None:
            self.refusals[code] = self.refusals.get(code, 0) + 1
        if self._write is not None:
            # Encoded in batches by msgspec: 1.5 us a line, where structlog took 9.8.
            self._lines.append((time.time(), method, path, status, seconds, request_id, code, account))
            if len(self._lines) >= LINE_BATCH_SIZE:
                self.flush()

    def _get_row(self, route: str | None, method: str, status: int) -> Row:
        """Return the row, made if needed. All unknown routes share one, as do all unknown methods: their number has no bound."""
        key = (name_route(route), name_method(method), status)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row(*key)
        return row

    def flush(self) -> None:
        """Write the waiting lines."""
        if self._lines and self._write is not None:
            self._write(self._encode_lines([_build_line(*facts) for facts in self._lines]))
            self._lines.clear()

    def build_report(self, *, connections: int, live: Live) -> WorkerReport:
        """Return the counts and the state of the live snapshot."""
        name, made_at = live.snapshot or (None, None)
        standing = live.read_status()
        return WorkerReport(
            os.getpid(),
            time.time(),
            list(self._rows.values()),
            self.refusals,
            connections,
            name,
            made_at,
            live.refused,
            standing.behind_seconds,
            standing.is_following,
            count_lost_lines(),
        )


def _build_line(
    at: float, method: str, path: str, status: int, seconds: float, request_id: str, code: str | None, account: int | None
) -> LogLine:
    level = "error" if status >= 500 else "info"  # noqa: PLR2004 - faults of the server
    moment = f"{_format_second(int(at))}.{int(at % 1 * 1000):03d}Z"
    return LogLine(moment, level, "request", method, path, status, round(seconds * 1000, 3), request_id, code, account)


# The lines of a batch share one or two seconds.
@lru_cache(16)
def _format_second(unix: int) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def write_report(report: WorkerReport, folder: Path) -> None:
    """Write a report to its file in `folder`, completely or not at all."""
    file = folder / f"worker-{report.pid}.json"
    # A rename is atomic: the supervisor never reads half a report. The suffix keeps the new file out of its glob.
    fresh = file.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(report))
    fresh.replace(file)


def read_reports(folder: Path) -> list[WorkerReport]:
    """Read the reports of all workers, those that ended included."""
    return [msgspec.json.decode(file.read_bytes(), type=WorkerReport) for file in list_folder(folder, "worker-*.json")]
