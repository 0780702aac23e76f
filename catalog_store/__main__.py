"""`python -m catalog_store`: snapshots from and to other machines, and the lake of all builds.

Progress goes to standard error, the answer as one line of JSON to standard output. Exit code 0: done; 1: refused or failed, with the reason
in the last line on standard error; 2: the command line is wrong; 130, 143: stopped by Ctrl-C, by SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from catalog_store.current_link import find_live_folder
from catalog_store.errors import CatalogError
from catalog_store.file_transfer import end_transfers
from catalog_store.lake import KEPT_DAYS, Lake, commit_live_snapshot, expire_versions, list_builds
from catalog_store.log_stream import guard_standard_error
from catalog_store.snapshot import ROLES
from catalog_store.snapshot_pull import KEPT_SNAPSHOTS, pull
from catalog_store.snapshot_push import push
from catalog_store.standard_output import AnswerLostError, print_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType


class _StoppedError(KeyboardInterrupt):
    """A signal asked the command to end; the argument is its number. No library takes it for an error of its own."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    options = build_parser().parse_args(arguments)
    guard_standard_error()  # a full disk under the log must not end a pull
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        exit_code: int = options.run(options)
    except _StoppedError as stopped:
        end_transfers()
        print("interrupted", file=sys.stderr)
        return 128 + int(stopped.args[0])
    except AnswerLostError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (CatalogError, OSError, ValueError) as error:
        print(f"error: {error}{_tell_live(options)}", file=sys.stderr)
        return 1
    return exit_code


def pull_snapshot(options: argparse.Namespace) -> int:
    """Make the live snapshot of another machine the live one of this machine. Only files that are not here yet are fetched."""
    report = _start_report()
    done = pull(options.source, options.dest, role=options.role, keep=options.keep, reads_all=options.read_all, report=report)
    print_answer(json.dumps(asdict(done)))
    return 0


def push_snapshot(options: argparse.Namespace) -> int:
    """Make the live snapshot of this machine the live one of a store, from which other machines pull. Only new files are sent."""
    done = push(options.source, options.dest, role=options.role, keep=options.keep, sends_all=options.send_all, report=_start_report())
    print_answer(json.dumps(asdict(done)))
    return 0


def _start_report() -> Callable[[str], None]:
    """Return a function that prints a line of progress with the seconds since now."""
    began = time.monotonic()

    def report(line: str) -> None:
        print(f"[{time.monotonic() - began:7.1f} s] {line}", file=sys.stderr)

    return report


def run_lake(options: argparse.Namespace) -> int:
    """Keep the tables of every build in a DuckLake, with time travel.

    `commit` adds the live snapshot as one version, `list` shows the versions, `expire` forgets old ones and tidies the files. The lake is
    in `<catalog>/lake` unless --database and --data name another place. It needs an environment of its own, which
    `scripts/setup .venv-lake requirements-lake.lock` makes.
    """
    lake = Lake.find(options.catalog, options.database, options.data)
    if options.action == "commit":
        answer = commit_live_snapshot(options.catalog, lake)
    elif options.action == "expire":
        answer = expire_versions(options.catalog, lake, options.keep_days)
    else:
        answer = list_builds(lake)
    print_answer(json.dumps(answer))
    return 0


def _tell_live(options: argparse.Namespace) -> str:
    """Return the line that ends the message of a failure: what a pull or push left as it was."""
    if options.run is push_snapshot:
        return "\nThe store shows no other snapshot than before."
    is_live = options.run is pull_snapshot and find_live_folder(options.dest) is not None
    return "\nThe snapshot that was live before is still live." if is_live else ""


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    raise _StoppedError(number)


def _parse_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m catalog_store", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "pull", help="take over the live snapshot of another machine, and switch to it", description=pull_snapshot.__doc__
    )
    command.add_argument("source", metavar="SOURCE", help="catalog of the other machine: a folder, http(s)://... or s3://...")
    command.add_argument("dest", metavar="DEST", type=Path, help="catalog folder of this machine; made when missing")
    command.add_argument("--role", choices=[*ROLES, "all"], default="serving", help="files that this machine needs (default %(default)s)")
    command.add_argument(
        "--keep",
        type=_parse_count,
        default=KEPT_SNAPSHOTS,
        metavar="N",
        help="snapshots that stay, the live one included (default %(default)s)",
    )
    command.add_argument(
        "--read-all", action="store_true", help="read every file that is here instead of trusting earlier checks, and replace damaged ones"
    )
    command.set_defaults(run=pull_snapshot)
    command = commands.add_parser("push", help="send the live snapshot to a store, and switch it there", description=push_snapshot.__doc__)
    command.add_argument("source", metavar="SOURCE", type=Path, help="catalog folder of this machine")
    command.add_argument(
        "dest", metavar="DEST", help="catalog in a store: s3://... or another address of fsspec that can be written, or a folder"
    )
    command.add_argument("--role", choices=[*ROLES, "all"], default="all", help="files that are sent (default %(default)s)")
    command.add_argument(
        "--keep",
        type=_parse_count,
        default=KEPT_SNAPSHOTS,
        metavar="N",
        help="snapshots that stay in the store, the new one included (default %(default)s)",
    )
    command.add_argument("--send-all", action="store_true", help="send the files that the store has, too, because one of them is damaged")
    command.set_defaults(run=push_snapshot)

    command = commands.add_parser("lake", help="keep the tables of every build, with time travel", description=run_lake.__doc__)
    command.add_argument("action", choices=["commit", "list", "expire"])
    command.add_argument("--catalog", type=Path, required=True, metavar="DIR", help="catalog whose live snapshot is added")
    command.add_argument("--database", metavar="URL", help="the lake's catalog: sqlite:FILE or postgres:CONNECTION (default: in DIR/lake)")
    command.add_argument("--data", metavar="PLACE", help="folder or s3:// address of the lake's files (default: in DIR/lake)")
    command.add_argument(
        "--keep-days",
        type=_parse_count,
        default=KEPT_DAYS,
        metavar="N",
        help="expire: age of the oldest kept version (default %(default)s)",
    )
    command.set_defaults(run=run_lake)
    return parser


if __name__ == "__main__":
    sys.exit(main())
