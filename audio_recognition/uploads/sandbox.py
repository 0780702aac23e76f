"""The sandbox on the server's side: it has a new process forked for each upload, requests windows, and ends the process.

One `UploadSandbox` serves a server process and its event loop. The use of a window (matching, charging) does not belong here.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from audio_recognition.chromaprint import WEAK_BITS, SoftFingerprint
from audio_recognition.uploads.audio_windows import iterate_window_starts
from audio_recognition.uploads.limits import WINDOW_SECONDS, Limits
from audio_recognition.uploads.messages import WindowRequest
from audio_recognition.uploads.processes import ForkServer
from audio_recognition.uploads.sandbox_errors import SandboxBusyError, SandboxDownError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from typing import BinaryIO

    from numpy.typing import NDArray

    from audio_recognition.uploads.messages import FileFacts, WindowItems
    from audio_recognition.uploads.processes import DecodingProcess

MOST_AT_ONCE: Final = 4
"""Uploads decoded at the same time in one server process: each uses a core."""
MOST_WAITING: Final = 16
"""Uploads that wait for their turn; one takes tenths of a second."""
_TRIES: Final = 3
"""Attempts to fork: a fork server that has just died may show it only when it is used."""
_COST_OF_SILENCE: Final = 0.25
"""Silence is decoded, but neither fingerprinted nor matched."""
_SHORT_BY: Final = 0.5
"""Seconds that a window may lack before the end of the file: seeking is not exact in every format."""


@dataclass(frozen=True)
class Window:
    """A piece of the upload's sound."""

    start_seconds: float
    seconds: float
    fingerprints: tuple[SoftFingerprint, ...]
    """Fingerprints for each of `chromaprint.PHASES`; empty where the piece is shorter than `FIRST_ITEM_SECONDS`."""
    requested_seconds: float
    """The second from which its sound was chosen."""


class UploadSandbox:
    """Decodes uploads in processes of their own. For one event loop; close it at the end."""

    def __init__(self, limits: Limits | None = None, *, most_at_once: int = MOST_AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        """Store the limits. The first upload, or `start`, starts the fork server."""
        self._limits = limits or Limits()
        self._turns = asyncio.Semaphore(most_at_once)
        self._most_waiting = most_waiting
        self._waiting = 0
        self._server: ForkServer | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Start the fork server, so that the first upload need not wait for it. SandboxDownError."""
        async with self._starting:
            if self._server is None or not self._server.is_alive:
                await self._stop()
                self._server = await ForkServer.start()

    async def close(self) -> None:
        """End the fork server. Running uploads end with it."""
        async with self._starting:
            await self._stop()

    @asynccontextmanager
    async def open(self, file: BinaryIO, limits: Limits | None = None) -> AsyncIterator[Upload]:
        """Open an upload's file in the sandbox. `file` needs a readable descriptor and belongs to the sandbox until the block ends.

        UnsupportedAudioError, UndecodableAudioError (here or at any later window): the file's fault. SandboxBusyError, SandboxDownError:
        the server's. `limits`: others than those of the sandbox.
        """
        limits = limits or self._limits
        async with self._wait_turn():
            process = await self._fork_process(file, limits)
            try:
                yield Upload(process, await process.receive_facts(), limits.most_windows)
            finally:
                # No process sees two files: this one ends even after a good answer.
                process.end()

    @asynccontextmanager
    async def _wait_turn(self) -> AsyncIterator[None]:
        if self._turns.locked() and self._waiting >= self._most_waiting:
            raise SandboxBusyError(f"{self._waiting} uploads already wait to be decoded")
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()

    async def _fork_process(self, file: BinaryIO, limits: Limits) -> DecodingProcess:
        """Fork a confined process that has the file. If the fork server has died since the last upload, a new one is started."""
        for _ in range(_TRIES):
            await self.start()
            server = self._server
            if server is not None and (process := await server.fork(file, limits)):
                return process
        raise SandboxDownError(f"the fork server started no process in {_TRIES} attempts")

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()


class Upload:
    """A file open in the sandbox."""

    def __init__(self, process: DecodingProcess, opened: FileFacts, most_windows: int) -> None:
        """Hold the process; `opened` is its message about the file."""
        self._process = process
        self._most_windows = most_windows
        self.format = opened.format
        self.codec = opened.codec
        self.duration_seconds = opened.duration_seconds
        """The claim of the file, or None; nothing is allocated by it."""

    async def iterate_windows(self) -> AsyncGenerator[Window, None]:
        """Yield the windows with sound, each decoded on demand: the beginning, the middle, the quarters, then the rest in order.

        Silence costs a quarter of sound; the cost of `Limits.most_windows` ends the search. The first window is yielded even if it is
        silent or too short for an item. UndecodableAudioError.
        """
        end = self.duration_seconds or math.inf
        read: dict[float, float] = {}
        cost = 0.0
        while cost < self._most_windows:
            # The order is computed again for each window, because decoding may have moved the end.
            start = next((start for start in iterate_window_starts(end) if not _is_read(start, end, read)), None)
            if start is None:
                return
            heard = await self._process.request_window(WindowRequest(start))
            reached = read[start] = start + heard.read_seconds
            if heard.read_seconds < WINDOW_SECONDS - _SHORT_BY:
                end = min(end, reached)
            elif reached > end + _SHORT_BY:
                end = math.inf  # the file is longer than it claims
            cost += 1 + max(0.0, heard.read_seconds / WINDOW_SECONDS - 1) * _COST_OF_SILENCE
            if heard.seconds > 0:
                yield Window(heard.start_seconds, heard.seconds, _unpack_fingerprints(heard), start)

    async def iterate_whole_windows(self) -> AsyncGenerator[Window, None]:
        """Yield all sound in order, window after window, with its silence, up to `Limits.most_windows`. UndecodableAudioError."""
        for number in range(self._most_windows):
            start = number * WINDOW_SECONDS
            heard = await self._process.request_window(WindowRequest(start, is_whole=True))
            if heard.seconds > 0:
                yield Window(start, heard.seconds, _unpack_fingerprints(heard), start)
            if heard.seconds < WINDOW_SECONDS - _SHORT_BY:
                return

    async def fingerprint_at_speed(self, window: Window, speed: float) -> tuple[SoftFingerprint, ...]:
        """Return the fingerprints of a window played `speed` times as slowly. UndecodableAudioError."""
        return _unpack_fingerprints(await self._process.request_window(WindowRequest(window.requested_seconds, speed)))

    async def find_peaks(self, window: Window, *, is_whole: bool = False) -> NDArray[np.uint32]:
        """Return the landmarks of a window; `is_whole` for one of `iterate_whole_windows`. UndecodableAudioError."""
        return (await self._process.request_peaks(window.requested_seconds, is_whole=is_whole)).unpack()


def _unpack_fingerprints(heard: WindowItems) -> tuple[SoftFingerprint, ...]:
    return tuple(
        SoftFingerprint(np.frombuffer(items, "<u4").astype(np.uint32), np.frombuffer(weak, np.uint8).reshape(-1, WEAK_BITS))
        for items, weak in zip(heard.fingerprints, heard.weak_bits, strict=True)
    )


def _is_read(start: float, end: float, read: dict[float, float]) -> bool:
    """Return whether the window at `start` was read, alone or with the silence before another window; `read`: start -> end."""
    return start in read or any(first <= start and min(start + WINDOW_SECONDS, end) <= last for first, last in read.items())
