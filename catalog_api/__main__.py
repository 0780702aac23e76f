"""`python -m catalog_api serve`: answer `/v1` from a published catalog."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
import uvicorn

from catalog_api.app import build_app
from catalog_api.settings import ApiSettings

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stopped; exit code 1 when there is nothing to serve."""
    options = _parser().parse_args(arguments)
    if not (options.catalog / "current").exists() and not (options.catalog / "manifest.json").exists():
        print(f"error: {options.catalog}: no published catalog; build one with `python -m pipeline build`", file=sys.stderr)
        return 1
    _log_json(options.log_level)
    app = build_app(ApiSettings(catalog=options.catalog, accounts_url=options.accounts))
    gc.freeze()  # what is loaded now lives as long as the process: the collector need not walk it on every round
    print(f"serving {options.catalog} on http://{options.host}:{options.port}/v1", file=sys.stderr, flush=True)
    uvicorn.run(app, host=options.host, port=options.port, log_level="warning", access_log=False, server_header=False)
    return 0


def _log_json(level: str) -> None:
    """One JSON line per event on standard error; our code's own loggers and everybody else's."""
    logging.basicConfig(level=level.upper(), stream=sys.stderr, format='{"level":"%(levelname)s","logger":"%(name)s","event":%(message)r}')
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m catalog_api", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="answer /v1 over HTTP")
    serve.add_argument("--catalog", type=Path, required=True, metavar="DIR", help="catalog folder that `pipeline build` published into")
    serve.add_argument("--accounts", default="sqlite:///accounts.db", metavar="URL", help="account database (default %(default)s)")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    serve.add_argument("--port", type=int, default=8000, help="port to listen on (default %(default)s)")
    serve.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
