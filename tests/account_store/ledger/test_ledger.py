from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select

from account_store import Accounts
from account_store.errors import IdempotencyKeyReusedError, KeyRevokedError, UnavailableError
from account_store.ledger.ledger_database import IDEMPOTENCY_SECONDS
from account_store.ledger.reservations import RESERVATION_SECONDS, expire_reservations
from account_store.schema import replay
from tests.account_store.conftest import new_caller
from tests.event_loops import await_result

if TYPE_CHECKING:
    from pathlib import Path

    from account_store.ledger.operations import Charge
    from tests.account_store.conftest import HandClock


def used(accounts: Accounts, account_id: int, month: str | None = None) -> int:
    statement = accounts.usage.read_month_now(account_id, month)
    assert sum(day.credits for day in statement.days) == statement.used, "days and month must agree"
    return statement.used


def test_charge_returns_used_and_remaining_credits_and_the_reset(accounts: Accounts) -> None:
    caller = new_caller(accounts)
    first, second = await_result(accounts.ledger.charge, caller, 1), await_result(accounts.ledger.charge, caller, 10)
    assert (first.granted, first.used, first.remaining) == (1, 1, 999)
    assert (second.granted, second.used, second.remaining) == (10, 11, 989)
    assert second.resets_at == datetime(2026, 12, 1, tzinfo=UTC)
    assert used(accounts, caller.account_id) == 11


def test_charge_beyond_the_plan_takes_nothing_and_a_partial_one_takes_the_rest(accounts: Accounts) -> None:
    caller = new_caller(accounts)
    await_result(accounts.ledger.charge, caller, 995)
    refused = await_result(accounts.ledger.charge, caller, 6)
    assert (refused.granted, refused.used, refused.remaining) == (0, 995, 5)
    partly = await_result(accounts.ledger.charge, caller, 100, partial=True)
    assert (partly.granted, partly.used, partly.remaining) == (5, 1000, 0)
    assert await_result(accounts.ledger.charge, caller, 100, partial=True).granted == 0
    assert await_result(accounts.ledger.charge, caller, 0).used == 1000, "what costs nothing is never refused"
    assert used(accounts, caller.account_id) == 1000
    assert [day.requests for day in accounts.usage.read_month_now(caller.account_id).days] == [2], "those that took credits"


def test_charge_of_zero_credits_counts_as_no_request(accounts: Accounts) -> None:
    caller = new_caller(accounts)
    assert (await_result(accounts.ledger.charge, caller, 0).remaining, accounts.usage.read_month_now(caller.account_id).days) == (1000, [])


def test_first_charge_beyond_the_plan_is_refused(accounts: Accounts) -> None:
    caller = new_caller(accounts)
    assert await_result(accounts.ledger.charge, caller, 1001).granted == 0
    assert used(accounts, caller.account_id) == 0
    assert await_result(accounts.ledger.charge, caller, 1000).granted == 1000


def test_key_revoked_elsewhere_is_not_charged_although_it_is_cached(accounts: Accounts) -> None:
    caller, other = new_caller(accounts), new_caller(accounts)
    kept = await_result(accounts.ledger.charge, caller, 1)
    begun = await_result(accounts.ledger.reserve, caller, 10)
    assert begun is not None
    accounts.keys.revoke(caller.key_id)
    for order in (lambda: await_result(accounts.ledger.charge, caller, 1), lambda: await_result(accounts.ledger.reserve, caller, 10)):
        with pytest.raises(KeyRevokedError):
            order()
    assert await_result(accounts.ledger.charge, other, 1).granted == 1
    assert await_result(accounts.ledger.settle, begun, 4).used == 5, "what was begun before is settled"
    assert await_result(accounts.ledger.release, kept).used == 4


def test_released_charge_can_be_taken_again(accounts: Accounts) -> None:
    caller = new_caller(accounts)
    charge = await_result(accounts.ledger.charge, caller, 1000)
    assert await_result(accounts.ledger.release, charge).remaining == 1000
    statement = accounts.usage.read_month_now(caller.account_id)
    assert (statement.used, [(day.credits, day.requests) for day in statement.days]) == (0, [(0, 0)])
    assert await_result(accounts.ledger.charge, caller, 1000).granted == 1000


def test_credits_reset_with_the_utc_month_and_a_release_goes_to_its_own_month(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)
    clock.now = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
    old = await_result(accounts.ledger.charge, caller, 1000)
    assert await_result(accounts.ledger.charge, caller, 1).granted == 0
    assert old.resets_at == datetime(2027, 1, 1, tzinfo=UTC)
    clock.move(seconds=1)
    assert await_result(accounts.ledger.charge, caller, 1).used == 1
    await_result(accounts.ledger.release, old)
    assert (used(accounts, caller.account_id, "2026-12"), used(accounts, caller.account_id, "2027-01")) == (0, 1)
    assert accounts.usage.read_month_now(caller.account_id, "2026-12").resets_at == datetime(2027, 1, 1, tzinfo=UTC)


def test_plan_changed_within_the_month_keeps_the_used_credits(accounts: Accounts) -> None:
    key = accounts.keys.create(accounts.create("moves").account_id).key

    def caller():  # type: ignore[no-untyped-def]  # noqa: ANN202
        return accounts.keys.find_caller(key)

    await_result(accounts.ledger.charge, caller(), 1000)
    accounts.change_plan(caller().account_id, "starter")
    after = await_result(accounts.ledger.charge, caller(), 500)
    assert (after.used, after.remaining) == (1500, 48_500)
    accounts.change_plan(caller().account_id, "free")
    refused = await_result(accounts.ledger.charge, caller(), 1)
    assert (refused.granted, refused.used, refused.remaining) == (0, 1500, 0)
    assert await_result(accounts.ledger.release, after).used == 1000, "credits go back although more is used than the plan has"


def test_request_under_an_idempotency_key_is_charged_once_in_a_day(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)
    first = await_result(accounts.ledger.charge, caller, 7, idempotency_key="a", request_hash="h")
    again = await_result(accounts.ledger.charge, caller, 7, idempotency_key="a", request_hash="h")
    assert (first.is_replay, again.is_replay, again.granted, again.used) == (False, True, 7, 7)
    with pytest.raises(IdempotencyKeyReusedError):
        await_result(accounts.ledger.charge, caller, 7, idempotency_key="a", request_hash="another")
    assert await_result(accounts.ledger.charge, new_caller(accounts), 7, idempotency_key="a", request_hash="h").used == 7, (
        "keys belong to an account"
    )
    clock.move(hours=24, seconds=1)
    assert not await_result(accounts.ledger.charge, caller, 7, idempotency_key="a", request_hash="h").is_replay
    assert used(accounts, caller.account_id) == 14


def test_refused_charge_leaves_its_idempotency_key_free_and_a_partial_one_keeps_its_grant(accounts: Accounts) -> None:
    caller = new_caller(accounts)
    await_result(accounts.ledger.charge, caller, 998)
    assert await_result(accounts.ledger.charge, caller, 3, idempotency_key="whole").granted == 0
    assert await_result(accounts.ledger.charge, caller, 3, partial=True, idempotency_key="partly").granted == 2
    accounts.change_plan(caller.account_id, "starter")
    grown = accounts.keys.find_caller(accounts.keys.create(caller.account_id).key)
    assert grown is not None
    assert await_result(accounts.ledger.charge, grown, 3, idempotency_key="whole").granted == 3
    again = await_result(accounts.ledger.charge, grown, 3, partial=True, idempotency_key="partly")
    assert (again.granted, again.is_replay) == (2, True)


def test_reservation_is_settled_for_less_or_given_back(accounts: Accounts) -> None:
    caller = new_caller(accounts)
    held = await_result(accounts.ledger.reserve, caller, 110)
    assert held is not None
    assert await_result(accounts.ledger.charge, caller, 1).used == 111
    assert await_result(accounts.ledger.settle, held, 13).used == 14
    other = await_result(accounts.ledger.reserve, caller, 986)
    assert other is not None
    assert await_result(accounts.ledger.reserve, caller, 1) is None
    assert await_result(accounts.ledger.settle, other, 0).used == 14
    assert [(day.credits, day.requests) for day in accounts.usage.read_month_now(caller.account_id).days] == [(14, 2)]
    with pytest.raises(ValueError, match="cannot be settled"):
        await_result(accounts.ledger.settle, held, 111)


def test_expired_reservation_is_given_back_and_charged_when_settled_late(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)
    dead, late = await_result(accounts.ledger.reserve, caller, 10), await_result(accounts.ledger.reserve, caller, 20)
    assert dead is not None
    assert late is not None
    clock.move(seconds=RESERVATION_SECONDS - 1)
    assert expire_reservations(accounts.engine, clock()) == 0
    clock.move(seconds=1)
    assert expire_reservations(accounts.engine, clock()) == 2
    assert used(accounts, caller.account_id) == 0
    assert [day.requests for day in accounts.usage.read_month_now(caller.account_id).days] == [0]
    assert await_result(accounts.ledger.settle, late, 20).used == 20
    assert used(accounts, caller.account_id) == 20


def test_sweep_forgets_idempotency_keys_a_day_after_and_no_sooner(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)

    def remembered() -> int:
        with accounts.engine.connect() as connection:
            return connection.execute(select(func.count()).where(replay.c.account_id == caller.account_id)).scalar_one()

    await_result(accounts.ledger.charge, caller, 7, idempotency_key="a", request_hash="h")
    clock.move(seconds=IDEMPOTENCY_SECONDS - 1)
    await_result(accounts.ledger.charge, caller, 7, idempotency_key="b", request_hash="h")
    accounts.ledger.sweep()
    assert remembered() == 2
    clock.move(seconds=1)
    accounts.ledger.sweep()
    assert remembered() == 1
    clock.move(days=2)
    accounts.ledger.sweep()
    assert remembered() == 0


def test_concurrent_requests_under_one_idempotency_key_are_charged_once(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)
    ledger, named = accounts.ledger, {"idempotency_key": "a", "request_hash": "h"}
    failed, first, second = (await_result(ledger.reserve, caller, 11, **named) for _ in range(3))
    assert failed is not None
    assert first is not None
    assert second is not None
    assert await_result(ledger.settle, failed, 0).used == 22
    paid, repeated = await_result(ledger.settle, first, 11), await_result(ledger.settle, second, 11)
    assert (paid.granted, paid.is_replay, repeated.is_replay, repeated.used) == (11, False, True, 11)
    later = await_result(ledger.reserve, caller, 11, **named)
    assert later is not None
    settled, released = (await_result(ledger.settle, later, price) for price in (11, 0))
    assert (later.charge.is_replay, settled.used, released.used) == (True, 11, 11)
    await_result(ledger.charge, caller, 989)
    again = await_result(ledger.reserve, caller, 11, **named)
    assert again is not None, "it was paid for before the month's credits were used up"
    with pytest.raises(IdempotencyKeyReusedError):
        await_result(ledger.reserve, caller, 11, idempotency_key="a", request_hash="another")
    assert [(day.credits, day.requests) for day in accounts.usage.read_month_now(caller.account_id).days] == [(1000, 2)]
    clock.move(hours=24, seconds=1)
    assert await_result(ledger.reserve, caller, 11, **named) is None
    assert used(accounts, caller.account_id) == 1000


def test_charges_of_several_event_loops_share_batches_and_get_their_own_results(accounts: Accounts) -> None:
    caller = new_caller(accounts)
    taken: list[int] = []

    def thread() -> None:
        taken.extend(await_result(accounts.ledger.charge, caller, 1).used for _ in range(20))

    async def loop() -> None:
        answers = await asyncio.gather(*[accounts.ledger.charge(caller, 1) for _ in range(500)])
        taken.extend(answer.used for answer in answers)

    workers = [threading.Thread(target=thread), threading.Thread(target=lambda: asyncio.run(loop())), threading.Thread(target=thread)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == list(range(1, 541)), "every charge saw another total: none was lost or counted twice"


def test_cancelled_charge_leaves_the_others_of_its_batch_alone(accounts: Accounts) -> None:
    caller = new_caller(accounts)

    async def some_leave() -> list[int]:
        tasks = [asyncio.ensure_future(accounts.ledger.charge(caller, 1)) for _ in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.result().granted for task in tasks[1::2]]

    assert asyncio.run(some_leave()) == [1] * 25


@pytest.mark.parametrize("price", [0, 1, 7, 1000])
def test_charge_in_the_loop_is_granted_whole_or_not_at_all(accounts: Accounts, price: int) -> None:
    caller = new_caller(accounts)

    async def charge(price: int) -> Charge:
        return await asyncio.wait_for(accounts.ledger.charge(caller, price), 60)

    granted = asyncio.run(charge(price))
    assert (granted.granted, granted.used) == (price, price)
    refused = asyncio.run(charge(1001))
    assert (refused.granted, refused.used) == (0, price)
    accounts.keys.revoke(caller.key_id)
    with pytest.raises(KeyRevokedError):
        asyncio.run(charge(1))


def test_charge_waits_for_another_writer_of_the_file(tmp_path: Path) -> None:
    opened = Accounts.open(f"sqlite:///{tmp_path}/accounts.db")
    caller = new_caller(opened)
    await_result(opened.ledger.charge, caller, 1)
    charged: list[int] = []
    waiting = threading.Thread(target=lambda: charged.append(await_result(opened.ledger.charge, caller, 1).used))
    with closing(sqlite3.connect(tmp_path / "accounts.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting.start()
        waiting.join(0.3)
        assert charged == []
        other.execute("ROLLBACK")
    waiting.join()
    assert charged == [2]
    opened.close()


def test_closed_store_commits_waiting_charges_and_refuses_new_ones(url: str, clock: HandClock) -> None:
    opened = Accounts.open(url, clock=clock)
    caller = new_caller(opened)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(await_result(opened.ledger.charge, caller, 1))) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened.close()
    assert len(answers) == 10
    with pytest.raises(UnavailableError):
        await_result(opened.ledger.charge, caller, 1)


def test_writer_fails_waiting_charges_while_the_database_fails_and_recovers(accounts: Accounts) -> None:
    caller = new_caller(accounts)
    await_result(accounts.ledger.charge, caller, 1)
    with accounts.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE credit_month RENAME TO credit_month_gone")
    with pytest.raises(UnavailableError, match="cannot be booked"):
        await_result(accounts.ledger.charge, caller, 1)
    with accounts.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE credit_month_gone RENAME TO credit_month")
    assert await_result(accounts.ledger.charge, caller, 1).used == 2
