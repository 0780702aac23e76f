"""The one thread of a process that books: it drains whatever waits into one transaction, answers, and looks again.

There is no timer: what waits is committed at once, and while one transaction is on its way to the disk the next orders queue up. Measured
against a transaction per charge in benchmarks/metering.py.

What must not live here: what an order means (`books`), event loops (`gathering`).
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING

from account_store.database import SQLITE
from account_store.errors import AccountError, UnavailableError
from account_store.ledger.books import InDoubtError
from account_store.ledger.orders import Kind, Order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import URL

    from account_store.clock import Clock
    from account_store.ledger.books import Books
    from account_store.ledger.orders import Charge

    Answers = Sequence[Charge | Exception]
    Tell = Callable[[Answers], None]
    Submitted = tuple[list[Order], Tell]
    """Orders, and who is told."""

log = logging.getLogger("account_store")

LARGEST_BATCH = 1000
"""Orders in one transaction: bounds how long the others wait for it."""
SWEEP_SECONDS = 300.0
MEND_SECONDS = 1.0
"""How often it is tried to give back what is owed."""


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
        self._owed: list[Order] = []
        """Credits to give back as soon as the database answers: releases that failed, charges that hold though nobody was told."""
        self._doubts: list[tuple[InDoubtError, list[Order]]] = []
        """Commits without an answer, each with the credits that it gave back."""

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
            patience = max(sweep_at - time.monotonic(), 0.0)
            submitted, is_open = self._drain(min(patience, MEND_SECONDS) if self._owed or self._doubts else patience)
            batch = [order for orders, _ in submitted for order in orders]
            try:
                books = self._opened(books, batch)
                answers = self._book(books, batch)
                if any(type(answer) is UnavailableError for answer in answers):  # others of the batch were booked before it fell silent
                    _close(books)
                    books = None
            except Exception as error:  # whatever it is, those who wait must hear of it and the thread must live
                log.exception("credits could not be booked", exc_info=error)
                answers = [UnavailableError(f"credits cannot be booked: {error}")] * len(batch)
                _close(books)
                books = None
            _tell(submitted, answers)
            if time.monotonic() >= sweep_at:
                self._sweep_now()
                sweep_at = time.monotonic() + SWEEP_SECONDS
        if self._owed or self._doubts:
            owed = sum(order.credits for order in self._owed)
            log.error("credits are owed and lost with this process: %d, and those of %d commits in doubt", owed, len(self._doubts))
        _close(books)

    def _opened(self, books: Books | None, batch: list[Order]) -> Books:
        """A connection, all doubts that can be resolved by now resolved; what `batch` would give back is owed when there is none."""
        try:
            books = books or open_books(self._url)
            self._resolve_doubts(books)
        except Exception:
            _close(books)  # one that was opened here is nobody else's
            self._owed += [order for order in batch if order.kind is Kind.REFUND]
            raise
        return books

    def _book(self, books: Books, batch: list[Order]) -> list[Charge | Exception]:
        """Book `batch`, and what is owed before it. What it would give back is owed when that fails."""
        owed, self._owed = self._owed, []
        every = [*owed, *batch]
        if not every:
            return []
        refunds = [order for order in every if order.kind is Kind.REFUND]
        try:
            answers = list(books.book(every, self._clock()))
        except InDoubtError as doubt:
            self._doubts.append((doubt, refunds))
            raise
        except Exception:
            self._owed = refunds
            raise
        failed = [order for order, answer in zip(every, answers, strict=True) if isinstance(answer, Exception)]
        gave = [order for order in failed if order.kind is Kind.REFUND]
        unanswered = next((answer for answer in answers if isinstance(answer, InDoubtError)), None)
        if unanswered is not None:
            self._doubts.append((unanswered, gave))
        else:
            self._owed += gave
        if owed:
            log.warning("%d credits that were owed are given back", sum(order.credits for order in owed))
        return [_as_told(answer) for answer in answers[len(owed) :]]

    def _resolve_doubts(self, books: Books) -> None:
        doubts, self._doubts = self._doubts, []
        while doubts:
            doubt, gave = doubts[-1]
            try:
                holds = books.has_committed(doubt.transaction)
            except BaseException:
                self._doubts += doubts
                raise
            doubts.pop()
            if holds is None:
                self._doubts.append((doubt, gave))
            else:
                self._owed += doubt.taken if holds else gave

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


def _as_told(answer: Charge | Exception) -> Charge | Exception:
    """Troubles of the database in the words of the account store."""
    if isinstance(answer, Exception) and not isinstance(answer, AccountError):
        return UnavailableError(f"credits cannot be booked: {answer}")
    return answer


def _tell(submitted: list[Submitted], answers: list[Charge | Exception]) -> None:
    begin = 0
    for orders, tell in submitted:
        tell(answers[begin : begin + len(orders)])
        begin += len(orders)
