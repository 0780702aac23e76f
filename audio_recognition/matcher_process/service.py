"""The server of the matcher's socket. It takes questions from any number of connections and answers them in order of arrival.

One thread matches. The event loop beside it reads, refuses questions beyond the queue's limit and drops those that waited longer than their
client does. The questions of a closed connection are dropped. Matching belongs in matching, the form of a question in frames.py.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from audio_recognition.matcher_process.frames import (
    LENGTH_BYTES,
    FrameError,
    MatcherReply,
    Trouble,
    decode_question,
    frame_message,
    read_length,
)
from catalog_store.errors import NoSnapshotError

if TYPE_CHECKING:
    from audio_recognition.matcher_process.frames import Question
    from audio_recognition.matcher_process.live_index import LiveIndex
    from audio_recognition.matcher_process.meters import Meters
    from audio_recognition.matching import Answer

log = structlog.get_logger("audio_recognition")

MOST_WAITING = 64
"""Questions in the queue: some 0.3 s of work. More would only wait until their clients give up."""
_RETRY_WITHOUT_INDEX = 5
_LARGEST_BACKLOG = 2**20
"""Bytes of unread answers after which a client is disconnected."""
_WEIGHT_OF_LAST = 0.1
"""In the running mean of how long a match takes."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    question: Question
    asker: asyncio.StreamWriter
    since: float


class MatcherService:
    """The service of one socket, from `run`. Everything but matching itself happens on one event loop."""

    def __init__(self, live: LiveIndex, meters: Meters, *, most_waiting: int = MOST_WAITING) -> None:
        """Serve from `live`, whose owner follows `current`."""
        self._live = live
        self._meters = meters
        self._most_waiting = most_waiting
        self._queue: deque[_Waiting] = deque()
        self._has_work = asyncio.Event()
        self._is_stopping = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="match")
        # Before the first match: a match takes milliseconds.
        self._mean_seconds = 0.005
        self._askers: set[asyncio.StreamWriter] = set()

    async def run(self, socket_path: str, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set; waiting questions are still answered."""
        try:
            server = await asyncio.start_unix_server(self._listen_to, socket_path)
        except OSError as error:
            # The error does not name the socket. A path of more than 107 bytes is refused by the kernel.
            raise OSError(f"cannot listen on {socket_path}: {error}; name another socket, with a short path") from error
        worker, stop = asyncio.create_task(self._work()), asyncio.create_task(stopping.wait())
        await asyncio.wait((worker, stop), return_when=asyncio.FIRST_COMPLETED)
        server.close()
        self._is_stopping = True
        self._has_work.set()
        # Raises an unexpected error: a new process is better than one that accepts questions and never answers.
        await worker
        for asker in list(self._askers):
            asker.close()
        self._thread.shutdown()

    async def _listen_to(self, reader: asyncio.StreamReader, asker: asyncio.StreamWriter) -> None:
        self._askers.add(asker)
        self._meters.connections.set(len(self._askers))
        try:
            while True:
                length = read_length(await reader.readexactly(LENGTH_BYTES))
                self._take(decode_question(await reader.readexactly(length)), asker)
                await asker.drain()  # a client that does not read answers may not send more questions
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client disconnected
        except FrameError as error:
            log.warning("a connection is closed", reason=str(error))
        finally:
            self._askers.discard(asker)
            self._meters.connections.set(len(self._askers))
            # Nobody reads these answers any more.
            self._queue = deque(one for one in self._queue if one.asker is not asker)
            self._meters.waiting.set(len(self._queue))
            asker.close()

    def _take(self, question: Question, asker: asyncio.StreamWriter) -> None:
        if len(self._queue) >= self._most_waiting:
            self._send(asker, self._build_busy_reply(question.number))
            return
        self._queue.append(_Waiting(question, asker, asyncio.get_running_loop().time()))
        self._meters.waiting.set(len(self._queue))
        self._has_work.set()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._has_work.wait()
            if not self._queue:
                if self._is_stopping:
                    return
                self._has_work.clear()
                continue
            turn = self._queue.popleft()
            self._meters.waiting.set(len(self._queue))
            waited = loop.time() - turn.since
            self._meters.wait_seconds.observe(waited)
            # The client has given up by now: matching would only delay the next questions.
            reply = (
                self._build_busy_reply(turn.question.number)
                if waited > turn.question.patience_seconds
                else await self._answer(turn.question)
            )
            self._send(turn.asker, reply)

    async def _answer(self, question: Question) -> MatcherReply:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            answer = await loop.run_in_executor(self._thread, self._match, question)
        except NoSnapshotError:
            return MatcherReply(question.number, trouble=Trouble.NO_INDEX, retry_after=_RETRY_WITHOUT_INDEX)
        except Exception:
            log.exception("a question could not be matched")  # an error in one question must not end the others
            return MatcherReply(question.number, trouble=Trouble.FAILED)
        seconds = loop.time() - began
        # Refused clients learn from the mean when to come again.
        self._mean_seconds += _WEIGHT_OF_LAST * (seconds - self._mean_seconds)
        self._meters.match_seconds.observe(seconds)
        if answer.matches:
            self._meters.confidence.observe(answer.matches[0].confidence)
        return MatcherReply(question.number, answer)

    def _match(self, question: Question) -> Answer:
        with self._live.hold() as index:
            return index.answer(question)

    def _build_busy_reply(self, number: int) -> MatcherReply:
        return MatcherReply(number, trouble=Trouble.BUSY, retry_after=max(1, math.ceil(len(self._queue) * self._mean_seconds)))

    def _send(self, asker: asyncio.StreamWriter, reply: MatcherReply) -> None:
        self._meters.questions.labels(_name_outcome(reply)).inc()
        # Answers must not fill the memory for a client that reads none.
        if asker.transport.get_write_buffer_size() > _LARGEST_BACKLOG:
            asker.transport.abort()
        elif not asker.is_closing():
            asker.write(frame_message(reply))


def _name_outcome(reply: MatcherReply) -> str:
    if reply.answer is None:
        return str(reply.trouble)
    return "matched" if reply.answer.matches else str(reply.answer.reason)
