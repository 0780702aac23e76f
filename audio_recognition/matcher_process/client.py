"""The asker's end of the matcher's socket: connects when there is something to ask, and anew after the matcher was gone.

    client = MatcherClient("/run/matcher.sock")
    answer = await client.match(fingerprints, duration_seconds=180)    # several at once share one connection
    answer = client.match_now(fingerprints)                            # blocking, a connection of its own

What must not live here: waiting and asking again: whoever asks knows whether it is worth it.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from typing import TYPE_CHECKING

from audio_recognition.matcher_process.errors import MatcherBusyError, MatcherDownError, MatcherFailedError
from audio_recognition.matcher_process.frames import (
    LENGTH_BYTES,
    FrameError,
    Question,
    Told,
    Trouble,
    framed,
    length_of,
    packed,
    told_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from audio_recognition.matching import Answer

PATIENCE_SECONDS = 5.0
"""For one question, in the queue and matched; a match takes milliseconds."""
RETRY_WHEN_DOWN = 2
"""Seconds; a matcher that died is started anew after half a second or more."""
MOST_RESULTS = 5


class MatcherClient:
    """Questions to one matcher. `match` for one event loop, `match_now` for any thread; all may be used at once."""

    def __init__(self, socket_path: str, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Connects to nothing yet. `patience_seconds` is how long each question may take."""
        self._path = socket_path
        self._patience = patience_seconds
        self._numbers = itertools.count(1)
        self._link: _Link | None = None
        self._linking = asyncio.Lock()
        self._line: socket.socket | None = None
        self._asking = threading.Lock()

    async def match(
        self, fingerprints: Sequence[NDArray[np.uint32]], *, duration_seconds: int | None = None, limit: int = MOST_RESULTS
    ) -> Answer:
        """As `Matcher.match`; MatcherBusyError, MatcherDownError, MatcherFailedError."""
        question = self._question(fingerprints, duration_seconds, limit)
        is_fresh = self._link is None or self._link.is_gone
        try:
            async with asyncio.timeout(self._patience):
                try:
                    return _answer(await (await self._linked()).ask(question))
                except (OSError, FrameError) as error:
                    if is_fresh:
                        raise _down(self._path, error) from error
                # The matcher was started anew since the last question, or died of this one: matching is repeatable.
                try:
                    return _answer(await (await self._linked()).ask(question))
                except (OSError, FrameError) as error:
                    raise _down(self._path, error) from error
        except TimeoutError:
            raise _too_late(self._patience) from None

    def match_now(
        self, fingerprints: Sequence[NDArray[np.uint32]], *, duration_seconds: int | None = None, limit: int = MOST_RESULTS
    ) -> Answer:
        """As `match`, blocking; one question at a time."""
        frame = framed(self._question(fingerprints, duration_seconds, limit))
        with self._asking:
            is_fresh = self._line is None
            try:
                return _answer(self._exchanged(frame))
            except TimeoutError:
                self._hang_up()
                raise _too_late(self._patience) from None
            except (OSError, FrameError) as error:
                self._hang_up()
                if is_fresh:
                    raise _down(self._path, error) from error
            try:
                return _answer(self._exchanged(frame))
            except (OSError, FrameError) as error:
                self._hang_up()
                raise _down(self._path, error) from error

    async def close(self) -> None:
        """End the connection of `match`; its questions under way fail."""
        if self._link is not None:
            await self._link.close()

    def close_now(self) -> None:
        """End the connection of `match_now`."""
        with self._asking:
            self._hang_up()

    def _question(self, fingerprints: Sequence[NDArray[np.uint32]], duration_seconds: int | None, limit: int) -> Question:
        return Question(next(self._numbers), packed(fingerprints), duration_seconds, limit, self._patience)

    async def _linked(self) -> _Link:
        async with self._linking:
            if self._link is None or self._link.is_gone:
                self._link = _Link(*await asyncio.open_unix_connection(self._path))
            return self._link

    def _exchanged(self, frame: bytes) -> Told:
        if self._line is None:
            self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._line.settimeout(self._patience)
            self._line.connect(self._path)
        self._line.sendall(frame)
        return told_of(_received(self._line, length_of(_received(self._line, LENGTH_BYTES))))

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


class _Link:
    """One connection of an event loop, and the questions under way on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._under_way: dict[int, asyncio.Future[Told]] = {}
        self._listening = asyncio.create_task(self._listen())
        self.is_gone = False

    async def ask(self, question: Question) -> Told:
        answer: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._under_way[question.number] = answer
        try:
            self._writer.write(framed(question))
            return await answer
        finally:
            self._under_way.pop(question.number, None)

    async def close(self) -> None:
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self) -> None:
        reason: Exception = ConnectionResetError("the matcher closed the connection")
        try:
            while True:
                length = length_of(await self._reader.readexactly(LENGTH_BYTES))
                told = told_of(await self._reader.readexactly(length))
                waiting = self._under_way.get(told.number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(told)
        except asyncio.IncompleteReadError:
            pass
        except (OSError, FrameError) as error:
            reason = error
        finally:
            self.is_gone = True
            self._writer.close()
            for waiting in self._under_way.values():
                if not waiting.done():
                    waiting.set_exception(reason)


def _received(line: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = line.recv(count - len(parts))
        if not part:
            raise ConnectionResetError("the matcher closed the connection")
        parts += part
    return bytes(parts)


def _answer(told: Told) -> Answer:
    if told.answer is not None:
        return told.answer
    if told.trouble is Trouble.BUSY:
        raise MatcherBusyError("the matcher's queue is full", told.retry_after)
    if told.trouble is Trouble.NO_INDEX:
        raise MatcherDownError("the matcher has no index open", told.retry_after)
    raise MatcherFailedError("the matcher could not match this fingerprint; its log tells why")


def _too_late(seconds: float) -> MatcherBusyError:
    return MatcherBusyError(f"the matcher did not answer within {seconds:g} s", 1)


def _down(path: str, error: Exception) -> MatcherDownError:
    return MatcherDownError(f"the matcher does not answer on {path}: {str(error) or type(error).__name__}", RETRY_WHEN_DOWN)
