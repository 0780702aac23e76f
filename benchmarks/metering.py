"""Charges per second and per CPU second at the ledger: the batching writer beside a transaction for every charge, on both databases.

    python -m benchmarks.metering [--seconds S] [--clients N] [--processes P] [--keys K] [--rounds R]

CLIENTS event-loop clients in each of PROCESSES processes charge one credit, wait for the answer and charge again, as API workers under
load do. Both ways run the same code; "one by one" hands over each operation by itself and takes one per transaction. Commits are durable
on both databases; ways alternate within a round, figures are medians of the rounds. CPU is that of the processes, of PostgreSQL's too.
What HTTP makes of it is measured in benchmarks/http.py.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from account_store import Accounts
from account_store.ledger import writer
from account_store.ledger.batch_collector import BatchCollector
from account_store.plans import Terms
from benchmarks import postgres

if TYPE_CHECKING:
    from collections.abc import Callable

    from account_store.ledger.batch_collector import ResultCallback
    from account_store.ledger.operations import Operation

WAYS = ("batches", "one by one")
CREDITS = Terms(10**12, Decimal(1), 1000)
ROOT = Path(__file__).resolve().parents[1]


def submit_alone(collector: BatchCollector, operation: Operation, on_result: ResultCallback) -> None:
    """Submit an operation alone, in place of `BatchCollector.add`."""
    collector._writer.submit([operation], lambda results: collector._receive([(operation, on_result)], results))  # noqa: SLF001 - its peer


def charge_for(url: str, keys: list[str], clients: int, seconds: float, way: str) -> dict[str, float]:
    """Charge for some seconds in this process; return charges, CPU seconds, milliseconds at the median and at the 99th percentile."""
    # Both ways run the same code, here with batches of one operation.
    if way == "one by one":
        writer.LARGEST_BATCH = 1
        BatchCollector.add = submit_alone  # type: ignore[method-assign, assignment]
    accounts = Accounts.open(url)
    # Callers are looked up once: the figures are those of charging alone.
    callers = [caller for key in keys if (caller := accounts.keys.find_caller(key))]
    waits: list[float] = []

    async def client(number: int, until: float) -> None:
        caller = callers[number % len(callers)]
        while (started := time.perf_counter()) < until:
            await accounts.ledger.charge(caller, 1)
            waits.append(time.perf_counter() - started)

    async def run(length: float) -> None:
        until = time.perf_counter() + length
        await asyncio.gather(*[client(number, until) for number in range(clients)])

    asyncio.run(run(0.3))  # the writer's connection, prepared statements
    waits.clear()
    cpu = time.process_time()
    asyncio.run(run(seconds))
    cpu = time.process_time() - cpu
    accounts.close()
    waits.sort()
    milliseconds = [waits[int(len(waits) * share)] * 1000 for share in (0.5, 0.99)]
    return {"charges": len(waits), "cpu": cpu, "p50": milliseconds[0], "p99": milliseconds[1]}


def measure(url: str, keys: list[str], options: argparse.Namespace, way: str, server_cpu: Callable[[], float]) -> dict[str, float]:
    """Charge in PROCESSES processes at once; return rates over all."""
    settings = json.dumps([url, keys, options.clients, options.seconds, way])
    before = server_cpu()
    command = [sys.executable, "-m", "benchmarks.metering", "--one", settings]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(options.processes)]
    answers = [json.loads(process.communicate()[0]) for process in running]
    charges, cpu = sum(answer["charges"] for answer in answers), sum(answer["cpu"] for answer in answers) + server_cpu() - before
    # Percentiles of processes cannot be averaged, so the worst one counts.
    worst = {name: max(answer[name] for answer in answers) for name in ("p50", "p99")}
    return {"per second": charges / options.seconds, "per CPU second": charges / cpu, **worst}


def compare(database: str, url: str, options: argparse.Namespace, server_cpu: Callable[[], float]) -> None:
    """Run all rounds of both ways on one database; print a line each and their ratio."""
    accounts = Accounts.open(url)
    made = [accounts.create(f"benchmark {number}", "custom", CREDITS) for number in range(options.keys)]
    keys = [accounts.keys.create(account.account_id).key for account in made]
    accounts.close()
    rounds: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _, way in itertools.product(range(options.rounds), WAYS):
        rounds[way].append(measure(url, keys, options, way, server_cpu))
    medians = {way: {name: statistics.median(one[name] for one in runs) for name in runs[0]} for way, runs in rounds.items()}
    for way, median in medians.items():
        rates = f"{median['per second']:>10,.0f} {median['per CPU second']:>12,.0f}"
        print(f"| {database:<10} | {way:<10} | {rates} | {median['p50']:>6.2f} {median['p99']:>7.2f} |", flush=True)
    ratios = [medians["batches"][name] / medians["one by one"][name] for name in ("per second", "per CPU second")]
    print(f"  batches : one by one = {ratios[0]:.1f} a second, {ratios[1]:.1f} a CPU second", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metering", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--keys", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(charge_for(*json.loads(options.one))))
        return
    print(
        f"{options.clients} clients in {options.processes} processes on {options.keys} keys, {options.rounds} rounds of {options.seconds} s"
    )
    print("| database   | way        | charges/s  charges/CPU-s | p50 ms  p99 ms |")
    with tempfile.TemporaryDirectory() as folder:
        compare("SQLite", f"sqlite:///{folder}/accounts.db", options, lambda: 0.0)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with postgres.run_server(Path(folder) / "data", shared_buffers="128MB") as server:
            compare("PostgreSQL", server.build_url(), options, server.measure_cpu_seconds)


if __name__ == "__main__":
    main()
