"""The client of the matcher's socket. It connects for the first question, and again after the matcher was gone.

  client = MatcherClient("/run/matcher.sock")
  answer = await client.match(fingerprints, duration_seconds=180)    # several at once share one connection
  answer = client.match_now(fingerprints)                            # blocking, a connection of its own

Waiting and retrying do not belong here: the caller knows whether they are worth it.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from typing import TYPE_CHECKING

from audio_recognition.matcher_process.frames import (
    LENGTH_BYTES,
    FrameError,
    MatcherReply,
    Question,
    Trouble,
    decode_reply,
    frame_message,
    pack_fingerprints,
    pack_weak_bits,
    read_length,
)
from audio_recognition.matcher_process.matcher_errors import MatcherBusyError, MatcherDownError, MatcherFailedError
from audio_recognition.matching import OWN_PACE, Answer, Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from audio_recognition.matching import Pace

PATIENCE_SECONDS = 5.0
"""For one question, in the queue and matched; a match takes milliseconds."""
RETRY_WHEN_DOWN = 2
"""Seconds; a dead matcher is restarted after half a second or more."""
MOST_RESULTS = 5


class MatcherClient:
    """Questions to one matcher. `match` is for one event loop, `match_now` for any thread; all may be used at once."""

    def __init__(self, socket_path: str, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Store the path without connecting. `patience_seconds` is how long each question may take."""
        self._path = socket_path
        self._patience = patience_seconds
        self._numbers = itertools.count(1)
        self._link: _Link | None = None
        self._linking = asyncio.Lock()
        self._line: socket.socket | None = None
        self._asking = threading.Lock()

    async def match(
        self,
        fingerprints: Sequence[NDArray[np.uint32]],
        *,
        weak_bits: Sequence[NDArray[np.uint8]] = (),
        pace: Pace = OWN_PACE,
        duration_seconds: int | None = None,
        limit: int = MOST_RESULTS,
    ) -> Answer:
        """Match as `Matcher.match` does; MatcherBusyError, MatcherDownError, MatcherFailedError."""
        return await self._ask(
            Question(
                next(self._numbers),
                pack_fingerprints(fingerprints),
                pack_weak_bits(weak_bits),
                pace,
                duration_seconds,
                limit,
                self._patience,
            )
        )

    async def match_landmarks(
        self, fingerprints: Sequence[NDArray[np.uint32]], peaks: NDArray[np.uint32], *, limit: int = MOST_RESULTS
    ) -> Answer:
        """Match as `Matcher.match_landmarks` does; errors as of `match`. Without peaks nothing is found."""
        if not len(peaks):
            return Answer(reason=Reason.NOT_FOUND)
        (packed,) = pack_fingerprints([peaks])
        return await self._ask(
            Question(next(self._numbers), pack_fingerprints(fingerprints), (), OWN_PACE, None, limit, self._patience, packed)
        )

    async def _ask(self, question: Question) -> Answer:
        is_fresh = self._link is None or self._link.is_gone
        try:
            async with asyncio.timeout(self._patience):
                try:
                    return _read_answer(await (await self._connect()).ask(question))
                except (OSError, FrameError) as error:
                    # A new connection that fails is not a sign of a restart, so a second try is of no use.
                    if is_fresh:
                        raise _build_down_error(self._path, error) from error
                # The matcher was restarted since the last question, or died of this one. Matching is repeatable.
                try:
                    return _read_answer(await (await self._connect()).ask(question))
                except (OSError, FrameError) as error:
                    raise _build_down_error(self._path, error) from error
        except TimeoutError:
            raise _build_timeout_error(self._patience) from None

    def match_now(
        self, fingerprints: Sequence[NDArray[np.uint32]], *, duration_seconds: int | None = None, limit: int = MOST_RESULTS
    ) -> Answer:
        """Match as `match` does without weak bits, blocking; one question at a time."""
        frame = frame_message(
            Question(next(self._numbers), pack_fingerprints(fingerprints), (), OWN_PACE, duration_seconds, limit, self._patience)
        )
        with self._asking:
            is_fresh = self._line is None
            try:
                return _read_answer(self._exchange(frame))
            # Before OSError, of which it is a kind. The line is closed: a late reply would be taken for the answer to the next
            # question.
            except TimeoutError:
                self._hang_up()
                raise _build_timeout_error(self._patience) from None
            except (OSError, FrameError) as error:
                self._hang_up()
                if is_fresh:
                    raise _build_down_error(self._path, error) from error
            try:
                return _read_answer(self._exchange(frame))
            except (OSError, FrameError) as error:
                self._hang_up()
                raise _build_down_error(self._path, error) from error

    async def close(self) -> None:
        """Close the connection of `match`; its pending questions fail."""
        if self._link is not None:
            await self._link.close()

    def close_now(self) -> None:
        """Close the connection of `match_now`."""
        with self._asking:
            self._hang_up()

    async def _connect(self) -> _Link:
        # Questions that arrive together must share one connection.
        async with self._linking:
            if self._link is None or self._link.is_gone:
                self._link = _Link(*await asyncio.open_unix_connection(self._path))
            return self._link

    def _exchange(self, frame: bytes) -> MatcherReply:
        if self._line is None:
            self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._line.settimeout(self._patience)
            self._line.connect(self._path)
        self._line.sendall(frame)
        return decode_reply(_receive(self._line, read_length(_receive(self._line, LENGTH_BYTES))))

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


class _Link:
    """One connection of an event loop, and its pending questions."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._under_way: dict[int, asyncio.Future[MatcherReply]] = {}
        self._listening = asyncio.create_task(self._listen())
        self.is_gone = False

    async def ask(self, question: Question) -> MatcherReply:
        answer: asyncio.Future[MatcherReply] = asyncio.get_running_loop().create_future()
        self._under_way[question.number] = answer
        try:
            self._writer.write(frame_message(question))
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
                length = read_length(await self._reader.readexactly(LENGTH_BYTES))
                reply = decode_reply(await self._reader.readexactly(length))
                waiting = self._under_way.get(reply.number)
                # The reply to a question that was given up finds nobody.
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except asyncio.IncompleteReadError:
            pass
        except (OSError, FrameError) as error:
            reason = error
        finally:
            self.is_gone = True
            self._writer.close()
            # Every pending question fails at once; `match` asks again over a new connection.
            for waiting in self._under_way.values():
                if not waiting.done():
                    waiting.set_exception(reason)


def _receive(line: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = line.recv(count - len(parts))
        if not part:
            raise ConnectionResetError("the matcher closed the connection")
        parts += part
    return bytes(parts)


def _read_answer(reply: MatcherReply) -> Answer:
    if reply.answer is not None:
        return reply.answer
    if reply.trouble is Trouble.BUSY:
        raise MatcherBusyError("the matcher's queue is full", reply.retry_after)
    if reply.trouble is Trouble.NO_INDEX:
        raise MatcherDownError("the matcher has no index open", reply.retry_after)
    raise MatcherFailedError("the matcher could not match this fingerprint; its log has the reason")


def _build_timeout_error(seconds: float) -> MatcherBusyError:
    return MatcherBusyError(f"the matcher did not answer within {seconds:g} s", 1)


def _build_down_error(path: str, error: Exception) -> MatcherDownError:
    return MatcherDownError(f"the matcher does not answer on {path}: {str(error) or type(error).__name__}", RETRY_WHEN_DOWN)
