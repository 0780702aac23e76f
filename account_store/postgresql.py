"""Connections to PostgreSQL that wait for nothing for ever: a connection, an answer, a network that swallows packets, a free one.

A server that hangs (frozen, out of disk, behind a firewall that drops) answers nothing and closes nothing: without limits of our own each
request would take a thread with it until none is left. Every wait of the driver passes `PatientConnection.wait`; once it has taken too
long the connection is given up. From then on `Outage` lets one attempt at a time through, and refuses the others at once. What must not
live here: SQL, what callers are told.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from sqlalchemy import QueuePool
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from account_store.errors import InvalidValueError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Generator

    from sqlalchemy import PoolProxiedConnection

SECONDS_VARIABLE = "ACCOUNT_DATABASE_SECONDS"
"""Environment variable: how long PostgreSQL may take for a connection, and to go on with an answer."""
ANSWER_SECONDS = 5.0
"""By default: a statement of ours takes milliseconds, and whoever asks waits for it."""
LONG_ANSWER_SECONDS = 60.0
"""Queries for many bytes get more time: the server works on them for seconds before the first byte leaves."""
PAUSE_SECONDS = 1.0
"""After an attempt that failed, until the next one is let through."""
_LEAST_CONNECT_SECONDS = 2
"""libpq takes less for this."""
_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}

Answer = TypeVar("Answer")


def answer_seconds() -> float:
    """The limit in force. InvalidValueError when the environment names none."""
    text = os.environ.get(SECONDS_VARIABLE, str(ANSWER_SECONDS))
    with suppress(ValueError):
        seconds = float(text)
        if 0 < seconds < float("inf"):
            return seconds
    raise InvalidValueError(f"{SECONDS_VARIABLE} = {text!r}: name seconds, as in {ANSWER_SECONDS:g}")


class Outage:
    """Whether the server has stopped to answer, for all connections of a process."""

    def __init__(self) -> None:
        """It answers."""
        self._lock = threading.Lock()
        self._again_at: float | None = None
        """When the next attempt is let through; None while the server answers."""
        self.is_silent = False
        """Whether the attempt that was let through last has failed, or none was since."""

    def admit(self, seconds: float) -> None:
        """Let an attempt through that takes `seconds` at most; UnavailableError at once while another one is under way, or just failed."""
        if self._again_at is None:
            return
        now = time.monotonic()
        with self._lock:
            if self._again_at is not None and now < self._again_at:
                raise UnavailableError("the database of the accounts does not answer: it is tried again in a moment")
            self._again_at, self.is_silent = now + seconds + PAUSE_SECONDS, False

    def note_silence(self) -> None:
        """It did not answer in time."""
        with self._lock:
            self._again_at, self.is_silent = time.monotonic() + PAUSE_SECONDS, True

    def note_answer(self) -> None:
        """It answered."""
        if self._again_at is not None:
            with self._lock:
                self._again_at, self.is_silent = None, False


class PatientConnection(psycopg.Connection[Any]):
    """Waits for the server as long as it goes on answering, and `answer_seconds` at most for the next piece."""

    answer_seconds = ANSWER_SECONDS
    outage: Outage | None = None

    def wait(self, gen: Generator[Any, Any, Answer], interval: float = 0.1, timeout: float | None = None) -> Answer:
        """As the driver's, with a limit; a connection that did not answer in time is closed, and the error says so."""
        try:
            answer = super().wait(_bounded(gen, self.answer_seconds), interval, timeout)
        except _SilenceError:
            self.pgconn.finish()
            if self.outage is not None:
                self.outage.note_silence()
            raise psycopg.OperationalError(f"no answer within {self.answer_seconds:g} s") from None
        if self.outage is not None:
            self.outage.note_answer()
        return answer


class _SilenceError(Exception):
    """The limit is over."""


def _bounded(gen: Generator[Any, Any, Answer], seconds: float) -> Generator[Any, Any, Answer]:
    """The same generator; the driver sends it 0 each time that nothing has come for its interval."""
    until = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready:
                until = time.monotonic() + seconds
            elif time.monotonic() > until:
                gen.close()
                raise _SilenceError
            wanted = gen.send(ready)
    except StopIteration as end:
        answer: Answer = end.value
        return answer


def connect(outage: Outage | None, seconds: float, *address: str, **parameters: Any) -> PatientConnection:  # noqa: ANN401 - the driver's
    """A connection; what the address itself says about time-outs goes before ours.

    UnavailableError when the server has just not answered: the pool asks for a new connection in the place of one that is silent.
    """
    if outage is not None and outage.is_silent:
        raise UnavailableError("the database of the accounts does not answer")
    said = psycopg.conninfo.conninfo_to_dict(*address, **parameters)
    limits = {"connect_timeout": max(round(seconds), _LEAST_CONNECT_SECONDS), "tcp_user_timeout": round(seconds * 1000), **_KEEPALIVES}
    ours = {name: value for name, value in limits.items() if name not in said}
    try:
        connection = PatientConnection.connect(*address, **{**parameters, **ours})
    except psycopg.OperationalError:
        if outage is not None:
            outage.note_silence()
        raise
    connection.answer_seconds, connection.outage = seconds, outage
    return connection


def pool_of(outage: Outage, seconds: float) -> type[QueuePool]:
    """The kind of pool whose connections fail as one: while the server is silent nobody waits for one of them in vain."""

    class PatientPool(QueuePool):
        def connect(self) -> PoolProxiedConnection:
            outage.admit(seconds)
            try:
                return super().connect()
            except PoolTimeoutError as error:
                raise UnavailableError("the database of the accounts is busy: no connection became free in time") from error

    return PatientPool
