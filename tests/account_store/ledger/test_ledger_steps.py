"""Each step of the ledger by itself, without a database, a thread or an event loop: batches, results, refunds that are pending, doubts."""

from __future__ import annotations

import logging
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import StaticPool, create_engine, select

from account_store.database import parse_url
from account_store.errors import IdempotencyKeyReusedError, KeyRevokedError, UnavailableError
from account_store.ledger import batch_collector, ledger, ledger_database, writer
from account_store.ledger.batch_collector import BatchCollector
from account_store.ledger.ledger_database import InDoubtError, LedgerDatabase
from account_store.ledger.operations import Charge, Kind, Operation, Reservation
from account_store.ledger.reservations import expire_reservations
from account_store.ledger.writer import Writer
from account_store.schema import credit_day, credit_month, credit_reservation, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from account_store import Caller
    from account_store.ledger.ledger_database import DaySum, Month, MonthSum

NOW = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
UNIX = int(NOW.timestamp())
DAY, MONTH = "2026-11-30", "2026-11"
ALLOWED = 100


def operation(kind: Kind = Kind.CHARGE, credits_: int = 1, account_id: int = 1, **more: Any) -> Operation:  # noqa: ANN401 - fields
    return Operation(kind, account_id, more.pop("key_id", 10 * account_id), credits_, ALLOWED, **more)


def result(credits_: int) -> Charge:
    return operation(day=DAY).build_charge(credits_, credits_)


# --- operations and results ---


@pytest.mark.parametrize(("used", "remaining"), [(0, 100), (99, 1), (100, 0), (101, 0)])
def test_charge_names_what_is_left_and_when_the_month_ends(used: int, remaining: int) -> None:
    charge = operation(day="2026-12-31").build_charge(3, used)
    assert charge == Charge(1, 10, 3, used, 100, "2026-12-31", is_replay=False)
    assert (charge.remaining, charge.resets_at) == (remaining, datetime(2027, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(("granted", "is_replay", "is_held"), [(10, False, True), (9, False, False), (0, False, False), (0, True, True)])
def test_reservation_is_held_when_all_was_granted_or_paid_before(granted: int, is_replay: bool, is_held: bool) -> None:  # noqa: FBT001
    wanted = operation(Kind.RESERVE, 10, idempotency_key="k", request_hash="h", reservation_id="r", day=DAY)
    charge = wanted.build_charge(granted, 50, is_replay=is_replay)
    assert ledger._build_reservation(wanted, charge) == (Reservation("r", charge, "k", "h") if is_held else None)


@pytest.mark.parametrize(("price", "is_allowed"), [(-1, False), (0, True), (9, True), (10, True), (11, False)])
def test_settled_price_lies_between_nothing_and_the_reservation(price: int, is_allowed: bool) -> None:  # noqa: FBT001
    held = Reservation("r", operation(Kind.RESERVE, 10, day=DAY).build_charge(10, 10), "k", "h")
    if is_allowed:
        assert ledger._build_settle(held, price) == Operation(Kind.SETTLE, 1, 10, price, ALLOWED, False, "k", "h", "r", DAY)
    else:
        with pytest.raises(ValueError, match=f"{price} credits cannot be settled from a reservation of 10"):
            ledger._build_settle(held, price)


def test_prices_below_the_least_are_refused() -> None:
    caller: Caller = SimpleNamespace(account_id=1, key_id=10, plan=SimpleNamespace(credits=ALLOWED))  # type: ignore[assignment]
    assert ledger._build_charge(caller, 0, False, None, "") == operation(credits_=0)
    assert ledger._build_charge(caller, 2, True, "k", "h") == operation(credits_=2, is_partial=True, idempotency_key="k", request_hash="h")
    with pytest.raises(ValueError, match="-1 credits cannot be charged; release gives credits back"):
        ledger._build_charge(caller, -1, False, None, "")
    one = ledger._build_reserve(caller, 1, "k", "h")
    assert (one.kind, one.credits, one.is_partial, one.idempotency_key, one.request_hash) == (Kind.RESERVE, 1, False, "k", "h")
    assert one.reservation_id != ledger._build_reserve(caller, 1, "k", "h").reservation_id
    with pytest.raises(ValueError, match="0 credits cannot be reserved"):
        ledger._build_reserve(caller, 0, None, "")
    assert ledger._build_refund(result(7)) == operation(Kind.REFUND, 7, day=DAY)


# --- applying a batch ---


class Books(LedgerDatabase):
    """Keeps the ledger's tables in dictionaries; commits of locking transactions may stay unanswered."""

    def __init__(self, *, plain_first: bool = False) -> None:
        self.commits_plain_first = plain_first
        self.used: dict[Month, int] = {}
        self.days: dict[tuple[int, str, int], tuple[int, int]] = {}
        self.held: dict[str, int] = {}
        self.keys: dict[tuple[int, str], dict[str, Any]] = {}
        self.revoked: set[int] = set()
        self.asked: list[tuple[list[int], str]] = []
        self.written: list[str] = []
        self.fails: Exception | None = None
        self.plain_fails: Exception | None = None
        self.known: dict[str, bool | None] = {}
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True

    def transaction(self) -> Any:  # noqa: ANN401 - a context
        return nullcontext()

    @contextmanager
    def locking_transaction(self) -> Iterator[None]:
        yield
        if self.fails:
            raise self.fails

    def add_usage(self, months: list[MonthSum], days: list[DaySum]) -> dict[Month, int]:
        if self.plain_fails:
            raise self.plain_fails
        assert months == sorted(months)
        fitting = {}
        for account_id, month, credits_, allowed in months:
            if self.used.get((account_id, month), 0) + credits_ <= allowed:
                fitting[account_id, month] = self.used[account_id, month] = self.used.get((account_id, month), 0) + credits_
        for account_id, day, key_id, *added in days:
            if (account_id, day[:7]) in fitting:
                self._add((account_id, day, key_id), *added)
        return fitting

    def _add(self, place: tuple[int, str, int], credits_: int, requests: int) -> None:
        before = self.days.get(place, (0, 0))
        self.days[place] = before[0] + credits_, before[1] + requests

    def find_revoked(self, key_ids: list[int], moment: str) -> set[int]:
        self.asked.append((key_ids, moment))
        return self.revoked & set(key_ids)

    def has_committed(self, transaction: str) -> bool | None:
        return self.known[transaction]

    def execute(self, statement: str, values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - one return a statement
        if statement.startswith("SELECT used"):
            month = values["account_id"], values["month"]
            return [(self.used[month],)] if month in self.used else []
        self.written.append(statement.split(maxsplit=1)[0] + " " + ("credit_month" if "credit_month" in statement else ""))
        if statement.startswith("INSERT INTO credit_month"):
            self.used.setdefault((values["account_id"], values["month"]), 0)
        elif statement.startswith("UPDATE credit_month"):
            self.used |= {(row["account_id"], row["month"]): row["used"] for row in values}
        elif statement == ledger_database._ADD_DAY:
            for row in values:
                self._add((row["account_id"], row["day"], row["key_id"]), row["credits"], row["requests"])
        elif statement == ledger_database._ADD_RESERVATION:
            self.held[values["reservation_id"]] = values["granted"]
        elif statement == ledger_database._ADD_KEY:
            self.keys[values["account_id"], values["idempotency_key"]] = values
        elif statement == ledger_database._FIND_KEY:
            self.written.pop()
            found = self.keys.get((values["account_id"], values["idempotency_key"]))
            return [(found["request_hash"], found["granted"])] if found and found["unix"] > values["unix"] else []
        else:
            assert statement.startswith("DELETE FROM credit_reservation")
            return [(self.held.pop(values["id"]),)] if values["id"] in self.held else []
        return []


def granted(results: Sequence[Charge | Exception]) -> list[int | type]:
    return [one.granted if isinstance(one, Charge) else type(one) for one in results]


def test_plain_operations_of_a_month_are_added_together_and_counted_by_day_and_key() -> None:
    books = Books()
    batch = [operation(credits_=30), operation(credits_=5, key_id=11), operation(Kind.REFUND, 4, day="2026-11-02"), operation(credits_=0)]
    assert [(one.granted, one.used) for one in books.apply(batch, NOW) if isinstance(one, Charge)] == [(30, 30), (5, 35), (0, 31), (0, 31)]
    assert books.used == {(1, MONTH): 31}
    assert books.days == {(1, DAY, 10): (30, 1), (1, DAY, 11): (5, 1), (1, "2026-11-02", 10): (-4, -1)}
    assert books.written == []


def test_operations_of_several_months_and_accounts_fill_each_their_own() -> None:
    books = Books()
    books.used[2, MONTH] = 95
    batch = [
        operation(credits_=6, account_id=2),
        operation(credits_=7),
        operation(Kind.REFUND, 3, day="2026-10-31"),
        operation(credits_=5, account_id=2),
    ]
    assert granted(books.apply(batch, NOW)) == [0, 7, 0, 5]
    assert books.used == {(1, MONTH): 7, (1, "2026-10"): -3, (2, MONTH): 100}
    assert books.days[2, DAY, 20] == (5, 1)


def test_operation_that_changes_nothing_writes_nothing() -> None:
    books = Books()
    books.used[1, MONTH] = 100
    assert granted(books.apply([operation(credits_=1), operation(Kind.RESERVE, 1, reservation_id="r")], NOW)) == [0, 0]
    assert (books.written, books.days, books.held) == ([], {}, {})
    assert granted(books.apply([operation(credits_=0, is_partial=True, idempotency_key="k")], NOW)) == [0]
    assert books.days == {}


@pytest.mark.parametrize(
    ("left", "is_partial", "taken"), [(0, True, 0), (4, True, 4), (5, True, 5), (6, True, 5), (4, False, 0), (5, False, 5)]
)
def test_charge_under_a_key_takes_all_none_or_with_partial_the_rest(left: int, is_partial: bool, taken: int) -> None:  # noqa: FBT001
    books = Books()
    books.used[1, MONTH] = ALLOWED - left
    charge = operation(credits_=5, is_partial=is_partial, idempotency_key="k", request_hash="h")
    assert books.apply([charge], NOW) == [Charge(1, 10, taken, ALLOWED - left + taken, ALLOWED, DAY)]
    assert books.days.get((1, DAY, 10), (0, 0)) == (taken, int(taken > 0))
    is_kept = taken == 5 or is_partial
    assert [key["granted"] for key in books.keys.values()] == ([taken] if is_kept else [])
    if is_kept:
        assert books.keys[1, "k"]["unix"] == UNIX + 24 * 60 * 60


def test_account_over_its_allowance_has_nothing_left_and_no_less() -> None:
    books = Books()
    books.used[1, MONTH] = ALLOWED + 50
    assert granted(books.apply([operation(credits_=5, is_partial=True, idempotency_key="k"), operation(credits_=1)], NOW)) == [0, 0]
    assert books.used == {(1, MONTH): ALLOWED + 50}
    assert books.apply([operation(Kind.REFUND, 10)], NOW) == [Charge(1, 10, 0, 140, ALLOWED, DAY)]
    assert books.days == {(1, DAY, 10): (-10, -1)}


@pytest.mark.parametrize(("seconds", "is_replay"), [(-1, True), (0, False), (1, False)])
def test_idempotency_key_is_remembered_for_a_day_to_the_second(seconds: int, is_replay: bool) -> None:  # noqa: FBT001
    books = Books()
    books.keys[1, "k"] = {"request_hash": "h", "granted": 9, "unix": UNIX - seconds}
    (charge,) = books.apply([operation(credits_=5, idempotency_key="k", request_hash="h")], NOW)
    assert charge == Charge(1, 10, 9 if is_replay else 5, 0 if is_replay else 5, ALLOWED, DAY, is_replay)
    (other,) = books.apply([operation(credits_=5, idempotency_key="k", request_hash="other")], NOW)
    assert isinstance(other, IdempotencyKeyReusedError)
    assert books.days == ({} if is_replay else {(1, DAY, 10): (5, 1)})


def test_reservation_is_settled_for_less_and_a_free_one_gives_its_request_back() -> None:
    books = Books()
    books.apply([operation(Kind.RESERVE, 40, reservation_id="a"), operation(Kind.RESERVE, 20, reservation_id="b")], NOW)
    assert (books.held, books.days) == ({"a": 40, "b": 20}, {(1, DAY, 10): (60, 2)})
    settled = books.apply([operation(Kind.SETTLE, 13, reservation_id="a"), operation(Kind.SETTLE, 0, reservation_id="b")], NOW)
    assert [(one.granted, one.used) for one in settled if isinstance(one, Charge)] == [(13, 33), (0, 13)]
    assert (books.held, books.used, books.days) == ({}, {(1, MONTH): 13}, {(1, DAY, 10): (13, 1)})
    assert granted(books.apply([operation(Kind.SETTLE, 13, reservation_id="a")], NOW)) == [13], "expired: its work was done all the same"
    assert books.used == {(1, MONTH): 26}


def test_first_settled_of_two_reservations_under_one_key_is_paid() -> None:
    books = Books()
    named: dict[str, Any] = {"idempotency_key": "k", "request_hash": "h"}
    books.apply([operation(Kind.RESERVE, 5, reservation_id=name, **named) for name in "abc"], NOW)
    assert books.keys == {}
    first, second = books.apply([operation(Kind.SETTLE, 5, reservation_id=name, **named) for name in "ab"], NOW)
    assert (first, second) == (Charge(1, 10, 5, 15, ALLOWED, DAY), Charge(1, 10, 5, 10, ALLOWED, DAY, is_replay=True))
    assert books.apply([operation(Kind.SETTLE, 0, reservation_id="c", **named)], NOW) == [Charge(1, 10, 0, 5, ALLOWED, DAY)]
    assert (books.days, books.keys[1, "k"]["granted"]) == ({(1, DAY, 10): (5, 1)}, 5)
    assert books.keys[1, "k"]["unix"] == UNIX + 24 * 60 * 60


def test_revoked_key_takes_nothing_and_the_others_keep_their_places() -> None:
    books = Books()
    books.revoked = {20}
    batch = [
        operation(credits_=1), operation(credits_=2, account_id=2), operation(Kind.RESERVE, 3, 2, reservation_id="r"),
        operation(Kind.REFUND, 4, 2), operation(Kind.SETTLE, 5, 2, reservation_id="gone"), operation(credits_=6, account_id=3),
    ]  # fmt: skip
    assert granted(books.apply(batch, NOW)) == [1, KeyRevokedError, KeyRevokedError, 0, 5, 6]
    assert books.asked == [([10, 20, 30], "2026-11-30 23:59:59")]
    books.apply([operation(Kind.REFUND, 1), operation(Kind.SETTLE, 0, reservation_id="r")], NOW)
    assert len(books.asked) == 1, "what takes nothing asks for no key"


@pytest.mark.parametrize("plain_first", [True, False])
def test_operations_that_fail_under_locks_leave_committed_charges_alone(plain_first: bool) -> None:  # noqa: FBT001
    books = Books(plain_first=plain_first)
    books.fails = OSError("away")
    plain, careful = operation(credits_=3), operation(credits_=4, idempotency_key="k")
    if plain_first:
        assert granted(books.apply([careful, plain, careful], NOW)) == [OSError, 3, OSError]
    else:
        with pytest.raises(OSError, match="away"):
            books.apply([careful, plain], NOW)
    with pytest.raises(OSError, match="away"):
        books.apply([careful], NOW)


def test_commit_in_doubt_names_what_to_give_back() -> None:
    books = Books(plain_first=True)
    books.plain_fails = InDoubtError("7")
    with pytest.raises(InDoubtError) as plain:
        books.apply([operation(credits_=3), operation(Kind.REFUND, 2), operation(credits_=4, idempotency_key="k")], NOW)
    assert (plain.value.transaction, str(plain.value)) == ("7", "no answer to the commit of transaction 7")
    assert plain.value.refunds == [operation(Kind.REFUND, 3, day=DAY)]
    books.plain_fails, books.fails = None, InDoubtError("8")
    books.used[1, MONTH] = ALLOWED - 9
    books.keys[1, "paid"] = {"request_hash": "", "granted": 9, "unix": UNIX + 1}
    careful = [
        operation(credits_=5, is_partial=True, idempotency_key="k"),
        operation(Kind.SETTLE, 2, reservation_id="gone"),
        operation(Kind.RESERVE, 1, reservation_id="r"),
        operation(Kind.SETTLE, 0, reservation_id="gone"),
        operation(Kind.SETTLE, 1, reservation_id="gone", idempotency_key="k2"),
    ]
    with pytest.raises(InDoubtError) as locked:
        books.apply(careful, NOW)
    assert locked.value.refunds == [operation(Kind.REFUND, 2, day=DAY)], "the keyed are found paid by a repeat, a reservation expires"


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


def test_pending_refunds_come_first_and_are_answered_to_nobody(subject: Writer, caplog: pytest.LogCaptureFixture) -> None:
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
    assert [record.getMessage() for record in caplog.records] == ["credits could not be booked"]


def test_writer_logs_owed_credits_when_it_ends(subject: Writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    subject._queue.put(([operation(Kind.REFUND, 5), operation(Kind.REFUND, 2)], lambda _results: None))
    run_until_closed(subject, monkeypatch, OSError("away"), OSError("still away"))
    assert caplog.records[-1].getMessage() == "credits are owed and lost with this process: 7, and those of 0 commits in doubt"


def test_database_that_fell_silent_in_a_batch_is_connected_anew(subject: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
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


# --- reservations that expire ---


held_rows = st.lists(
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.sampled_from(["2026-10-31", DAY]), st.integers(1, 9), st.integers(899, 901)),
    max_size=6,
)


@settings(max_examples=30, deadline=None)
@given(held_rows)
def test_expired_reservations_go_back_to_their_month_day_and_key(rows: list[tuple[int, int, str, int, int]]) -> None:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    for table in (credit_month, credit_day, credit_reservation, replay):
        table.create(engine, checkfirst=False)
    days = {(account, day, key): (100, 10) for account in (1, 2) for day in ("2026-10-31", DAY) for key in (1, 2)}
    months = {(account, day[:7]): 500 for account, day, _ in days}
    with engine.begin() as connection:
        connection.execute(
            credit_month.insert(), [{"account_id": a, "month": m, "used": used, "allowed": 900} for (a, m), used in months.items()]
        )
        names = ("account_id", "day", "key_id", "credits", "requests")
        connection.execute(credit_day.insert(), [dict(zip(names, (*place, *counts), strict=True)) for place, counts in days.items()])
        for number, (account, key, day, credits_, age) in enumerate(rows):
            row = {"reservation_id": str(number), "account_id": account, "key_id": key, "day": day, "credits": credits_}
            connection.execute(credit_reservation.insert(), row | {"created_unix": UNIX - age})
        for number in (-1, 0, 1):
            key_row = {"account_id": 1, "idempotency_key": str(number), "request_hash": "", "granted": 1, "day": DAY}
            connection.execute(replay.insert(), key_row | {"expires_unix": UNIX + number})
    expired = [row for row in rows if row[4] >= 900]
    assert expire_reservations(engine, NOW) == len(expired)
    for account, key, day, credits_, _ in expired:
        months[account, day[:7]] -= credits_
        counts = days[account, day, key]
        days[account, day, key] = counts[0] - credits_, counts[1] - 1
    with engine.connect() as connection:
        columns = (credit_day.c.account_id, credit_day.c.day, credit_day.c.key_id, credit_day.c.credits, credit_day.c.requests)
        assert {tuple(row[:3]): tuple(row[3:]) for row in connection.execute(select(*columns))} == days
        used = connection.execute(select(credit_month.c.account_id, credit_month.c.month, credit_month.c.used))
        assert {(row[0], row[1]): row[2] for row in used} == months
        left = connection.execute(select(credit_reservation.c.reservation_id)).scalars().all()
        assert sorted(left) == [str(number) for number, row in enumerate(rows) if row[4] < 900]
        assert connection.execute(select(replay.c.idempotency_key)).scalars().all() == ["1"]


# --- the collector of an event loop ---


class Loop:
    """Runs callbacks one round at a time."""

    def __init__(self) -> None:
        self.ready: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.is_closed = False

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:  # noqa: ANN401
        if self.is_closed:
            raise RuntimeError("Event loop is closed")
        self.ready.append((callback, arguments))

    call_soon_threadsafe = call_soon

    def run_round(self) -> None:
        ready, self.ready = self.ready, []
        for callback, arguments in ready:
            callback(*arguments)


class Submissions:
    """Stands for the writer."""

    def __init__(self) -> None:
        self.batches: list[tuple[list[Operation], Callable[[Any], None]]] = []
        self.failure: UnavailableError | None = None

    def submit(self, operations: list[Operation], on_results: Callable[[Any], None]) -> None:
        if self.failure:
            raise self.failure
        self.batches.append((operations, on_results))


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [1000.0]
    monkeypatch.setattr(batch_collector, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    return moment


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def submissions() -> Submissions:
    return Submissions()


@pytest.fixture
def collector(loop: Loop, submissions: Submissions, now: list[float]) -> BatchCollector:
    assert now
    return BatchCollector(loop, submissions)  # type: ignore[arg-type]


def test_batch_is_submitted_after_three_quiet_rounds(collector: BatchCollector, loop: Loop, submissions: Submissions) -> None:
    collector.add(operation(), lambda _result: None)
    loop.run_round()
    collector.add(operation(), lambda _result: None)
    for _ in range(3):
        loop.run_round()
        assert submissions.batches == []
    loop.run_round()
    assert [len(operations) for operations, _ in submissions.batches] == [2]
    assert loop.ready == [], "it does not look while a batch is being committed"


@pytest.mark.parametrize(("seconds", "is_submitted"), [(0.0039, False), (0.004, True), (0.005, True)])
def test_busy_loop_submits_after_four_milliseconds(
    collector: BatchCollector,
    loop: Loop,
    submissions: Submissions,
    now: list[float],
    seconds: float,
    is_submitted: bool,  # noqa: FBT001
) -> None:
    now[0] = 0.0
    collector.add(operation(), lambda _result: None)
    now[0] = seconds
    loop.run_round()
    assert bool(submissions.batches) is is_submitted


@pytest.mark.parametrize(("count", "is_submitted"), [(999, False), (1000, True)])
def test_full_batch_is_submitted_at_once(
    collector: BatchCollector,
    loop: Loop,
    submissions: Submissions,
    count: int,
    is_submitted: bool,  # noqa: FBT001
) -> None:
    for _ in range(count):
        collector.add(operation(), lambda _result: None)
    loop.run_round()
    assert bool(submissions.batches) is is_submitted


def deliver(collector: BatchCollector, loop: Loop, submissions: Submissions, results: list[Any]) -> None:
    for _ in range(5):
        loop.run_round()
    submissions.batches.pop()[1](results)
    assert collector._is_busy
    loop.run_round()


def test_callers_get_their_results_and_later_operations_form_the_next_batch(
    collector: BatchCollector, loop: Loop, submissions: Submissions, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    def fail(_result: object) -> None:
        raise RuntimeError("gone")

    for on_result in (fail, heard.append):
        collector.add(operation(), on_result)
    for _ in range(5):
        loop.run_round()
    collector.add(operation(credits_=9), heard.append)
    assert loop.ready == []
    deliver(collector, loop, submissions, [result(1), result(2)])
    assert heard == [result(2)]
    assert [record.getMessage() for record in caplog.records] == ["the result of a charge could not be delivered"]
    deliver(collector, loop, submissions, [result(9)])
    assert heard == [result(2), result(9)]
    assert (loop.ready, collector._is_busy) == ([], False)


def test_closed_store_and_closed_loop_stop_nobody(
    collector: BatchCollector, loop: Loop, submissions: Submissions, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    submissions.failure = UnavailableError("closed")
    for _ in range(2):
        collector.add(operation(), heard.append)
    for _ in range(5):
        loop.run_round()
    assert heard == [submissions.failure] * 2
    submissions.failure = None
    collector.add(operation(), heard.append)
    for _ in range(5):
        loop.run_round()
    loop.is_closed = True
    submissions.batches.pop()[1]([result(1)])
    assert [record.getMessage() for record in caplog.records] == ["1 charges were booked for an event loop that is gone"]
