"""The matcher process: one socket, one lock, the signals that end it, its metrics written every second.

Answering belongs in service.py, options of the command in audio_recognition/__main__.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from audio_recognition.matcher_process.live_index import LiveIndex
from audio_recognition.matcher_process.meters import Meters
from audio_recognition.matcher_process.service import MOST_WAITING, MatcherService
from catalog_store.file_lock import hold_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

log = structlog.get_logger("audio_recognition")

WRITE_SECONDS = 1.0


@dataclass(frozen=True)
class MatcherOptions:
    """The options of a matcher."""

    catalog: Path
    """Catalog root, or a snapshot's folder."""
    socket: Path
    metrics_file: Path | None = None
    look_seconds: float = 1.0
    verify_contents: bool = True
    most_waiting: int = MOST_WAITING


class SocketTakenError(Exception):
    """Another matcher listens on the socket."""


def run_matcher(options: MatcherOptions) -> None:
    """Serve until SIGTERM or SIGINT. SocketTakenError; OSError when the socket cannot be created."""
    os.umask(0o077)  # the socket is for this user's processes
    with _lock_socket(options.socket):
        asyncio.run(_serve(options))
    log.info("matcher stopped")


async def _serve(options: MatcherOptions) -> None:
    stopping = asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, stopping.set)
    live = LiveIndex(
        options.catalog,
        verify_contents=options.verify_contents,
        look_seconds=options.look_seconds,
        # Beside the socket: the next matcher finds the index that this one opened last.
        last_served=Path(f"{options.socket}.last-served-snapshot"),
    )
    meters = Meters()
    live.follow()
    writing = asyncio.create_task(_write(meters, live, options.metrics_file))
    log.info("matcher serves", socket=str(options.socket))
    await MatcherService(live, meters, most_waiting=options.most_waiting).run(str(options.socket), stopping)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    # After the service has answered what was waiting.
    live.close()
    options.socket.unlink(missing_ok=True)


async def _write(meters: Meters, live: LiveIndex, file: Path | None) -> None:
    while file is not None:
        meters.recordings.set(live.recordings)
        meters.refuses.set(live.refused is not None)
        meters.behind_seconds.set(live.read_status().behind_seconds)
        # A full disk must not stop the matcher.
        with suppress(OSError):
            meters.write(file)
        await asyncio.sleep(WRITE_SECONDS)


@contextmanager
def _lock_socket(socket: Path) -> Iterator[None]:
    """Hold the lock beside the socket. The kernel releases it with the process, so the socket of a killed matcher can be replaced."""
    refusal = SocketTakenError(f"another matcher listens on {socket}: stop it, or name another socket")
    with hold_lock(Path(f"{socket}.lock"), refusal):
        yield
