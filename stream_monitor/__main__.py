"""`python -m stream_monitor`: monitors this process's share of the active streams until it is stopped.

Any number of workers may run: over PostgreSQL on any machines that have the catalog and a matcher, over SQLite on one machine. SIGTERM and
SIGINT stop a worker in order: others take its streams over at once. Exit code 1: an option is wrong; 3: the database cannot be reached.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from account_store.database import migrate, open_engine, parse_url
from account_store.errors import AccountError, UnavailableError
from account_store.streams.leases import LEASE_SECONDS
from audio_recognition.matcher_process.client import MatcherClient
from catalog_store.log import log_json
from catalog_store.stop_signals import run_until_signal
from outbound_http import InvalidAllowListError, Outbound, read_allow_list
from stream_monitor.capture.decoders import Decoders
from stream_monitor.catalog import LiveCatalog
from stream_monitor.listener import SharedResources
from stream_monitor.meters import Meters
from stream_monitor.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

METRICS_VARIABLE = "COMPANION_METRICS"
"""Set by the server's supervisor when it starts a monitor worker (catalog_api/server/companion_processes.py)."""
CAPACITY = 150
"""Streams of one worker: about the load of one core."""
REFUSED, UNREACHABLE = 1, 3
SHORTEST_LEASE, LONGEST_LEASE = 1, 3600
"""Seconds. A worker renews five times within a lease; a lease of 0 s would always be free for another worker."""
_STACK_BYTES = 1024 * 1024
"""Stack of each stream's thread; the system's default is eight times as large."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Monitor until stopped; return the exit code."""
    options = build_parser().parse_args(arguments)
    log_json(options.log_level)
    # Applies to threads that start later, so it comes before the first listener.
    threading.stack_size(_STACK_BYTES)
    restrict_to_core(options.core)
    stopping = threading.Event()
    return run_until_signal(lambda: _monitor(options, stopping), stopping.set)


def _monitor(options: argparse.Namespace, stopping: threading.Event) -> int:
    try:
        engine = open_engine(parse_url(options.accounts))
        migrate(engine)
        outbound = Outbound(read_allow_list(os.environ))
    except (AccountError, InvalidAllowListError, SQLAlchemyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return UNREACHABLE if isinstance(error, UnavailableError) else REFUSED
    catalog, matcher = LiveCatalog(options.catalog), MatcherClient(str(options.matcher_socket))
    catalog.follow()
    decoders = Decoders()
    shared = SharedResources(outbound, catalog, matcher.match_now, Meters(), decoders)
    try:
        Worker(engine, shared, options.capacity, lease_seconds=options.lease_seconds).run(stopping, options.metrics_file)
    finally:
        decoders.close()
        matcher.close_now()
        catalog.close()
        engine.dispose()
    return 0


def restrict_to_core(number: int) -> None:
    """Restrict this process to one of its cores: the `number`-th, modulo their count.

    The interpreter runs one thread at a time, and every decoded packet releases it: threads on two idle cores compete for it with system
    calls. 100 streams cost 20.5 ms a stream-second that way and fell 15 s behind; on one core they cost 5.3 ms.
    """
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m stream_monitor", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    url = os.environ.get("CATALOG_API_ACCOUNTS_URL", "sqlite:///accounts.db")
    parser.add_argument("--accounts", metavar="URL", default=url, help="database of the accounts (default: CATALOG_API_ACCOUNTS_URL)")
    parser.add_argument("--catalog", metavar="DIR", type=Path, required=True, help="catalog folder that `pipeline build` published into")
    parser.add_argument("--matcher-socket", metavar="FILE", type=Path, required=True, help="Unix socket of the matcher process")
    parser.add_argument(
        "--capacity", metavar="N", type=_parse_count, default=CAPACITY, help="maximum number of streams (default %(default)s)"
    )
    parser.add_argument(
        # The process number spreads workers over the cores without any agreement between them.
        "--core",
        metavar="N",
        type=int,
        default=os.getpid(),
        help="core to run on, counted from 0, modulo the number of cores (default: any)",
    )
    parser.add_argument(
        "--lease-seconds",
        metavar="S",
        type=_parse_seconds,
        default=LEASE_SECONDS,
        help=f"time after which another worker takes over, {SHORTEST_LEASE} to {LONGEST_LEASE} (default %(default)s)",
    )
    metrics = os.environ.get(METRICS_VARIABLE)
    parser.add_argument(
        "--metrics-file", metavar="FILE", type=Path, default=metrics, help="file into which metrics are written every second"
    )
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    return parser


def _parse_count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of streams; name at least 1")
    return number


def _parse_seconds(text: str) -> float:
    seconds = float(text)
    # Not-a-number is in no range.
    if not SHORTEST_LEASE <= seconds <= LONGEST_LEASE:
        raise argparse.ArgumentTypeError(f"{text} is no length of a lease; name {SHORTEST_LEASE} to {LONGEST_LEASE} seconds")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
