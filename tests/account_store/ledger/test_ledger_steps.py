"""Operations, their results, and how a batch is applied, without a database, a thread or an event loop."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from account_store.errors import IdempotencyKeyReusedError, KeyRevokedError
from account_store.ledger import ledger
from account_store.ledger.ledger_database import InDoubtError
from account_store.ledger.operations import Charge, Kind, Operation, Reservation
from tests.account_store.ledger.ledger_books import ALLOWED, DAY, MONTH, NOW, UNIX, Books, granted, operation, result

if TYPE_CHECKING:
    from account_store import Caller


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
def test_settled_price_is_between_zero_and_the_reservation(price: int, is_allowed: bool) -> None:  # noqa: FBT001
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
