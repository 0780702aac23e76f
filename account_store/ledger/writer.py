"""The one thread of a process that books: it drains whatever waits into one transaction, answers, and looks again.

There is no timer: what waits is committed at once, and while one transaction is on its way to the disk the next orders queue up. Measured
against a transaction per charge in benchmarks/metering.py. What must not live here: what an order means (`books`), event loops
(`gathering`).
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING

from account_store.database import SQLITE
from account_store.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import URL

    from account_store.clock import Clock
    from account_store.ledger.books import Books
    from account_store.ledger.orders import Charge, Order

    Tell = Callable[[Sequence[Charge | Exception]], None]
    Submitted = tuple[list[Order], Tell]

log = logging.getLogger("account_store")

LARGEST_BATCH = 1000
"""Orders in one transaction: bounds how long the others wait for it."""
SWEEP_SECONDS = 300.0


class Writer:
    """Takes orders from any thread."""

    def __init__(self, url: URL, clock: Clock, sweep: Callable[[], object]) -> None:
        """`sweep` is called every SWEEP_SECONDS, between transactions."""
        self._url = url
        self._clock = clock
        self._sweep = sweep
        self._waiting: queue.SimpleQueue[Submitted | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def submit(self, orders: list[Order], tell: Tell) -> None:
        """Book `orders` together; `tell` is called by the writer's thread with their answers after the commit. Raises UnavailableError."""
        if self._thread is None:
            self._start()
        if self._is_closed:
            raise UnavailableError("the account store is closed")
        self._waiting.put((orders, tell))

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
            submitted, is_open = self._drain(max(sweep_at - time.monotonic(), 0.0))
            batch = [order for orders, _ in submitted for order in orders]
            try:
                books = books or open_books(self._url)
                answers: list[Charge | Exception] = list(books.book(batch, self._clock())) if batch else []
            except Exception as error:  # whatever it is, those who wait must hear of it and the thread must live
                log.exception("credits could not be booked", exc_info=error)
                answers = [UnavailableError(f"credits cannot be booked: {error}")] * len(batch)
                _close(books)
                books = None
            _tell(submitted, answers)
            if time.monotonic() >= sweep_at:
                self._sweep_now()
                sweep_at = time.monotonic() + SWEEP_SECONDS
        _close(books)

    def _drain(self, seconds: float) -> tuple[list[Submitted], bool]:
        """What waits, at least something unless `seconds` pass first; and whether the writer stays open."""
        submitted: list[Submitted] = []
        count = 0
        try:
            item = self._waiting.get(timeout=seconds)
            while item is not None:
                submitted.append(item)
                count += len(item[0])
                if count >= LARGEST_BATCH:
                    return submitted, True
                item = self._waiting.get_nowait()
        except queue.Empty:
            return submitted, True
        return submitted, False

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


def _tell(submitted: list[Submitted], answers: list[Charge | Exception]) -> None:
    begin = 0
    for orders, tell in submitted:
        tell(answers[begin : begin + len(orders)])
        begin += len(orders)
