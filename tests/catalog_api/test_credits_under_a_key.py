"""Tests of the credits of a failed request: they are refunded, unless its Idempotency-Key covers the repeat."""

from __future__ import annotations

import asyncio
import hashlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from account_store import Accounts
from catalog_api.answers import Answer
from catalog_api.metering import PrepaidQuestion
from catalog_api.problems import ApiError
from tests.migrated_databases import make_migrated_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=["sqlite", "postgresql"])
def accounts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Accounts]:
    if request.param == "sqlite":
        url = make_migrated_file(tmp_path)
    else:
        make: Callable[[str], str] = request.getfixturevalue("new_migrated_database")
        url = make(f"under_a_key_{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:12]}")
    opened = Accounts.open(url)
    yield opened
    opened.close()


def asked(accounts: Accounts, question: PrepaidQuestion, caller: Any, key: str | None) -> Answer:  # noqa: ANN401 - a Caller
    headers = [] if key is None else [(b"idempotency-key", key.encode())]
    scope: Any = {"type": "http", "method": "POST", "path": "/v1/tracks/resolve", "headers": headers, "state": {}}
    service: Any = SimpleNamespace(accounts=accounts)
    return asyncio.run(question.answer(service, caller, scope))


def failing_first(price: int, failures: int = 1) -> PrepaidQuestion:
    left = [failures]

    async def work(_service: object, _caller: object, _charge: object) -> Answer:
        if left[0]:
            left[0] -= 1
            raise ApiError("catalog_unavailable", "Not yet.")
        return Answer(b"{}")

    return PrepaidQuestion(price, work, body={"items": [1]})


@pytest.mark.parametrize("failures", [1, 3])
def test_failed_request_under_a_key_keeps_its_credits_for_the_repeat_which_is_charged_once(accounts: Accounts, failures: int) -> None:
    account = accounts.create("radio")
    caller = accounts.keys.find_caller(accounts.keys.create(account.account_id).key)
    question = failing_first(7, failures)
    for _ in range(failures):
        with pytest.raises(ApiError):
            asked(accounts, question, caller, "one")
        assert accounts.usage.read_month_now(account.account_id).used == 7, "they wait for the repeat"
    answer = asked(accounts, question, caller, "one")
    assert (answer.headers["x-credits-used"], accounts.usage.read_month_now(account.account_id).used) == ("0", 7)
    assert asked(accounts, question, caller, "one").headers["idempotency-replayed"] == "true"
    assert accounts.usage.read_month_now(account.account_id).used == 7, "once, however often it is sent"


def test_failed_request_without_a_key_gives_its_credits_back(accounts: Accounts) -> None:
    account = accounts.create("radio")
    caller = accounts.keys.find_caller(accounts.keys.create(account.account_id).key)
    question = failing_first(7)
    with pytest.raises(ApiError):
        asked(accounts, question, caller, None)
    assert accounts.usage.read_month_now(account.account_id).used == 0
    assert asked(accounts, question, caller, None).headers["x-credits-used"] == "7"
    assert accounts.usage.read_month_now(account.account_id).used == 7
