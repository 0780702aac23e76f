"""`python -m catalog_store.scrub` reads all files of the live snapshot slowly, again and again, and reports damage.

A worker reads the served files for all others before they open them. Disks damage files later, and only analysts read the tables.
One process of a machine does this for all its workers (the server's supervisor starts it), at the lowest priority and a limited speed. It
checks a damaged file again when it changes, so the alarm ends after the repair. Rollback and publish repair; serving/body_file.py checks
single answers.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog
from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from catalog_store.errors import SnapshotInvalidError
from catalog_store.log import log_json
from catalog_store.snapshot import CURRENT, MANIFEST, find_role, read_manifest
from catalog_store.stop_signals import run_until_signal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from catalog_store.snapshot import StoredFile, TablePart

log = structlog.get_logger("catalog_store")

STATE_FILE = "scrub.json"
"""The file of the state, in the folder of the server's reports. The workers show it on /readyz."""
METRICS_VARIABLE = "COMPANION_METRICS"
"""The environment variable that names the metrics file. The server's supervisor sets it (catalog_api/server/companion_processes.py)."""
LOOK_SECONDS = 1.0
"""Seconds between checks of `current` and of damaged files."""
# Small enough that the pauses keep the speed even: 20 blocks a second by default.
_BLOCK_BYTES = 1 << 20
_LOWEST_PRIORITY = 19


class ScrubState(msgspec.Struct):
    """The known state of the live snapshot."""

    snapshot: str | None = None
    damaged: dict[str, str] = {}
    """Path in the snapshot -> fault."""
    finished_unix: float = 0.0
    """When all files had been read; 0 before that."""
    read_bytes: int = 0
    rounds: int = 0


class Scrubber:
    """The scrub of one catalog. `run` it in one thread."""

    def __init__(self, root: Path, bytes_per_second: float, pause_seconds: float, report: Callable[[ScrubState], None]) -> None:
        """Take a catalog root or a snapshot's folder.

        `pause_seconds` separate two rounds; `report` receives the state once a second.
        """
        self._root = root
        self._bytes_per_second = bytes_per_second
        self._pause_seconds = pause_seconds
        self._report_state = report
        self._reported_at = 0.0
        self._stopping = threading.Event()
        self._marks: dict[str, tuple[int, int] | None] = {}
        """Size and last change of each damaged file when it was read."""
        self.state = ScrubState()

    def stop(self) -> None:
        """End `run` within a block."""
        self._stopping.set()

    def run(self) -> None:
        """Read all files until stopped. After any error it tries again."""
        while not self._stopping.is_set():
            try:
                folder = self._find_folder()
                self._read_through(folder)
                self._pause(folder)
            except Exception as error:  # noqa: BLE001 - a snapshot may be pruned meanwhile, and nobody else checks
                log.warning("the scrub cannot read the live snapshot", reason=str(error))
                self._stopping.wait(LOOK_SECONDS)
                self._report()

    def _find_folder(self) -> Path:
        link = self._root / CURRENT
        return (link if link.is_symlink() else self._root).resolve()

    def _read_through(self, folder: Path) -> None:
        if self.state.snapshot != folder.name:
            self.state.snapshot, self.state.damaged, self.state.finished_unix = folder.name, {}, 0.0
            self._marks.clear()
        for file in self._list_files(folder):
            self._note(folder, file.path, self._find_fault(folder, file))
            if self._stopping.is_set() or self._find_folder() != folder:
                return
        self.state.rounds += 1
        self.state.finished_unix = time.time()
        self._report()

    def _list_files(self, folder: Path) -> list[StoredFile | TablePart]:
        try:
            manifest = read_manifest(folder)
        except (SnapshotInvalidError, OSError) as error:
            self._note(folder, MANIFEST, str(error))
            return []
        self._note(folder, MANIFEST, None)
        return list(manifest.list_files(find_role(folder, manifest)))

    def _pause(self, folder: Path) -> None:
        """Wait for the next round, for another snapshot, and for damaged files to change."""
        until = time.monotonic() + self._pause_seconds
        while time.monotonic() < until and not self._stopping.wait(min(LOOK_SECONDS, self._pause_seconds)):
            self._report()
            if self._find_folder() != folder:
                return
            changed = [path for path, mark in self._marks.items() if _read_mark(folder / path) != mark]
            if changed:
                for file in self._list_files(folder):
                    if file.path in changed:
                        self._note(folder, file.path, self._find_fault(folder, file))

    def _note(self, folder: Path, path: str, fault: str | None) -> None:
        damaged = self.state.damaged
        if fault is not None:
            self._marks[path] = _read_mark(folder / path)
            if damaged.get(path) != fault:
                damaged[path] = fault
                remedy = "python -m pipeline rollback to another snapshot, or put the published file back; then look at the disk"
                log.error("a file of the live snapshot is damaged", snapshot=folder.name, file=path, fault=fault, remedy=remedy)
                self._report()
        elif path in damaged:
            del damaged[path]
            self._marks.pop(path, None)
            log.info("a file of the live snapshot is intact again", snapshot=folder.name, file=path, damaged=len(damaged))
            self._report()

    def _find_fault(self, folder: Path, stored: StoredFile | TablePart) -> str | None:
        digest, size = hashlib.sha256(), 0
        try:
            with (folder / stored.path).open("rb", buffering=0) as file:
                while not self._stopping.is_set():
                    began = time.monotonic()
                    block = file.read(_BLOCK_BYTES)
                    if not block:
                        break
                    digest.update(block)
                    size += len(block)
                    self.state.read_bytes += len(block)
                    self._report_when_due()
                    # Sleep off the time that the block was read faster than allowed.
                    self._stopping.wait(max(len(block) / self._bytes_per_second - (time.monotonic() - began), 0.0))
                else:
                    # Stopped half-way: nothing new is known.
                    return self.state.damaged.get(stored.path)
        except FileNotFoundError:
            # A prune removes the whole folder after `current` has moved on.
            return "it is missing" if folder.is_dir() else None
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        if size != stored.bytes:
            return f"it has {size} bytes instead of {stored.bytes}"
        return None if digest.hexdigest() == stored.sha256 else "it has other contents"

    def _report_when_due(self) -> None:
        if time.monotonic() - self._reported_at >= LOOK_SECONDS:
            self._report()

    def _report(self) -> None:
        self._reported_at = time.monotonic()
        self._report_state(self.state)


def read_state(folder: Path) -> ScrubState | None:
    """Read the last state of this machine's scrub; None when there is none, or its file is unreadable."""
    try:
        return msgspec.json.decode((folder / STATE_FILE).read_bytes(), type=ScrubState)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Scrub until stopped."""
    options = build_parser().parse_args(arguments)
    log_json(options.log_level)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _LOWEST_PRIORITY)
    registry = CollectorRegistry()
    gauges = {
        name: Gauge(f"scrub_{name}", about, registry=registry)
        for name, about in (
            ("damaged_files", "Files of the live snapshot that are not what was published"),
            ("finished_timestamp_seconds", "When all files of the live snapshot had last been read through; 0 before the first time"),
            ("rounds", "How often that was done since the process began"),
            ("read_bytes", "Bytes read since the process began"),
        )
    }

    def write_state(state: ScrubState) -> None:
        gauges["damaged_files"].set(len(state.damaged))
        gauges["finished_timestamp_seconds"].set(state.finished_unix)
        gauges["rounds"].set(state.rounds)
        gauges["read_bytes"].set(state.read_bytes)
        # A full disk must not end the scrub.
        with suppress(OSError):
            if options.metrics_file:
                write_to_textfile(str(options.metrics_file), registry)
            if options.state_folder:
                fresh = options.state_folder / f"{STATE_FILE}.new"
                fresh.write_bytes(msgspec.json.encode(state))
                # A worker reads the file at any time, so it is replaced whole.
                fresh.replace(options.state_folder / STATE_FILE)

    scrubber = Scrubber(options.catalog, options.mb_per_second * 1e6, options.pause_seconds, write_state)
    run_until_signal(scrubber.run, scrubber.stop)
    return 0


def _read_mark(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_ctime_ns


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m catalog_store.scrub", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--catalog", metavar="DIR", type=Path, required=True, help="catalog folder that `pipeline build` published into")
    parser.add_argument("--mb-per-second", metavar="N", type=float, default=20.0, help="reading speed (default %(default)s)")
    parser.add_argument("--pause-seconds", metavar="S", type=float, default=3600.0, help="pause between two rounds (default %(default)s)")
    parser.add_argument("--state-folder", metavar="DIR", type=Path, help=f"folder into which {STATE_FILE} is written every second")
    metrics_file = os.environ.get(METRICS_VARIABLE)
    parser.add_argument(
        "--metrics-file", metavar="FILE", type=Path, default=metrics_file, help="file into which metrics are written every second"
    )
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    return parser


if __name__ == "__main__":
    sys.exit(main())
