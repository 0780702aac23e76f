"""The writer thread of a process: it commits all waiting operations in one transaction, delivers the results, and repeats.

There is no timer. Waiting operations are committed at once; while one transaction is on its way to the disk, the next operations queue up.
`benchmarks/metering.py` measures this against a transaction for each charge.

A thread that ends by an error fails everything that waits for it with UnavailableError; the next operation starts another thread.
Out of scope: the meaning of an operation (`ledger_database`), event loops (`batch_collector`).
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from account_store.database import SQLITE
from account_store.errors import AccountError, UnavailableError
from account_store.ledger.ledger_database import InDoubtError
from account_store.ledger.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import URL

    from account_store.clock import Clock
    from account_store.ledger.ledger_database import LedgerDatabase
    from account_store.ledger.operations import Charge, Operation

    Results = Sequence[Charge | Exception]
    ResultsCallback = Callable[[Results], None]
    Submission = tuple[list[Operation], ResultsCallback]

log = logging.getLogger("account_store")

LARGEST_BATCH = 1000
"""Operations in one transaction: bounds how long the others wait for it."""
SWEEP_SECONDS = 300.0
RETRY_SECONDS = 1.0
"""Interval at which pending refunds and commits in doubt are tried again."""


class Writer:
    """The writer of one process. Thread-safe."""

    def __init__(self, url: URL, clock: Clock, sweep: Callable[[], object]) -> None:
        """Call `sweep` every SWEEP_SECONDS, between transactions."""
        self._url = url
        self._clock = clock
        self._sweep = sweep
        self._lock = threading.Lock()
        """Held to look at the thread together with the queue: nothing is queued for a thread that has ended."""
        self._queue: queue.SimpleQueue[Submission | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._batch: deque[Submission] = deque()
        """Taken from the queue, and without results yet."""
        self._pending_refunds: list[Operation] = []
        """Give these back as soon as the database answers: releases that failed, charges that hold though their callers got an error."""
        self._doubts: list[tuple[InDoubtError, list[Operation]]] = []
        """Commits without an answer, each with its refunds."""

    def submit(self, operations: list[Operation], on_results: ResultsCallback) -> None:
        """Commit `operations` together; `on_results` is called by the writer's thread with their results. UnavailableError.

        `on_results` is always called, with UnavailableError in place of the results that nobody knows.
        """
        with self._lock:
            if self._is_closed:
                raise UnavailableError("the account store is closed: nothing can be charged")
            # A thread is not alive after a fork, either.
            if self._thread is None or not self._thread.is_alive():
                self._thread = self._start_thread()
            self._queue.put((operations, on_results))

    def close(self) -> None:
        """Commit everything that waits, then end the thread."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
            if thread is not None:
                self._queue.put(None)
        # Outside of the lock: a thread that ends by an error takes the lock to fail what waits.
        if thread is not None:
            thread.join()

    def _start_thread(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="credit-writer", daemon=True)
        try:
            thread.start()
        # The system has no more threads, or no memory for another stack.
        except RuntimeError as error:
            raise UnavailableError(f"the credit writer cannot start: {error}") from error
        return thread

    def _run(self) -> None:
        try:
            self._commit_until_closed()
        except BaseException as error:  # no error may leave a caller waiting for ever
            log.critical("the credit writer ended; the next charge starts it again", exc_info=error)
            self._fail_all(UnavailableError(f"the credit writer ended: {error!r}"))

    def _fail_all(self, failure: UnavailableError) -> None:
        """Deliver `failure` to everything that waits; keep its refunds for the next thread."""
        # Under the lock no operation can be queued between the last look and the end of this thread.
        with self._lock:
            # Refunds of the batch are pending already (`_connect` and `_commit` keep them). Those of the queue are kept below.
            self._thread = None
            batch, self._batch = self._batch, deque()
            with suppress(queue.Empty):
                while True:
                    submission = self._queue.get_nowait()
                    if submission is not None:
                        batch.append(submission)
                        self._pending_refunds += [operation for operation in submission[0] if operation.kind is Kind.REFUND]
        _deliver(batch, [failure] * sum(len(operations) for operations, _ in batch))

    def _commit_until_closed(self) -> None:
        database: LedgerDatabase | None = None
        sweep_at = time.monotonic() + SWEEP_SECONDS
        is_open = True
        try:
            while is_open:
                # With debts it wakes every RETRY_SECONDS, also when nobody charges: they end with this process.
                seconds = max(sweep_at - time.monotonic(), 0.0)
                is_open = self._fill_batch(min(seconds, RETRY_SECONDS) if self._pending_refunds or self._doubts else seconds)
                operations = [operation for submitted, _ in self._batch for operation in submitted]
                try:
                    database = self._connect(database, operations)
                    results = self._commit(database, operations)
                    # The plain charges of a batch are committed first: the database may fall silent after them.
                    if any(type(result) is UnavailableError for result in results):
                        _close(database)
                        database = None
                # The callers get the error, and the thread goes on. A connection that failed once is not used again.
                except Exception as error:  # noqa: BLE001 - logged, each in its form
                    _log_failure("credits could not be booked", error)
                    results = [UnavailableError(f"credits cannot be booked: {error}")] * len(operations)
                    _close(database)
                    database = None
                _deliver(self._batch, results)
                if time.monotonic() >= sweep_at:
                    self._sweep_now()
                    sweep_at = time.monotonic() + SWEEP_SECONDS
        finally:
            _close(database)
        if self._pending_refunds or self._doubts:
            owed = sum(refund.credits for refund in self._pending_refunds)
            log.error("credits are owed and lost with this process: %d, and those of %d commits in doubt", owed, len(self._doubts))

    def _connect(self, database: LedgerDatabase | None, operations: list[Operation]) -> LedgerDatabase:
        """Return an open connection once it has resolved the doubts that it can. Without one, refunds of the batch stay pending."""
        try:
            database = database or connect_ledger(self._url)
            self._resolve_doubts(database)
        except BaseException:
            _close(database)  # one that was opened here has no other owner
            self._pending_refunds += [operation for operation in operations if operation.kind is Kind.REFUND]
            raise
        return database

    def _commit(self, database: LedgerDatabase, operations: list[Operation]) -> list[Charge | Exception]:
        """Commit the pending refunds and `operations`; return the results of the latter. Refunds stay pending when that fails."""
        # Refunds go first: they make room for the charges of the same account in this batch.
        pending, self._pending_refunds = self._pending_refunds, []
        every = [*pending, *operations]
        if not every:
            return []
        refunds = [operation for operation in every if operation.kind is Kind.REFUND]
        try:
            results = list(database.apply(every, self._clock()))
        except InDoubtError as doubt:
            self._doubts.append((doubt, refunds))
            raise
        except BaseException:
            self._pending_refunds = refunds
            raise
        failed = [operation for operation, result in zip(every, results, strict=True) if isinstance(result, Exception)]
        failed_refunds = [operation for operation in failed if operation.kind is Kind.REFUND]
        doubt_of_batch = next((result for result in results if isinstance(result, InDoubtError)), None)
        if doubt_of_batch is not None:
            self._doubts.append((doubt_of_batch, failed_refunds))
        else:
            self._pending_refunds += failed_refunds
        if pending:
            log.warning("%d credits that were owed are given back", sum(refund.credits for refund in pending))
        # Nobody waits for the results of pending refunds.
        return [_convert_error(result) for result in results[len(pending) :]]

    def _resolve_doubts(self, database: LedgerDatabase) -> None:
        """Ask whether each commit in doubt holds: if so its charges are given back, if not its refunds are repeated."""
        doubts, self._doubts = self._doubts, []
        while doubts:
            # A doubt leaves the list only after an answer: an error keeps this one and all before it.
            doubt, refunds = doubts[-1]
            try:
                holds = database.has_committed(doubt.transaction)
            except BaseException:
                self._doubts += doubts
                raise
            doubts.pop()
            if holds is None:
                self._doubts.append((doubt, refunds))
            else:
                self._pending_refunds += doubt.refunds if holds else refunds

    def _fill_batch(self, seconds: float) -> bool:
        """Wait at most `seconds` for a submission, then take everything that waits; return whether the writer stays open."""
        count = 0
        try:
            # Only the first get waits: operations that have come meanwhile join the batch, and nothing delays it.
            submission = self._queue.get(timeout=seconds)
            while submission is not None:
                self._batch.append(submission)
                count += len(submission[0])
                if count >= LARGEST_BATCH:
                    return True
                submission = self._queue.get_nowait()
        except queue.Empty:
            return True
        return False

    def _sweep_now(self) -> None:
        try:
            self._sweep()
        # A failed sweep loses nothing: the next one finds the same rows.
        except Exception as error:  # noqa: BLE001 - logged, each in its form
            _log_failure("expired reservations could not be given back; the next sweep tries again", error)


def connect_ledger(url: URL) -> LedgerDatabase:
    """Open a connection of the ledger's own. Only the driver that is needed is imported."""
    if url.get_backend_name() == SQLITE:
        from account_store.ledger.sqlite_ledger import SqliteLedger  # noqa: PLC0415

        return SqliteLedger(url)
    from account_store.ledger.postgresql_ledger import PostgresqlLedger  # noqa: PLC0415

    return PostgresqlLedger(url)


def _log_failure(event: str, error: Exception) -> None:
    """Log a fault of our own with its trace. One of the database is a line: every charge meets a full disk, and its text says enough."""
    # By name (PEP 249): only the driver that is needed is imported. SQLite reports damage as a plain DatabaseError.
    is_of_database = type(error).__name__ == "DatabaseError" or any(kind.__name__ == "OperationalError" for kind in type(error).__mro__)
    if is_of_database or isinstance(error, AccountError | OSError):
        log.error("%s: %s", event, error)
    else:
        log.error(event, exc_info=error)


def _deliver(batch: deque[Submission], results: Results) -> None:
    """Call the callbacks of the batch in order, and empty it."""
    begin = 0
    while batch:
        operations, on_results = batch.popleft()
        try:
            on_results(results[begin : begin + len(operations)])
        except BaseException:  # one caller's fault must not keep the others waiting
            log.exception("the result of a charge could not be delivered")
        begin += len(operations)


def _close(database: LedgerDatabase | None) -> None:
    try:
        if database is not None:
            database.close()
    except Exception as error:  # noqa: BLE001 -- it was broken before
        log.warning("closing the ledger's connection failed: %s", error)


def _convert_error(result: Charge | Exception) -> Charge | Exception:
    """Return errors of a driver as UnavailableError."""
    if isinstance(result, Exception) and not isinstance(result, AccountError):
        return UnavailableError(f"credits cannot be booked: {result}")
    return result
