"""The one thread of a process that books: it drains whatever waits into one transaction, answers, and looks again.

There is no timer: what waits is committed at once, and while one transaction is on its way to the disk the next orders queue up. Measured
against a transaction per charge in benchmarks/metering.py.

On SQLite an event loop books by itself where nobody else writes at that moment (`submit_at_once`): the thread only waits for the disk
then, which needs no interpreter, and answers. What must not live here: what an order means (`books`), event loops (`gathering`).
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
    from account_store.ledger.orders import Charge, PlainCharge
    from account_store.ledger.sqlite_books import PromptSqliteBooks

    Answers = Sequence[Charge | Exception]
    Tell = Callable[[Answers], None]
    Submitted = tuple[list[Order], Answers | None, Tell]
    """Orders, or the answers to what was booked at once, and who is told."""

log = logging.getLogger("account_store")

LARGEST_BATCH = 1000
"""Orders in one transaction: bounds how long the others wait for it."""
SWEEP_SECONDS = 300.0
MEND_SECONDS = 1.0
"""How often it is tried to give back what is owed."""
BATCHES_PER_CHECKPOINT = 250
"""Of those booked at once: two pages and a bit each (1,080 for 500), half of what SQLite itself lets the log grow by."""


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
        self._prompt: PromptSqliteBooks | None = None
        """Opened and closed by the thread, used by an event loop; both hold the lock."""
        self._prompt_lock = threading.Lock()
        self._is_without_prompt = False
        self._has_lost_prompt = False
        """Whether its file was replaced under it."""
        self._checkpoint: threading.Thread | None = None
        self._since_checkpoint = 0
        self._owed: list[Order] = []
        """Credits to give back as soon as the database answers: releases that failed, charges that hold though nobody was told."""
        self._doubts: list[tuple[InDoubtError, list[Order]]] = []
        """Commits without an answer, each with the credits that it gave back."""
        self._begins_log = False
        """Whether the next transaction may be the first of a log begun anew, for whose head SQLite waits for the disk."""

    def submit(self, orders: list[Order], tell: Tell) -> None:
        """Book `orders` together; `tell` is called by the writer's thread with their answers after the commit. Raises UnavailableError."""
        self._submit(orders, None, tell)

    def submit_at_once(self, asked: Sequence[Order | PlainCharge], tell: Tell) -> None:
        """The same for one event loop, and booked before this returns where all are plain and that can be done without waiting."""
        answers = self._charged_now(asked)
        orders = [] if answers is not None else [one if isinstance(one, Order) else Order(Kind.CHARGE, *one) for one in asked]
        self._submit(orders, answers, tell)

    def _charged_now(self, asked: Sequence[Order | PlainCharge]) -> Answers | None:
        plain = [one for one in asked if not isinstance(one, Order)]
        if self._begins_log or len(plain) < len(asked) or not self._prompt_lock.acquire(blocking=False):
            self._begins_log = False
            return None
        try:
            return None if self._prompt is None else self._prompt.charge(plain, self._clock())
        except Exception as error:  # noqa: BLE001 -- nothing was booked; the thread tries, and tells what it meets
            self._has_lost_prompt = isinstance(error, UnavailableError)
            log.debug("not charged at once: %r", error)
            return None
        finally:
            self._prompt_lock.release()

    def _submit(self, orders: list[Order], answers: Answers | None, tell: Tell) -> None:
        if self._thread is None:
            self._start()
        if self._is_closed:
            raise UnavailableError("the account store is closed")
        self._waiting.put((orders, answers, tell))

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
            self._sync([one for one in submitted if one[1] is not None])
            waiting = [one for one in submitted if one[1] is None]
            batch = [order for orders, _, _ in waiting for order in orders]
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
            _tell(waiting, answers)
            if self._has_lost_prompt:
                self._close_prompt()
                self._is_without_prompt = self._has_lost_prompt = False
            if self._prompt is None and books is not None and not self._is_without_prompt:
                self._open_prompt()
            if time.monotonic() >= sweep_at:
                self._sweep_now()
                sweep_at = time.monotonic() + SWEEP_SECONDS
        if self._owed or self._doubts:
            owed = sum(order.credits for order in self._owed)
            log.error("credits are owed and lost with this process: %d, and those of %d commits in doubt", owed, len(self._doubts))
        _close(books)
        self._close_prompt()

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

    def _sync(self, booked: list[Submitted]) -> None:
        """Answer what was booked at once, as soon as it is on disk."""
        if not booked or self._prompt is None:
            return
        try:
            self._prompt.sync()
        except (OSError, UnavailableError) as error:
            log.exception("booked credits did not reach the disk", exc_info=error)
            self._close_prompt()  # SQLite itself knows better what is left of its log
            self._is_without_prompt = isinstance(error, OSError)  # a file that was replaced is opened anew
            failed = UnavailableError(f"credits cannot be booked: {error}")
            booked = [(orders, [failed] * len(answers or ()), tell) for orders, answers, tell in booked]
        for _, answers, tell in booked:
            tell(answers or ())
        self._since_checkpoint += len(booked)
        if self._since_checkpoint >= BATCHES_PER_CHECKPOINT and (self._checkpoint is None or not self._checkpoint.is_alive()):
            self._since_checkpoint = 0
            # In a thread of its own: it takes some milliseconds, and answers wait for this one.
            self._checkpoint = threading.Thread(target=self._move_log, name="log-checkpoint", daemon=True)
            self._checkpoint.start()

    def _move_log(self) -> None:
        from account_store.ledger.sqlite_books import checkpoint  # noqa: PLC0415

        try:
            checkpoint(self._url)
        except Exception as error:  # noqa: BLE001 -- the log grows meanwhile; tried again soon
            log.warning("the accounts' write-ahead log could not be moved into the database: %s", error)
        self._begins_log = True

    def _open_prompt(self) -> None:
        try:
            self._prompt = open_prompt_books(self._url)
        except Exception as error:  # noqa: BLE001 -- all is booked by this thread then
            log.warning("credits cannot be booked at once: %s", error)
        self._is_without_prompt = self._prompt is None

    def _close_prompt(self) -> None:
        self._is_without_prompt = True
        with self._prompt_lock:
            _close(self._prompt)
            self._prompt = None

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


def open_prompt_books(url: URL) -> PromptSqliteBooks | None:
    """A connection that books without waiting; None where there is no such thing."""
    if url.get_backend_name() != SQLITE:
        return None
    from account_store.ledger.sqlite_books import PromptSqliteBooks  # noqa: PLC0415

    return PromptSqliteBooks(url)


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
    for orders, _, tell in submitted:
        tell(answers[begin : begin + len(orders)])
        begin += len(orders)
