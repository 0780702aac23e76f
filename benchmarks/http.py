"""The server over HTTP beside FastAPI over PostgreSQL, beside itself without metering, and beside the least that it can answer.

    python -m benchmarks.http CATALOG            # a catalog root with a published snapshot, such as benchmarks.catalog_world makes

One worker a side, all servers pinned to one core, the load generator (wrk, Debian's package) and PostgreSQL to the other. Sides are
measured in turns, in every round in another order; a ratio is the median of its rounds. CPU is that of the server's process, PostgreSQL's
beside it. Needs `.venv-bench` (scripts/setup .venv-bench requirements-bench.lock).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import polars as pl
import psycopg

from account_store.accounts import Accounts
from account_store.plans import Terms
from benchmarks import postgres
from catalog_store import open_catalog
from simulator.queries import draw_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
TASKSET = "/usr/bin/taskset"
SERVER_CORE, OTHER_CORE = "0", "1"
SAMPLED_CODES = 50_000
SAMPLED_QUERIES_PER_CLASS = 3_000
"""A round should hardly meet a path again: with 600 paths a search costs 8 % less, through caches of processor and program."""
_START_SECONDS = 90
_BATCH = 1_000
_ASKED_A_ROUND = 10_000
"""The next round begins this many paths later: about as many as a round requests."""

LUA = """
local paths = {}
for line in io.lines("%(paths)s") do paths[#paths + 1] = line end
local place = %(start)d
wrk.headers["x-api-key"] = "%(key)s"
request = function()
  place = place %% #paths + 1
  return wrk.format("GET", paths[place])
end
%(delay)s
done = function(summary, latency, requests)
  io.write(string.format('{"requests": %%d, "microseconds": %%d, "errors": %%d, "p50": %%d, "p99": %%d, "worst": %%d}\\n',
    summary.requests, summary.duration, summary.errors.status + summary.errors.read + summary.errors.write
    + summary.errors.connect + summary.errors.timeout, latency:percentile(50), latency:percentile(99), latency.max))
end
"""


@dataclass(frozen=True)
class Load:
    """The load of `clients` connections, each with `pause_ms` on average between answer and next request.

    Pauses are drawn from 0 to twice the average. Clients with equal pauses would begin in step, and p99 of a short round would show that.
    """

    paths: Path
    key: str
    clients: int
    seconds: int
    pause_ms: int = 0


@dataclass(frozen=True)
class Measured:
    """The figures of one side in one round. Rates are requests a second; latencies milliseconds."""

    rate: float
    rate_per_cpu: float
    p50: float
    p99: float
    errors: int
    database_share: float
    """CPU seconds of PostgreSQL per CPU second of the server."""


@dataclass(frozen=True)
class Side:
    """A running server and the process that answers."""

    name: str
    port: int
    process: int
    database: postgres.Server | None = None

    def measure_cpu_seconds(self) -> float:
        """Return the CPU time of the answering process."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(side: Side, load: Load, folder: Path, start: int) -> Measured:
    """Load one side; SystemExit when an answer is not 200, because errors are quick and would falsify the figures."""
    script = folder / "load.lua"
    # Twice the average at most, so the mean of a uniform draw is `pause_ms`.
    delay = f"delay = function() return math.random(0, {2 * load.pause_ms}) end" if load.pause_ms else ""
    script.write_text(LUA % {"paths": load.paths, "start": start, "key": load.key, "delay": delay})
    command = [TASKSET, "-c", OTHER_CORE, "wrk", "-t1", f"-c{load.clients}", f"-d{load.seconds}s", "--timeout", "10s"]
    before = side.measure_cpu_seconds(), side.database.measure_cpu_seconds() if side.database else 0.0
    done = subprocess.run([*command, "-s", str(script), f"http://127.0.0.1:{side.port}"], check=True, capture_output=True, text=True)
    cpu = side.measure_cpu_seconds() - before[0]
    database = side.database.measure_cpu_seconds() - before[1] if side.database else 0.0
    facts = json.loads(done.stdout.splitlines()[-1])
    if facts["errors"]:
        raise SystemExit(f"error: {side.name}: {facts['errors']} of {facts['requests']} answers were errors")
    rate = facts["requests"] / facts["microseconds"] * 1e6
    return Measured(rate, facts["requests"] / cpu, facts["p50"] / 1000, facts["p99"] / 1000, facts["errors"], database / cpu)


def measure_rounds(sides: Sequence[Side], load: Load, count: int, folder: Path) -> dict[str, list[Measured]]:
    """Measure every side once a round, in an order that changes from round to round."""
    measured: dict[str, list[Measured]] = {side.name: [] for side in sides}
    for number in range(count):
        # A machine that warms up or slows down would favour one place in the order.
        shift = number % len(sides)
        for side in [*sides[shift:], *sides[:shift]]:
            measured[side.name].append(measure(side, load, folder, number * _ASKED_A_ROUND))
    return measured


def print_table(measured: dict[str, list[Measured]]) -> None:
    """Print medians over the rounds, and the range of the rounds."""
    print("| side | requests/s | per CPU-second (least to most) | p50 ms | p99 ms | PostgreSQL's CPU per second of the server's |")
    print("|---|---|---|---|---|---|")
    for name, of_side in measured.items():
        rates = [one.rate_per_cpu for one in of_side]
        per_cpu = f"{statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
        others = [f"{_compute_median(of_side, figure):.2f}" for figure in ("p50", "p99", "database_share")]
        print(f"| {name} | {_compute_median(of_side, 'rate'):,.0f} | {per_cpu} | {' | '.join(others)} |")


def print_ratios(measured: dict[str, list[Measured]], pairs: Sequence[tuple[str, str, str]]) -> None:
    """Print (name, numerator, denominator): the median over the rounds of both ratios."""
    print("\n| ratio | requests/s | per CPU-second |\n|---|---|---|")
    for what, above, below in pairs:
        both = list(zip(measured[above], measured[below], strict=True))
        # The median of ratios and not the ratio of medians: both sides of one round met the same machine.
        by_time = statistics.median(a.rate / b.rate for a, b in both)
        by_cpu = statistics.median(a.rate_per_cpu / b.rate_per_cpu for a, b in both)
        print(f"| {what} | {by_time:.2f} | {by_cpu:.2f} |")


def _compute_median(of_side: list[Measured], name: str) -> float:
    return float(statistics.median(getattr(one, name) for one in of_side))


@contextmanager
def start_server(name: str, command: list[str], port: int, path: str, key: str, environment: dict[str, str]) -> Iterator[Side]:
    """Start a server pinned to its core and yield it once `path` answers with 200."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [TASKSET, "-c", SERVER_CORE, *command], cwd=ROOT, env={**os.environ, **environment}, stdout=log, stderr=log
        )
        try:
            until = time.monotonic() + _START_SECONDS
            while not _is_answering(port, path, key):
                if process.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise SystemExit(f"error: {name} did not start:\n{log.read().decode()[-3000:]}")
                time.sleep(0.1)
            yield Side(name, port, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _is_answering(port: int, path: str, key: str) -> bool:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"x-api-key": key})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - loopback
            return bool(answer.status == 200)
    except OSError:
        return False


def build_our_command(application: str, *, is_factory: bool = True) -> Callable[[int], list[str]]:
    """Return the command that serves an application as our server does, for a port."""
    options = [
        "--loop",
        "uvloop",
        "--http",
        "catalog_api.server.http_protocol:GuardedProtocol",
        "--ws",
        "none",
        "--log-level",
        "warning",
        "--no-access-log",
    ]
    command = [sys.executable, "-m", "uvicorn", application, *options, "--no-server-header", "--no-proxy-headers"]
    return lambda port: [*command, *(["--factory"] if is_factory else []), "--port", str(port)]


def _build_peer_command(port: int) -> list[str]:
    return [str(ROOT / ".venv-bench/bin/python"), "-m", "benchmarks.http_peer", str(port), sysconfig.get_path("purelib")]


def load_database(url: str, catalog: Path, key: str) -> int:
    """Load tracks, codes, the key and its credits into PostgreSQL; return the number of tracks."""
    codes = _read_codes(catalog)
    ids = codes["recording_id"].unique().sort().to_list()
    with psycopg.connect(url) as database, open_catalog(catalog) as opened:
        database.execute("CREATE TABLE track (recording_id bigint PRIMARY KEY, body text NOT NULL)")
        database.execute("CREATE TABLE recording_isrc (isrc text PRIMARY KEY, recording_id bigint NOT NULL)")
        database.execute("CREATE TABLE api_key (key_hash bytea PRIMARY KEY, account_id bigint NOT NULL, revoked_at timestamptz)")
        database.execute("CREATE TABLE credit (account_id bigint PRIMARY KEY, granted bigint NOT NULL, used bigint NOT NULL)")
        with database.cursor().copy("COPY track FROM STDIN") as copy:
            for first in range(0, len(ids), _BATCH):
                for recording_id, body in opened.read_track_bodies(ids[first : first + _BATCH]).items():
                    copy.write_row((recording_id, body.decode()))
        with database.cursor().copy("COPY recording_isrc FROM STDIN") as copy:
            for row in codes.iter_rows():
                copy.write_row(row)
        database.execute("INSERT INTO api_key SELECT sha256(%s::bytea), 1, NULL", (key.encode(),))
        database.execute("INSERT INTO credit VALUES (1, 1000000000, 0)")
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("VACUUM ANALYZE")
    return len(ids)


def _read_codes(catalog: Path) -> pl.DataFrame:
    return pl.read_parquet(catalog / "current/tables/recording_isrc/*.parquet", columns=["isrc", "recording_id"])


def write_paths(catalog: Path, folder: Path, seed: int) -> tuple[Path, Path]:
    """Write shuffled files of paths: existing codes, and searches in all classes."""
    chance = random.Random(seed)  # noqa: S311 - a sample
    codes = _read_codes(catalog)["isrc"].sort().to_list()
    lookups = [f"/v1/tracks/isrc/{code}" for code in chance.sample(codes, min(SAMPLED_CODES, len(codes)))]
    names = pl.scan_parquet(catalog / "current/tables/track/*.parquet")
    asked = draw_queries(names, SAMPLED_QUERIES_PER_CLASS, seed)
    searches = [f"/v1/tracks/search?{urlencode(row)}" for row in asked.select("artist", "title").to_dicts()]
    chance.shuffle(searches)
    files = folder / "lookups.txt", folder / "searches.txt"
    for file, paths in zip(files, (lookups, searches), strict=True):
        file.write_text("\n".join(paths) + "\n")
    return files


def create_key(url: str) -> str:
    """Create a key whose plan limits nothing in this benchmark."""
    accounts = Accounts.open(url)
    account = accounts.create("benchmark", "custom", Terms(10**12, Decimal(1), 10**6))
    key = accounts.keys.create(account.account_id).key
    accounts.close()
    return key


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="of load per side and round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="for PostgreSQL's data and the accounts; a temporary one when not given")
    chosen = parser.parse_args()
    if not which("wrk"):
        postgres.install_packages("wrk")
    os.sched_setaffinity(0, {int(OTHER_CORE)})
    with ExitStack() as stack:
        folder = chosen.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # PostgreSQL's user must pass
        _run(stack, chosen, folder)


def _run(stack: ExitStack, chosen: argparse.Namespace, folder: Path) -> None:
    accounts = f"sqlite:///{folder}/accounts.db"
    key = create_key(accounts)
    lookups, searches = write_paths(chosen.catalog, folder, chosen.seed)
    database = stack.enter_context(postgres.run_server(folder / "postgres"))
    tracks = load_database(database.build_url(), chosen.catalog, key)
    first = lookups.read_text().split("\n", 1)[0]
    ours = {"CATALOG_API_CATALOG": str(chosen.catalog.resolve()), "CATALOG_API_ACCOUNTS_URL": accounts}
    peer = {"PEER_DATABASE": database.build_url()}
    ports = iter(range(18_100, 18_200))

    def start(name: str, command: Callable[[int], list[str]], environment: dict[str, str], path: str = first) -> Side:
        port = next(ports)
        return stack.enter_context(start_server(name, command(port), port, path, key, environment))

    hello = start("hello world, no framework", build_our_command("benchmarks.http_apps:answer_hello", is_factory=False), {})
    framework = start("hello world, Litestar", build_our_command("benchmarks.http_apps:create_hello_framework"), {}, "/hello/you")
    whole = start("ours", build_our_command("catalog_api.server.worker_process:build_application"), ours)
    keyed = start("ours, key check only", build_our_command("benchmarks.http_apps:create_checked_app"), ours)
    unmetered = start("ours, neither key check nor metering", build_our_command("benchmarks.http_apps:create_unmetered_app"), ours)
    tuning = {**peer, "PEER_WITHOUT_RESET": "1"}
    checked = _set_session(start("FastAPI + PostgreSQL, key check", _build_peer_command, peer), database)
    tuned = _set_session(start("the same, sessions not reset", _build_peer_command, tuning), database)
    metered = _set_session(
        start("FastAPI + PostgreSQL, key check and metering", _build_peer_command, {**peer, "PEER_METERING": "1"}), database
    )
    tuned_metered = _set_session(
        start("with metering, sessions not reset", _build_peer_command, {**tuning, "PEER_METERING": "1"}), database
    )
    greeting = folder / "hello.txt"
    greeting.write_text("/hello/you\n")
    _require_same_answers(lookups, whole, checked, key)

    print(
        f"{tracks:,} tracks; load of the machine {os.getloadavg()[0]:.1f}; {chosen.rounds} rounds of {chosen.seconds} s; seed {chosen.seed}"
    )
    print("\n## ISRC, 32 clients\n", flush=True)
    load = Load(lookups, key, 32, chosen.seconds)
    measured = measure_rounds([whole, keyed, unmetered, checked, tuned, metered, tuned_metered, hello], load, chosen.rounds, folder)
    measured |= measure_rounds([framework], Load(greeting, key, 32, chosen.seconds), chosen.rounds, folder)
    print_table(measured)
    pairs = [
        ("ours with key check / FastAPI with key check (goal 3)", keyed, checked),
        ("the same / FastAPI whose sessions are not reset", keyed, tuned),
        ("ours / FastAPI with key check and metering (goal 3)", whole, metered),
        ("the same / FastAPI whose sessions are not reset", whole, tuned_metered),
        ("ours, metered / FastAPI with key check", whole, checked),
        ("ours / ours without key check and metering (goal 0.65)", whole, unmetered),
        ("ours / hello world, no framework", whole, hello),
        ("ours without / hello world, no framework", unmetered, hello),
        ("ours / hello world, Litestar", whole, framework),
    ]
    print_ratios(measured, [(what, above.name, below.name) for what, above, below in pairs])
    print("\n## Search, 50 clients (goal: p99 15 ms)\n", flush=True)
    for pause in (0, 25, 50):
        of_search = measure_rounds([whole, keyed], Load(searches, key, 50, chosen.seconds, pause), chosen.rounds, folder)
        print(f"each {pause} ms on average after its last answer:\n" if pause else "as fast as they can:\n")
        print_table(of_search)
        print(flush=True)


def _set_session(side: Side, database: postgres.Server) -> Side:
    return Side(side.name, side.port, side.process, database)


def _require_same_answers(lookups: Path, ours: Side, peer: Side, key: str) -> None:
    for path in lookups.read_text().splitlines()[:20]:
        bodies = [_read_body(side.port, path, key) for side in (ours, peer)]
        if bodies[0] != bodies[1]:
            raise SystemExit(f"error: {path}: ours and the peer answer differently: {bodies}")


def _read_body(port: int, path: str, key: str) -> Any:  # noqa: ANN401 - any JSON
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"x-api-key": key})
    with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - loopback
        return json.loads(answer.read())


if __name__ == "__main__":
    main()
