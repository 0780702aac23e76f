"""`python -m catalog_api`: serve `/v1` from a published catalog, or print the settings in force."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING

from account_store.accounts import Accounts
from account_store.errors import AccountError
from account_store.rate_limits import RateLimiter
from catalog_api.server.process_supervisor import serve
from catalog_api.settings import SettingsError, format_settings_file, load_settings
from catalog_store.log_stream import guard_standard_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalog_api.settings import ApiSettings


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stopped; return 1 when there is nothing to serve or a setting is wrong."""
    guard_standard_error()
    options = vars(build_parser().parse_args(arguments))
    command = options.pop("command")
    try:
        settings = load_settings(os.environ, options)
        if command == "settings":
            print(format_settings_file(settings), end="")
            return 0
        return _serve(settings)
    except (SettingsError, AccountError) as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(
            f"error: cannot listen on {settings.host}:{settings.port} or {settings.metrics_host}:{settings.metrics_port}: {error}",
            file=sys.stderr,
        )
    return 1


def _serve(settings: ApiSettings) -> int:
    catalog = settings.catalog
    # The folder of a single snapshot can be served too; it has a manifest and no `current`.
    if not (catalog / "current").exists() and not (catalog / "manifest.json").exists():
        print(f"error: {catalog} holds no published catalog; build one with `python -m pipeline build`", file=sys.stderr)
        return 1
    # Once for all workers: a database that does not answer fails the start, and a single process migrates the tables.
    Accounts.open(settings.accounts_url).close()
    # A worker would fail by it, again and again. Redis may be away: this does not connect.
    asyncio.run(RateLimiter.open(settings.rate_limits_url).close())
    return serve(settings)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m catalog_api", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("serve", "answer /v1 over HTTP until stopped"), ("settings", "print the settings in force as a settings file")):
        command = commands.add_parser(name, help=about, description=about)
        command.add_argument(
            "--settings", metavar="FILE", help="TOML file of settings (docs/reference/settings.md); options and the environment override it"
        )
        command.add_argument("--catalog", metavar="DIR", help="catalog folder that `pipeline build` published into")
        command.add_argument("--accounts", dest="accounts_url", metavar="URL", help="database of the accounts")
        command.add_argument("--host", help="address to listen on")
        command.add_argument("--port", type=int, help="port to listen on")
        command.add_argument("--workers", type=int, help="worker processes")
        command.add_argument("--metrics-port", type=int, help="port of the metrics; 0 for none")
        command.add_argument("--log-level", choices=["debug", "info", "warning", "error"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
