"""The one thread of a process that books: it drains whatever waits into one transaction, answers, and looks again.

There is no timer: a lone charge is committed at once, and while one transaction is on its way to the disk the next batch gathers by itself.
Measured against a transaction per charge in benchmarks/metering.py. What must not live here: what an order means (`books`).
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from account_store.database import SQLITE
from account_store.errors import UnavailableError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import Future

    from sqlalchemy import URL

    from account_store.clock import Clock
    from account_store.ledger.books import Books
    from account_store.ledger.orders import Charge, Order

    Answer = asyncio.Future[Charge] | Future[Charge]
    Waiting = tuple[Order, Answer, asyncio.AbstractEventLoop | None]

log = logging.getLogger("account_store")

LARGEST_BATCH = 1000
"""Orders in one transaction: bounds how long the others wait for it."""
SWEEP_SECONDS = 300.0


class Writer:
    """Takes orders from any thread or event loop; each answer arrives where it was asked for, after its commit."""

    def __init__(self, url: URL, clock: Clock, sweep: Callable[[], object]) -> None:
        """`sweep` is called every SWEEP_SECONDS, between transactions."""
        self._url = url
        self._clock = clock
        self._sweep = sweep
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def submit(self, order: Order, answer: Answer, loop: asyncio.AbstractEventLoop | None) -> None:
        """Book `order` and complete `answer`: on `loop` when it is a future of that loop, else from the writer's thread."""
        if self._thread is None:
            self._start()
        if self._is_closed:
            raise UnavailableError("the account store is closed")
        self._waiting.put((order, answer, loop))

    def close(self) -> None:
        """Book what waits, then end the thread."""
        with self._starting:
            self._is_closed = True
            if self._thread is not None:
                self._waiting.put(None)
                self._thread.join()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="credit-writer", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        books: Books | None = None
        sweep_at = time.monotonic() + SWEEP_SECONDS
        is_open = True
        while is_open:
            batch, is_open = self._drain(max(sweep_at - time.monotonic(), 0.0))
            try:
                books = books or open_books(self._url)
                answers: list[Charge | Exception] = list(books.book([order for order, _, _ in batch], self._clock())) if batch else []
            except Exception as error:  # whatever it is, those who wait must hear of it and the thread must live
                log.exception("credits could not be booked", exc_info=error)
                answers = [UnavailableError(f"credits cannot be booked: {error}")] * len(batch)
                _close(books)
                books = None
            _answer(batch, answers)
            if time.monotonic() >= sweep_at:
                self._sweep_now()
                sweep_at = time.monotonic() + SWEEP_SECONDS
        _close(books)

    def _drain(self, seconds: float) -> tuple[list[Waiting], bool]:
        """What waits, at least one order unless `seconds` pass first; and whether the writer stays open."""
        batch: list[Waiting] = []
        try:
            item = self._waiting.get(timeout=seconds)
            while item is not None:
                batch.append(item)
                if len(batch) == LARGEST_BATCH:
                    return batch, True
                item = self._waiting.get_nowait()
        except queue.Empty:
            return batch, True
        return batch, False

    def _sweep_now(self) -> None:
        try:
            self._sweep()
        except Exception as error:  # tried again in some minutes
            log.exception("lapsed reservations could not be returned", exc_info=error)


def open_books(url: URL) -> Books:
    """A connection of the ledger's own; only the driver that is needed is imported."""
    if url.get_backend_name() == SQLITE:
        from account_store.ledger.sqlite_books import SqliteBooks  # noqa: PLC0415

        return SqliteBooks(url)
    from account_store.ledger.postgresql_books import PostgresqlBooks  # noqa: PLC0415

    return PostgresqlBooks(url)


def _close(books: Books | None) -> None:
    try:
        if books is not None:
            books.close()
    except Exception as error:  # noqa: BLE001 -- it was broken before
        log.warning("closing the ledger's connection failed: %s", error)


def _answer(batch: list[Waiting], answers: list[Charge | Exception]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop | None, list[tuple[Answer, Charge | Exception]]] = defaultdict(list)
    for (_, waiting, loop), answer in zip(batch, answers, strict=True):
        by_loop[loop].append((waiting, answer))
    for loop, pairs in by_loop.items():
        if loop is None:
            _complete(pairs)
            continue
        try:
            loop.call_soon_threadsafe(_complete, pairs)
        except RuntimeError:  # the loop was closed: nobody waits any more
            log.warning("%d charges were booked for an event loop that is gone", len(pairs))


def _complete(pairs: list[tuple[Answer, Charge | Exception]]) -> None:
    for waiting, answer in pairs:
        if waiting.done():  # its request went away
            continue
        if isinstance(answer, Exception):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)
