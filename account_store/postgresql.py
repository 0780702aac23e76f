"""Connections to PostgreSQL with a limit on every wait: for a connection, an answer, a lost packet, a free connection of the pool.

A server that hangs (frozen, out of disk, behind a firewall that drops packets) neither answers nor closes. Without limits of our own each
request would block a thread until none is left. Every wait of the driver passes `BoundedConnection.wait`, which gives the connection up
after the limit. From then on `Outage` admits one attempt at a time and refuses the others at once. Out of scope: SQL, messages
to callers.
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
"""Environment variable: limit for a connection, and for the next piece of an answer."""
ANSWER_SECONDS = 5.0
"""Default: our statements take milliseconds, and a request waits for each."""
LONG_ANSWER_SECONDS = 60.0
"""Limit of queries for many bytes: the server works on them for seconds before it sends the first byte."""
PAUSE_SECONDS = 1.0
"""Pause after a failed attempt, until the next one is admitted."""
_LEAST_CONNECT_SECONDS = 2
"""libpq raises smaller values to this."""
_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}

Answer = TypeVar("Answer")


def read_answer_seconds() -> float:
    """Return the limit in force. InvalidValueError: the environment holds no number of seconds."""
    text = os.environ.get(SECONDS_VARIABLE, str(ANSWER_SECONDS))
    with suppress(ValueError):
        seconds = float(text)
        if 0 < seconds < float("inf"):
            return seconds
    raise InvalidValueError(f"{SECONDS_VARIABLE} is {text!r}; it must be a positive number of seconds, such as {ANSWER_SECONDS:g}")


class Outage:
    """The availability of the server, shared by all connections of a process."""

    def __init__(self) -> None:
        """Assume that the server answers."""
        self._lock = threading.Lock()
        self._again_at: float | None = None
        """Time of the next admitted attempt; None while the server answers."""
        self.is_silent = False
        """The last admitted attempt failed."""

    def admit(self, seconds: float) -> None:
        """Admit an attempt of at most `seconds`; UnavailableError at once while another one runs, or just failed."""
        # Read without the lock, because every use of a connection comes here. A stale value admits one attempt too many at most.
        if self._again_at is None:
            return
        now = time.monotonic()
        with self._lock:
            if self._again_at is not None and now < self._again_at:
                raise UnavailableError("the database of the accounts does not answer: it is tried again in a moment")
            # Set before the attempt: all others are refused until it answers, or its time and the pause are over.
            self._again_at, self.is_silent = now + seconds + PAUSE_SECONDS, False

    def note_silence(self) -> None:
        """Note that the server did not answer in time."""
        with self._lock:
            self._again_at, self.is_silent = time.monotonic() + PAUSE_SECONDS, True

    def note_answer(self) -> None:
        """Note that the server answered."""
        if self._again_at is not None:
            with self._lock:
                self._again_at, self.is_silent = None, False


class BoundedConnection(psycopg.Connection[Any]):
    """Waits for the server while it goes on answering, at most `answer_seconds` for the next piece."""

    answer_seconds = ANSWER_SECONDS
    outage: Outage | None = None

    def wait(self, gen: Generator[Any, Any, Answer], interval: float = 0.1, timeout: float | None = None) -> Answer:
        """Wait as the driver does, with a limit; close a connection that did not answer in time."""
        try:
            answer = super().wait(_limit(gen, self.answer_seconds), interval, timeout)
        except _SilenceError:
            # A late answer would otherwise be read as the answer to the next statement.
            self.pgconn.finish()
            if self.outage is not None:
                self.outage.note_silence()
            # The driver's own class: SQLAlchemy and the ledger take it for a lost connection, which it is.
            raise psycopg.OperationalError(f"no answer within {self.answer_seconds:g} s") from None
        if self.outage is not None:
            self.outage.note_answer()
        return answer


class _SilenceError(Exception):
    """The limit has passed."""


def _limit(gen: Generator[Any, Any, Answer], seconds: float) -> Generator[Any, Any, Answer]:
    """Wrap the driver's generator. The driver sends 0 each time that nothing has come for its interval."""
    until = time.monotonic() + seconds
    try:
        condition = next(gen)
        while True:
            ready = yield condition
            # Any progress counts: a long answer that keeps coming is never cut off.
            if ready:
                until = time.monotonic() + seconds
            elif time.monotonic() > until:
                gen.close()
                raise _SilenceError
            condition = gen.send(ready)
    except StopIteration as end:
        answer: Answer = end.value
        return answer


def connect(outage: Outage | None, seconds: float, *address: str, **parameters: Any) -> BoundedConnection:  # noqa: ANN401 - the driver's
    """Connect; time-outs in the address itself go before ours.

    UnavailableError while the server is silent: the pool asks for a new connection in place of a silent one.
    """
    if outage is not None and outage.is_silent:
        raise UnavailableError("the database of the accounts does not answer")
    named = psycopg.conninfo.conninfo_to_dict(*address, **parameters)
    # Two cases that no answer limits: unacknowledged data (tcp_user_timeout), and a peer that vanishes from an idle
    # connection (keepalives: 10 s, then 3 times 5 s).
    limits = {"connect_timeout": max(round(seconds), _LEAST_CONNECT_SECONDS), "tcp_user_timeout": round(seconds * 1000), **_KEEPALIVES}
    ours = {name: value for name, value in limits.items() if name not in named}
    try:
        connection = BoundedConnection.connect(*address, **{**parameters, **ours})
    except psycopg.OperationalError:
        if outage is not None:
            outage.note_silence()
        raise
    connection.answer_seconds, connection.outage = seconds, outage
    return connection


def build_pool_class(outage: Outage, seconds: float) -> type[QueuePool]:
    """Return a pool class whose connections fail together: while the server is silent, nobody waits for one of them."""

    class BoundedPool(QueuePool):
        def connect(self) -> PoolProxiedConnection:
            # Before a connection is taken: while the server is silent, requests fail at once instead of waiting for the pool.
            outage.admit(seconds)
            try:
                return super().connect()
            except PoolTimeoutError as error:
                raise UnavailableError("the database of the accounts is busy: no connection became free in time") from error

    return BoundedPool
