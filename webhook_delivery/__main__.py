"""`python -m webhook_delivery`: sends webhooks until it is stopped; with --once it sends the events that are due now, and ends.

Over PostgreSQL any number may run, on any machines; over SQLite one is enough. SIGTERM and SIGINT end it after the pending attempts. Exit
code 1: an option or the environment is wrong; 3: the database cannot be reached.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from account_store.accounts import Accounts
from account_store.clock import read_utc_time
from account_store.errors import AccountError, UnavailableError
from catalog_store.log import log_json
from webhook_delivery.deliverer import AT_ONCE, Deliverer
from webhook_delivery.meters import Meters
from webhook_delivery.queue import DeliveryQueue
from webhook_delivery.sender import Sender

if TYPE_CHECKING:
    from collections.abc import Sequence

log = structlog.get_logger("account_store")

METRICS_VARIABLE = "COMPANION_METRICS"
"""Set by the server's supervisor when it starts a deliverer (catalog_api/server/companion_processes.py)."""
WRITE_SECONDS = 1.0
REFUSED, UNREACHABLE = 1, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Deliver until stopped; return the exit code."""
    options = build_parser().parse_args(arguments)
    # httpx logs the whole address of every request, and some receivers keep tokens in it.
    log_json(options.log_level, quiet=["httpx", "httpcore"])
    try:
        accounts = Accounts.open(options.accounts)
    except AccountError as error:
        print(f"error: {error}", file=sys.stderr)
        return UNREACHABLE if isinstance(error, UnavailableError) else REFUSED
    try:
        asyncio.run(_deliver(accounts, options))
    finally:
        accounts.close()
    return 0


async def _deliver(accounts: Accounts, options: argparse.Namespace) -> None:
    meters, sender = Meters(), Sender(accounts.outbound, read_utc_time, at_once=options.at_once)
    deliverer = Deliverer(DeliveryQueue(accounts), sender, meters, at_once=options.at_once)
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, deliverer.stop)
    metrics_writer = asyncio.create_task(_write_metrics(meters, options.metrics_file))
    log.info("the deliverer has started", at_once=options.at_once)
    await (deliverer.run_once() if options.once else deliverer.run())
    metrics_writer.cancel()
    # The cancelled task must end before its event loop does.
    await asyncio.gather(metrics_writer, return_exceptions=True)
    await sender.close()
    log.info("the deliverer has stopped")


async def _write_metrics(meters: Meters, file: Path | None) -> None:
    while file is not None:
        # A full disk must not stop the deliverer.
        with suppress(OSError):
            meters.write(file)
        await asyncio.sleep(WRITE_SECONDS)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m webhook_delivery", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    url = os.environ.get("CATALOG_API_ACCOUNTS_URL", "sqlite:///accounts.db")
    parser.add_argument("--accounts", metavar="URL", default=url, help="database of the accounts (default: CATALOG_API_ACCOUNTS_URL)")
    metrics = os.environ.get(METRICS_VARIABLE)
    parser.add_argument(
        "--metrics-file", metavar="FILE", type=Path, default=metrics, help="file into which metrics are written every second"
    )
    parser.add_argument(
        "--at-once", metavar="N", type=_parse_count, default=AT_ONCE, help="webhooks that get events at the same time (default %(default)s)"
    )
    parser.add_argument("--once", action="store_true", help="send the events that are due now, and end")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    return parser


def _parse_count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} webhooks cannot be served at once; name at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
