"""The writer's steps, each by itself, without a database or a thread: batches, results, pending refunds, doubts, connections."""

from __future__ import annotations

import logging
import sqlite3
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from account_store.database import parse_url
from account_store.errors import IdempotencyKeyReusedError, UnavailableError
from account_store.ledger import writer
from account_store.ledger.ledger_database import InDoubtError, LedgerDatabase
from account_store.ledger.operations import Charge, Kind, Operation
from account_store.ledger.writer import Writer
from tests.account_store.ledger.ledger_books import MONTH, NOW, Books, granted, operation, result

if TYPE_CHECKING:
    from collections.abc import Callable


# --- the writer ---


@pytest.fixture
def subject() -> Writer:
    return Writer(parse_url("sqlite:///nowhere.db"), lambda: NOW, lambda: None)


def submission(count: int, heard: list[Any] | None = None) -> tuple[list[Operation], Callable[[Any], None]]:
    return [operation()] * count, ([] if heard is None else heard).append


@pytest.mark.parametrize(
    ("sizes", "taken", "is_open"),
    [([999, 1, 5], 2, True), ([1000, 1], 1, True), ([999, 2, 5], 2, True), ([1, 1], 2, True), ([1001, 1], 1, True)],
)
def test_batch_ends_with_the_submission_that_reaches_the_limit(subject: Writer, sizes: list[int], taken: int, is_open: bool) -> None:  # noqa: FBT001
    for size in sizes:
        subject._queue.put(submission(size))
    assert subject._fill_batch(0) is is_open
    assert [len(operations) for operations, _ in subject._batch] == sizes[:taken]


def test_closed_queue_ends_the_writer_after_what_came_before(subject: Writer) -> None:
    subject._queue.put(submission(3))
    subject._queue.put(None)
    assert subject._fill_batch(0) is False
    assert [len(operations) for operations, _ in subject._batch] == [3]
    assert subject._fill_batch(0) is True, "an empty queue is not a closed one"


def test_results_are_delivered_to_each_submission_in_order(caplog: pytest.LogCaptureFixture, subject: Writer) -> None:
    heard: list[Any] = []

    def fail(_results: object) -> None:
        raise RuntimeError("gone")

    subject._batch.extend([submission(2, heard), ([operation()], fail), submission(0, heard), submission(1, heard)])
    writer._deliver(subject._batch, [result(number) for number in (1, 2, 3, 4)])
    assert heard == [[result(1), result(2)], [], [result(4)]]
    assert not subject._batch
    assert [record.getMessage() for record in caplog.records] == ["the result of a charge could not be delivered"]


def test_pending_refunds_come_first_and_answer_no_caller(subject: Writer, caplog: pytest.LogCaptureFixture) -> None:
    books, owed = Books(), [operation(Kind.REFUND, 7), operation(Kind.REFUND, 2)]
    assert subject._commit(books, []) == []
    subject._pending_refunds = owed
    assert granted(subject._commit(books, [operation(credits_=9)])) == [9]
    assert (subject._pending_refunds, books.used) == ([], {(1, MONTH): 0})
    assert [record.getMessage() for record in caplog.records] == ["9 credits that were owed are given back"]
    subject._pending_refunds = owed
    assert subject._commit(books, []) == []
    assert books.used == {(1, MONTH): -9}


@pytest.mark.parametrize("failure", [OSError("away"), KeyboardInterrupt()])
def test_refunds_stay_pending_when_the_batch_fails(subject: Writer, failure: BaseException) -> None:
    class Away(Books):
        def apply(self, _operations: object, _now: object) -> list[Charge | Exception]:
            raise failure

    subject._pending_refunds = [operation(Kind.REFUND, 7)]
    with pytest.raises(type(failure)):
        subject._commit(Away(), [operation(), operation(Kind.REFUND, 3), operation(Kind.SETTLE, 0)])
    assert [refund.credits for refund in subject._pending_refunds] == [7, 3]
    assert subject._doubts == []


def test_refunds_of_a_commit_in_doubt_wait_for_its_answer(subject: Writer) -> None:
    books, doubt = Books(), InDoubtError("7")
    books.plain_fails = doubt
    with pytest.raises(InDoubtError):
        subject._commit(books, [operation(credits_=4), operation(Kind.REFUND, 3)])
    assert subject._pending_refunds == []
    assert [(known, [refund.credits for refund in refunds]) for known, refunds in subject._doubts] == [(doubt, [3])]


@pytest.mark.parametrize(("failure", "is_doubt"), [(OSError("away"), False), (InDoubtError("8"), True)])
def test_refund_that_failed_under_locks_is_pending_or_in_doubt(subject: Writer, failure: Exception, is_doubt: bool) -> None:  # noqa: FBT001
    books = Books(plain_first=True)
    books.used = {(1, MONTH): 150, (2, MONTH): 0}
    books.fails = failure
    results = subject._commit(books, [operation(Kind.REFUND, 3), operation(credits_=1, account_id=2)])
    assert granted(results) == [UnavailableError, 1]
    assert str(results[0]) == f"credits cannot be booked: {failure}"
    assert [refund.credits for refund in subject._pending_refunds] == ([] if is_doubt else [3])
    assert [[refund.credits for refund in refunds] for _, refunds in subject._doubts] == ([[3]] if is_doubt else [])


def test_errors_of_the_account_store_are_delivered_unchanged() -> None:
    reused, unavailable = IdempotencyKeyReusedError("reused"), UnavailableError("away")
    assert writer._convert_error(reused) is reused
    assert writer._convert_error(unavailable) is unavailable
    assert writer._convert_error(result(1)) == result(1)


def test_doubts_are_resolved_last_first_and_open_ones_stay(subject: Writer) -> None:
    doubts = {name: InDoubtError(name) for name in ("holds", "lost", "open")}
    for number, doubt in enumerate(doubts.values()):
        doubt.refunds = [operation(Kind.REFUND, 100 + number)]
        subject._doubts.append((doubt, [operation(Kind.REFUND, 200 + number)]))
    books = Books()
    books.known = {"holds": True, "lost": False, "open": None}
    subject._resolve_doubts(books)
    assert [doubt.transaction for doubt, _ in subject._doubts] == ["open"]
    assert sorted(refund.credits for refund in subject._pending_refunds) == [100, 201]


def test_doubts_outlive_an_answer_that_does_not_come(subject: Writer) -> None:
    for name in ("a", "b", "c"):
        doubt = InDoubtError(name)
        doubt.refunds = [operation(Kind.REFUND, 1)]
        subject._doubts.append((doubt, []))
    books = Books()
    books.known = {"c": True}
    with pytest.raises(KeyError):
        subject._resolve_doubts(books)
    assert [doubt.transaction for doubt, _ in subject._doubts] == ["a", "b"]
    assert len(subject._pending_refunds) == 1


def test_connection_is_kept_or_made_and_refunds_stay_pending_without_one(subject: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, made = Books(), Books()
    monkeypatch.setattr(writer, "connect_ledger", lambda _url: made)
    assert subject._connect(kept, []) is kept
    assert subject._connect(None, []) is made
    subject._doubts = [(InDoubtError("unknown"), [])]
    with pytest.raises(KeyError):
        subject._connect(None, [operation(), operation(Kind.REFUND, 3)])
    assert (made.is_closed, kept.is_closed) == (True, False)
    assert [refund.credits for refund in subject._pending_refunds] == [3]


def test_waiting_operations_fail_when_the_writer_ends(subject: Writer) -> None:
    heard: list[Any] = []
    subject._batch.append(submission(2, heard))
    subject._queue.put(submission(1, heard))
    subject._queue.put(None)
    subject._queue.put(submission(1, heard))
    failure = UnavailableError("ended")
    subject._fail_all(failure)
    assert heard == [[failure, failure], [failure], [failure]]
    assert (subject._queue.empty(), len(subject._batch), subject._thread) == (True, 0, None)


def test_closing_a_broken_connection_is_logged_and_none_is_fine(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Books):
        def close(self) -> None:
            raise OSError("was broken before")

    writer._close(None)
    writer._close(Broken())
    assert [record.getMessage() for record in caplog.records] == ["closing the ledger's connection failed: was broken before"]


def run_until_closed(subject: Writer, monkeypatch: pytest.MonkeyPatch, *connections: LedgerDatabase | Exception) -> list[float]:
    """Run the writer's loop here over what is queued, then close it; return how long it would have waited each time."""
    left, waits = list(connections), list[float]()

    def connect(_url: object) -> LedgerDatabase:
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def fill_batch(seconds: float) -> bool:
        waits.append(seconds)
        submitted = subject._queue.get_nowait()
        if submitted is None:
            return False
        subject._batch.append(submitted)
        return True

    monkeypatch.setattr(writer, "connect_ledger", connect)
    monkeypatch.setattr(writer, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    monkeypatch.setattr(subject, "_fill_batch", fill_batch)
    subject._queue.put(None)
    subject._commit_until_closed()
    assert left == []
    return waits


def test_writer_that_owes_credits_looks_again_after_a_second(
    subject: Writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    books = Books()
    subject._queue.put(([operation(Kind.REFUND, 5), operation()], heard.append))
    subject._queue.put(submission(1, heard))
    with caplog.at_level(logging.ERROR):
        waits = run_until_closed(subject, monkeypatch, OSError("away"), books)
    assert waits == [writer.SWEEP_SECONDS, writer.RETRY_SECONDS, writer.SWEEP_SECONDS]
    assert [granted(results) for results in heard] == [[UnavailableError, UnavailableError], [1]]
    assert (books.used, books.is_closed) == ({(1, MONTH): -4}, True)
    assert [record.getMessage() for record in caplog.records] == ["credits could not be booked: away"]


@pytest.mark.parametrize(
    ("error", "has_trace"),
    [
        (sqlite3.OperationalError("database or disk is full"), False),
        (sqlite3.DatabaseError("database disk image is malformed"), False),
        (psycopg.errors.DiskFull("no space left on device"), False),
        (UnavailableError("no answer within 5 s"), False),
        (sqlite3.IntegrityError("a bug of ours"), True),
        (ValueError("a bug of ours"), True),
    ],
)
def test_writer_logs_a_trace_of_its_own_faults_only(
    error: Exception, *, has_trace: bool, subject: Writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    subject._queue.put(submission(1, []))
    run_until_closed(subject, monkeypatch, error, Books())
    [record] = [one for one in caplog.records if one.getMessage().startswith("credits could not be booked")]
    assert (record.exc_info is not None) == has_trace
    assert str(error) in (record.getMessage() + str(record.exc_info))


def test_writer_logs_owed_credits_when_it_ends(subject: Writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    subject._queue.put(([operation(Kind.REFUND, 5), operation(Kind.REFUND, 2)], lambda _results: None))
    run_until_closed(subject, monkeypatch, OSError("away"), OSError("still away"))
    assert caplog.records[-1].getMessage() == "credits are owed and lost with this process: 7, and those of 0 commits in doubt"


def test_database_that_stopped_answering_in_a_batch_is_reconnected(subject: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    silent, fresh = Books(plain_first=True), Books()
    silent.fails = OSError("silent")
    heard: list[Any] = []
    subject._queue.put(([operation(credits_=3), operation(credits_=4, idempotency_key="k")], heard.append))
    subject._queue.put(submission(1, heard))
    run_until_closed(subject, monkeypatch, silent, fresh)
    assert [granted(results) for results in heard] == [[3, UnavailableError], [1]]
    assert (silent.is_closed, fresh.is_closed) == (True, True)


@pytest.mark.parametrize(("moments", "sweeps"), [([0, 299, 299], 0), ([0, 300, 300], 1), ([0, 600, 601, 900, 900], 2)])
def test_sweep_runs_when_it_is_due_and_is_rescheduled(
    subject: Writer, monkeypatch: pytest.MonkeyPatch, moments: list[int], sweeps: int
) -> None:
    swept: list[float] = []
    now = 0.0
    left = [float(moment) for moment in moments[1:]]

    def fill_batch(_seconds: float) -> bool:
        nonlocal now
        now = left.pop(0)
        return bool(left)

    monkeypatch.setattr(writer, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(writer, "connect_ledger", lambda _url: Books())
    monkeypatch.setattr(subject, "_fill_batch", fill_batch)
    monkeypatch.setattr(subject, "_sweep", lambda: swept.append(now))
    subject._commit_until_closed()
    assert len(swept) == sweeps
