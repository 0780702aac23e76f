"""`python -m catalog_api.jobs`: works on bulk jobs until it is stopped; the settings are those of the server.

Any number may run, on any machines that share the folder of jobs and the database of accounts. SIGTERM and SIGINT end it after the present
chunk. Exit code 1: a setting is wrong; 3: the database cannot be reached.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

import structlog

from account_store.accounts import Accounts
from account_store.errors import AccountError, UnavailableError
from catalog_api.jobs.job_worker import JobWorker
from catalog_api.live_catalog import LiveCatalog
from catalog_api.settings import SettingsError, load_settings
from catalog_store.log import log_json
from catalog_store.stop_signals import run_until_signal

if TYPE_CHECKING:
    from collections.abc import Sequence

log = structlog.get_logger("catalog_api")

REFUSED, UNREACHABLE = 1, 3
_NICENESS = 10
"""Requests go first: jobs take the processor time that they leave."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Work until stopped; return the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        settings = load_settings(os.environ, {"settings": options.settings})
        log_json(settings.log_level, quiet=["httpx", "httpcore"])
        accounts = Accounts.open(settings.accounts_url)
    except (SettingsError, AccountError) as error:
        print(f"error: {error}", file=sys.stderr)
        return UNREACHABLE if isinstance(error, UnavailableError) else REFUSED
    os.nice(_NICENESS)
    # A name of its own in the log: operators count the workers that serve a snapshot by their lines.
    live = LiveCatalog(settings.catalog, what="snapshot of jobs", verify_contents=False, look_seconds=settings.look_seconds)
    worker = JobWorker(accounts, live, settings.jobs_folder, settings.url_templates)
    live.follow()
    log.info("the job worker has started", folder=str(settings.jobs_folder))
    try:
        run_until_signal(worker.run, worker.stop)
    finally:
        live.close()
        accounts.close()
    log.info("the job worker has stopped")
    return 0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m catalog_api.jobs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--settings", metavar="FILE", help="TOML file with settings (default: CATALOG_API_SETTINGS)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
