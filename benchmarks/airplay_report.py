"""The airplay report of three months: seconds, CPU and memory of the server, on both databases, in all forms.

    python -m benchmarks.airplay_report [--catalog ROOT] [--streams 50] [--days 92] [--a-day 400] [--rounds R] [--seed S]

Every stream plays from 1,500 recordings of a common pool of 20,000; one play in fifty is any recording of the catalog. The rows are
written as monitors write them, day by day, all streams by turns. The server runs as in production, with one worker; the client reads the
whole answer over loopback and throws it away. "first" is the first report of the worker, asked for as soon as it is
ready; "unpacked" one after all packed days were deleted under a running server.
Without --catalog a world of 200,000 recordings is made.
"""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psycopg

from account_store.accounts import Accounts
from account_store.database import open_engine, parse_url
from account_store.streams.stream_tables import airplay_day
from benchmarks import postgres
from catalog_api.airplay.report_formats import FORMATS, JSON_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
LIBRARY, POOL, ANY_SHARE = 1500, 20_000, 0.02
_STREAM = "INSERT INTO stream (stream_id, account_id, url, name, created_at) VALUES ({marks})"
_COLUMNS = (
    *("stream_id", "recording_id", "isrc", "title", "artist", "track_seconds", "started_at", "ended_at", "duration_seconds"),
    *("confidence", "detection_count", "anchor_ms", "started_ms", "heard_ms"),
)
_PIECE = 2**20
DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Asked:
    """One report: seconds to its first byte and to its last, bytes, CPU seconds of the server."""

    first_byte: float
    whole: float
    size: int
    cpu: float


def generate_plays(options: argparse.Namespace, recordings: int, ids: list[str]) -> Iterator[tuple[object, ...]]:
    """Yield rows of `airing`, oldest day first, with times in the form of both databases."""
    rng = np.random.default_rng(options.seed)
    libraries = np.array([rng.choice(min(POOL, recordings), LIBRARY, replace=False) + 1 for _ in ids])
    # Streams start their songs at different seconds, so rows of all streams interleave as monitors write them.
    step = DAY_SECONDS // options.a_day
    shape = (options.a_day, len(ids))
    starts = (np.arange(options.a_day)[:, None] * step + np.arange(len(ids)) % step).ravel().tolist()
    for day in range(options.days):
        played = libraries[np.arange(len(ids)), rng.integers(0, LIBRARY, shape)]
        played = np.where(rng.random(shape) < ANY_SHARE, rng.integers(1, recordings + 1, shape), played)
        lengths = rng.integers(step - 60, step, shape).ravel().tolist()
        midnight = find_first_midnight(options) + timedelta(days=day)
        names, unix = [f"{midnight + timedelta(days=more):%Y-%m-%d}" for more in range(2)], int(midnight.timestamp())
        for number, (track, start, length) in enumerate(zip(played.ravel().tolist(), starts, lengths, strict=True)):
            texts = [f"{names[second // DAY_SECONDS]} {_format_clock(second % DAY_SECONDS)}" for second in (start, start + length)]
            words = (f"GBAYE{track % 10**7:07d}", f"Title {track}", f"Artist {track % 5000}")
            start_ms = (unix + start) * 1000
            yield ids[number % len(ids)], track, *words, 200, *texts, length, 0.93, 30, start_ms, start_ms, start_ms + length * 1000


@cache
def _format_clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000000"


def find_first_midnight(options: argparse.Namespace) -> datetime:
    """Return the start of the report's first day; its last day ended two days ago."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=options.days + 2)


def insert_airings(url: str, account_id: int, options: argparse.Namespace) -> None:
    """Insert the account's streams and all their airings."""
    ids = [str(uuid.UUID(int=options.seed * 1000 + number, version=4)) for number in range(options.streams)]
    began = f"{find_first_midnight(options):%Y-%m-%d} {_format_clock(0)}"
    streams = [(one, account_id, f"http://radio.example.org/{number}", f"Radio {number}", began) for number, one in enumerate(ids)]
    rows = generate_plays(options, options.recordings, ids)
    into = f"airing ({', '.join(_COLUMNS)})"
    # Rows go in directly: nearly two million of them at the default size.
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.executemany(_STREAM.format(marks=_build_marks("?", 5)), streams)
            file.executemany(f"INSERT INTO {into} VALUES ({_build_marks('?', len(_COLUMNS))})", rows)
            file.commit()
        return
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.executemany(_STREAM.format(marks=_build_marks("%s", 5)), streams)
        with cursor.copy(f"COPY {into} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


def _build_marks(mark: str, count: int) -> str:
    return ", ".join([mark] * count)


@contextmanager
def start_server(catalog: Path, url: str) -> Iterator[tuple[int, int]]:
    """Start a server and yield (port, process id of its worker) when it is ready."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-m", "catalog_api", "serve", "--catalog", str(catalog), "--accounts", url, "--port", str(port)]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        try:
            while not is_ready(port):
                if server.poll() is not None:
                    log.seek(0)
                    raise SystemExit(f"error: the server ended: {log.read()[-2000:].decode()}")
                time.sleep(0.1)
            yield port, _find_answering_process(server.pid)
        finally:
            server.terminate()
            server.wait(30)


def is_ready(port: int) -> bool:
    """Return whether the server on that port answers."""
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
    except OSError:
        return False


def _find_answering_process(pid: int) -> int:
    """Return the server's process with the most memory: its worker has the catalog open."""
    children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return max([pid, *children], key=lambda one: _measure_memory(one, "VmRSS"))


def _measure_memory(pid: int, name: str) -> int:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines[name].split()[0]) // 1024


def _measure_cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(port: int, pid: int, key: str, options: argparse.Namespace, form: str) -> Asked:
    """Request one report and read it to its end."""
    first = find_first_midnight(options).date()
    path = f"/v1/streams/report?from={first}&until={first + timedelta(days=options.days - 1)}"
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
        cpu, started = _measure_cpu(pid), time.perf_counter()
        connection.request("GET", path, headers={"x-api-key": key, "accept": form})
        answer = connection.getresponse()
        size = len(answer.read(1))
        first_byte = time.perf_counter() - started
        while piece := answer.read(_PIECE):
            size += len(piece)
        whole = time.perf_counter() - started
    if answer.status != 200:
        raise SystemExit(f"error: {path} answered {answer.status}")
    return Asked(first_byte, whole, size, _measure_cpu(pid) - cpu)


def measure(database: str, url: str, catalog: Path, options: argparse.Namespace) -> None:
    """Measure all forms on one database and print a line each."""
    accounts = Accounts.open(url)
    account_id = accounts.create("airplay benchmark", "scale").account_id
    key = accounts.keys.create(account_id).key
    accounts.close()
    started = time.perf_counter()
    insert_airings(url, account_id, options)
    print(
        f"  {database}: {options.streams * options.days * options.a_day:,} airings written in {time.perf_counter() - started:.0f} s",
        flush=True,
    )
    started = time.perf_counter()
    with start_server(catalog, url) as (port, pid):
        print(f"  server started, days packed, in {time.perf_counter() - started:.1f} s", flush=True)
        before = _measure_memory(pid, "VmRSS")
        # The order matters: the server packs days at its start, the second report needs them gone, the others packed again.
        _print_line(database, "json, first", [ask(port, pid, key, options, JSON_TYPE)])
        _unpack_days(url)
        _print_line(database, "json, unpacked", [ask(port, pid, key, options, JSON_TYPE)])
        _pack_days(url)
        for form, name in FORMATS.items():
            _print_line(database, name, [ask(port, pid, key, options, form) for _ in range(options.rounds)])
        print(f"  worker: {before} MiB before, {_measure_memory(pid, 'VmHWM')} MiB at most", flush=True)


def _unpack_days(url: str) -> None:
    with open_engine(parse_url(url)).begin() as connection:
        connection.execute(airplay_day.delete())


def _pack_days(url: str) -> None:
    """Pack all settled days, as the server is about to do."""
    with closing(Accounts.open(url)) as accounts:
        started, packed = time.perf_counter(), accounts.airplay.settle()
    print(f"  {packed:,} days packed in {time.perf_counter() - started:.1f} s", flush=True)


def _print_line(database: str, name: str, asked: list[Asked]) -> None:
    middle = [statistics.median(getattr(one, figure) for one in asked) for figure in ("first_byte", "whole", "cpu")]
    worst = max(one.whole for one in asked)
    print(
        f"| {database} | {name} | {middle[0]:.2f} | {middle[1]:.2f} ({worst:.2f}) | {middle[2]:.2f} | {asked[0].size / 2**20:.1f} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalog", type=Path, help="a catalog root whose recording ids are 1 to --recordings")
    parser.add_argument("--recordings", type=int, default=200_000)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--days", type=int, default=92)
    parser.add_argument("--a-day", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], help="one only")
    options = parser.parse_args()
    print("| database | report | first byte s | whole s (worst) | CPU s | MiB |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        catalog = options.catalog or _make_catalog(Path(folder) / "catalog", options)
        if options.database != "postgresql":
            measure("SQLite", f"sqlite:///{folder}/accounts.db", catalog, options)
        if options.database != "sqlite":
            Path(folder).chmod(0o755)
            with postgres.run_server(Path(folder) / "data", shared_buffers="128MB") as server:
                measure("PostgreSQL", server.build_url(), catalog, options)


def _make_catalog(root: Path, options: argparse.Namespace) -> Path:
    command = [
        sys.executable,
        "-m",
        "benchmarks.catalog_world",
        str(root),
        "--recordings",
        str(options.recordings),
        "--seed",
        str(options.seed),
    ]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return root


if __name__ == "__main__":
    main()
