from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from account_store.errors import IdempotencyKeyReusedError
from account_store.stored_answers import StoredAnswer
from tests.account_store.conftest import new_caller
from tests.event_loops import await_result

if TYPE_CHECKING:
    from account_store import Accounts
    from tests.account_store.conftest import HandClock

ANSWER = StoredAnswer(200, "application/json; charset=utf-8", b'{"results":[1]}\x00\xff', build="20261127-0100")


def test_stored_answer_comes_back_byte_for_byte_for_a_day(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)

    async def request() -> StoredAnswer | None:
        stored = await accounts.replays.get(caller.account_id, "k", "hash")
        if stored is None:
            await accounts.ledger.charge(caller, 5, idempotency_key="k", request_hash="hash")
            await accounts.replays.put(caller.account_id, "k", ANSWER)
        return stored

    assert asyncio.run(request()) is None
    assert asyncio.run(request()) == ANSWER
    with pytest.raises(IdempotencyKeyReusedError):
        accounts.replays.get_now(caller.account_id, "k", "another")
    assert accounts.replays.get_now(new_caller(accounts).account_id, "k", "hash") is None, "keys belong to an account"
    clock.move(hours=24)
    assert asyncio.run(request()) is None
    assert accounts.usage.read_month_now(caller.account_id).used == 10


def test_first_answer_is_kept_and_an_uncharged_request_stores_none(accounts: Accounts) -> None:
    caller = new_caller(accounts)
    accounts.replays.put_now(caller.account_id, "k", ANSWER)
    assert accounts.replays.get_now(caller.account_id, "k", "hash") is None
    await_result(accounts.ledger.charge, caller, 5, idempotency_key="k", request_hash="hash")
    accounts.replays.put_now(caller.account_id, "k", ANSWER)
    accounts.replays.put_now(caller.account_id, "k", StoredAnswer(200, "text/plain", b"late"))
    assert accounts.replays.get_now(caller.account_id, "k", "hash") == ANSWER


def test_answers_past_their_day_are_swept_away(accounts: Accounts, clock: HandClock) -> None:
    caller = new_caller(accounts)
    await_result(accounts.ledger.charge, caller, 5, idempotency_key="k", request_hash="hash")
    clock.move(hours=23)
    accounts.ledger.sweep()
    assert await_result(accounts.ledger.charge, caller, 5, idempotency_key="k", request_hash="hash").is_replay
    clock.move(hours=1)
    accounts.ledger.sweep()
    with accounts.engine.connect() as connection:
        left = connection.exec_driver_sql(f"SELECT count(*) FROM replay WHERE account_id = {caller.account_id}").scalar_one()
    assert left == 0
