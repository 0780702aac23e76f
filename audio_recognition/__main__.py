"""`python -m audio_recognition`: the matcher process by itself, and the tracks of long recordings."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from audio_recognition.matcher_process.process import MatcherOptions, SocketTakenError, run_matcher
from audio_recognition.matcher_process.service import MOST_WAITING
from audio_recognition.timeline.local_files import write_timelines
from catalog_store.log import log_json

if TYPE_CHECKING:
    from collections.abc import Sequence

METRICS_VARIABLE = "COMPANION_METRICS"
"""Set by the server's supervisor when it starts the matcher (catalog_api/server/companion_processes.py)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return exit code 1 when it cannot."""
    options = vars(build_parser().parse_args(arguments))
    command = options.pop("command")
    if command == "timeline":
        return write_timelines(**options, out=sys.stdout, errors=sys.stderr)
    log_json(options.pop("log_level"))
    try:
        run_matcher(MatcherOptions(**options))
    except (SocketTakenError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m audio_recognition", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("matcher", help="answer questions of clients on a Unix socket until stopped")
    command.add_argument("--catalog", metavar="DIR", type=Path, required=True, help="catalog folder that `pipeline build` published into")
    command.add_argument("--socket", metavar="FILE", type=Path, required=True, help="Unix socket to listen on")
    metrics_file = os.environ.get(METRICS_VARIABLE)
    command.add_argument(
        "--metrics-file", metavar="FILE", type=Path, default=metrics_file, help="file into which metrics are written every second"
    )
    command.add_argument("--look-seconds", type=float, default=1.0, help="seconds between checks whether another snapshot is live")
    command.add_argument(
        "--no-verify-contents", dest="verify_contents", action="store_false", help="check only the sizes of a new index, not its contents"
    )
    command.add_argument("--most-waiting", type=int, default=MOST_WAITING, help="length of the queue; further questions are refused")
    command.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    command = commands.add_parser("timeline", help="list the tracks of long audio files (mixes, shows, sides of albums) in order")
    command.add_argument("--catalog", metavar="DIR", type=Path, required=True, help="catalog folder that `pipeline build` published into")
    command.add_argument(
        "--format",
        dest="form",
        choices=["csv", "cue"],
        default="csv",
        help="CSV with gaps on standard output, or a cue sheet beside each file",
    )
    command.add_argument("files", metavar="FILE", type=Path, nargs="+", help="audio file in a format of uploads")
    return parser


if __name__ == "__main__":
    sys.exit(main())
