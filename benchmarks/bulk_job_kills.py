"""A bulk job over HTTP that is killed twice in the middle: exact credits and rows, processor time, memory.

    python -m benchmarks.bulk_job_kills CATALOG [--rows 1000000] [--seed 11]

CATALOG is as in `benchmarks.bulk_jobs`. A server with one job worker gets an upload of ISRCs. At a third of the rows `kill -9` ends the job
worker; at two thirds it ends the first process of the server, and all processes below it end too. A new server goes on with the job. The
command fails unless every row is answered once, in its place, and as bulk resolve answers it, and the account has paid one credit a row.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil  # type: ignore[import-untyped]

from account_store.accounts import Accounts
from account_store.plans import Terms
from benchmarks.bulk_jobs import draw_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
_COMPANIONS = {"matcher": "false", "webhooks": "false", "monitors": "0", "scrub_mb_per_second": "0", "job_workers": "1"}
_LOOK_SECONDS = 0.25
_WAIT_SECONDS = 3600.0
_SAMPLED = 100
"""Rows of one request of bulk resolve, the answers of which the result must hold."""


@dataclass
class Peaks:
    """Processor seconds and resident peaks (MiB) of the processes of one kind, those that were killed included."""

    seconds: dict[int, float] = field(default_factory=dict)
    memory: float = 0.0

    def add(self, process: psutil.Process) -> None:
        """Read a process; one that has ended keeps its last figures."""
        with suppress(psutil.Error):
            times, resident = process.cpu_times(), process.memory_info().rss
            self.seconds[process.pid] = times.user + times.system
            self.memory = max(self.memory, resident / 2**20)


class Killed:
    """The server, which is killed and started again over one database and one folder."""

    def __init__(self, catalog: Path, place: Path) -> None:
        """Start it."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        settings = {**_COMPANIONS, "accounts_url": f"sqlite:///{place}/accounts.db", "jobs_folder": str(place / "jobs")}
        self._environment = {f"CATALOG_API_{name.upper()}": text for name, text in settings.items()}
        self._command = [sys.executable, "-m", "catalog_api", "serve", "--catalog", str(catalog), "--port", str(self._port)]
        self._log = place / "server.log"
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=120)
        self.worker, self.server = Peaks(), Peaks()
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with self._log.open("a") as log:
            self._process = psutil.Popen(self._command, cwd=ROOT, env={**os.environ, **self._environment}, stderr=log)
        until = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < until:
            with suppress(httpx.TransportError):
                if self.http.get("/readyz").status_code == httpx.codes.OK:
                    return
            time.sleep(_LOOK_SECONDS)
        raise SystemExit(f"the server did not start: see {self._log}")

    def look(self) -> None:
        """Read the figures of all processes."""
        for process in self._list_below():
            (self.worker if _is_job_worker(process) else self.server).add(process)

    def kill_worker(self) -> None:
        """Kill the process that works on jobs; the server starts another one."""
        workers = [process for process in self._list_below() if _is_job_worker(process)]
        for process in workers:
            process.send_signal(signal.SIGKILL)

    def kill_and_start_again(self) -> None:
        """Kill the first process of the server, wait for the end of all below it, and start it again."""
        below = self._list_below()
        self._process.kill()
        self._process.wait()
        psutil.wait_procs(below, timeout=60)
        self.start()

    def stop(self) -> None:
        """Stop the server in order."""
        self._process.terminate()
        self._process.wait(60)

    def _list_below(self) -> list[psutil.Process]:
        with suppress(psutil.Error):
            return [self._process, *self._process.children(recursive=True)]
        return []


def _is_job_worker(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "catalog_api.jobs" in process.cmdline()
    return False


def run(catalog: Path, count: int, seed: int) -> None:
    """Run the job, kill twice, and print the figures."""
    rows = draw_rows(catalog, "isrc", count, seed)
    with tempfile.TemporaryDirectory() as made, closing(Accounts.open(f"sqlite:///{made}/accounts.db")) as accounts:
        account = accounts.create("bench", "custom", Terms(credits=10 * count, price_eur=Decimal(1), requests_per_second=1_000))
        server = Killed(catalog, Path(made))
        server.http.headers["x-api-key"] = accounts.keys.create(account.account_id).key
        began = time.perf_counter()
        sent = server.http.post(
            "/v1/jobs/resolve",
            params={"input_type": "isrc"},
            content="".join(json.dumps(row) + "\n" for row in rows).encode(),
            headers={"content-type": "application/x-ndjson"},
        )
        job = _follow(server, sent.raise_for_status().json()["id"], count)
        seconds = time.perf_counter() - began
        used = server.http.get("/v1/usage").json()["credits_used"]
        if job["status"] != "succeeded" or (job["credits_charged"], used) != (count, count):
            raise SystemExit(f"the job is {job['status']} ({job['error']}) and cost {job['credits_charged']}, {used} of {count} credits")
        matched = _check_result(server, job, rows)
        server.look()
        server.stop()
    cpu = sum(server.worker.seconds.values())
    print(
        f"{count:,} rows in their places, {matched:,} matched, {used:,} credits; {count / seconds:,.0f} rows/s by the clock, "
        f"{count / cpu:,.0f} rows/s of CPU of {len(server.worker.seconds)} processes of job workers; "
        f"peak {server.worker.memory:,.0f} MiB of a job worker, {server.server.memory:,.0f} MiB of a process of the server"
    )


def _follow(server: Killed, job_id: str, count: int) -> dict[str, Any]:
    """Kill the worker at a third and the server at two thirds; return the finished job."""
    kills = iter([(count // 3, server.kill_worker), (2 * count // 3, server.kill_and_start_again)])
    at, kill = next(kills)
    while True:
        server.look()
        job: dict[str, Any] = server.http.get(f"/v1/jobs/{job_id}").raise_for_status().json()
        if job["status"] not in {"queued", "running"}:
            if at <= count:
                raise SystemExit(f"the job is {job['status']} before the kill at {at} rows: {job['error']}")
            return job
        if job["rows_done"] >= at:
            print(f"killed at {job['rows_done']:,} rows", flush=True)
            kill()
            at, kill = next(kills, (count + 1, lambda: None))
        time.sleep(_LOOK_SECONDS)


def _check_result(server: Killed, job: dict[str, Any], rows: list[Any]) -> int:
    """Require each row once and in its place, and a sample as bulk resolve answers it; return the number of matched rows."""
    matched = place = 0
    first = []
    with server.http.stream("GET", f"/v1/jobs/{job['id']}/result") as answer:
        for line in _read_lines(answer):
            row = json.loads(line)
            if row["input"] != rows[place]:
                raise SystemExit(f"row {place} is {row['input']}, expected {rows[place]}")
            matched += row["status"] == "matched"
            place += 1
            if place <= _SAMPLED:
                first.append(row)
    asked = server.http.post("/v1/tracks/resolve", json={"input_type": "isrc", "items": rows[:_SAMPLED]}).raise_for_status().json()
    if place != len(rows) or matched != job["rows_matched"] or first != asked["results"]:
        raise SystemExit(f"the result has {place} of {len(rows)} rows, {matched} matched beside {job['rows_matched']}, or other answers")
    return matched


def _read_lines(answer: httpx.Response) -> Iterator[str]:
    answer.raise_for_status()
    return answer.iter_lines()


def main() -> None:
    """Run the job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    run(options.catalog, options.rows, options.seed)


if __name__ == "__main__":
    main()
