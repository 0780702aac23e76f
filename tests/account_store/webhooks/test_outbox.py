from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from account_store import Accounts
from account_store.webhooks.event_types import CATALOG_PUBLISHED, STATUS_CHANGED, SUGGESTION_DECIDED, TRACK_STARTED
from account_store.webhooks.outbox import HELD, PENDING, emit
from tests.account_store.webhooks.conftest import OUTBOUND, hooked, log_of, new_account

if TYPE_CHECKING:
    from tests.account_store.conftest import HandClock

NOWHERE = "http://127.0.0.1:9/"


def test_event_is_committed_together_with_its_cause(accounts: Accounts, clock: HandClock) -> None:
    made = hooked(accounts, NOWHERE)

    def announced_and_rolled_back() -> None:
        with accounts.engine.begin() as connection:
            assert emit(connection, made.endpoint.account_id, TRACK_STARTED, {"a": 1}, occurred_at=clock.now)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        announced_and_rolled_back()
    assert log_of(accounts, made.endpoint) == []
    with accounts.engine.begin() as connection:
        event_id = emit(connection, made.endpoint.account_id, TRACK_STARTED, {"title": "Ünï"}, occurred_at=clock.now)
    [delivery] = log_of(accounts, made.endpoint)
    assert (delivery.event_id, delivery.event_type, delivery.occurred_at) == (event_id, TRACK_STARTED, clock.now)
    detail = accounts.deliveries.get(made.endpoint.account_id, made.endpoint.endpoint_id, delivery.delivery_id)
    assert detail.body == '{"type":"stream.track_started","timestamp":"2026-11-21T12:00:00Z","data":{"title":"Ünï"}}'


def test_endpoints_get_their_event_types_and_one_event_has_one_id(accounts: Accounts, clock: HandClock) -> None:
    all_ = hooked(accounts, NOWHERE).endpoint
    some = accounts.webhooks.create(all_.account_id, NOWHERE, [STATUS_CHANGED, TRACK_STARTED]).endpoint
    none = accounts.webhooks.create(all_.account_id, NOWHERE, [SUGGESTION_DECIDED]).endpoint
    asleep = accounts.webhooks.create(all_.account_id, NOWHERE).endpoint
    accounts.webhooks.change(all_.account_id, asleep.endpoint_id, is_enabled=False)
    with accounts.engine.begin() as connection:
        event_id = emit(connection, all_.account_id, TRACK_STARTED, {}, occurred_at=clock.now)
        assert emit(connection, all_.account_id, SUGGESTION_DECIDED, {}, occurred_at=clock.now)
    assert [one.event_id for one in log_of(accounts, some)] == [event_id]
    assert [one.event_type for one in log_of(accounts, all_)] == [TRACK_STARTED, SUGGESTION_DECIDED]
    assert [one.event_type for one in log_of(accounts, none)] == [SUGGESTION_DECIDED]
    assert [one.status for one in log_of(accounts, asleep)] == [HELD, HELD]


def test_event_without_a_subscriber_is_not_written(accounts: Accounts, clock: HandClock) -> None:
    account_id = new_account(accounts)
    with accounts.engine.begin() as connection:
        assert emit(connection, account_id, TRACK_STARTED, {}, occurred_at=clock.now) is None
        with pytest.raises(ValueError, match="no event 'track_started'"):
            emit(connection, account_id, "track_started", {}, occurred_at=clock.now)


def test_every_change_of_a_decision_emits_an_event(accounts: Accounts) -> None:
    made = hooked(accounts, NOWHERE)
    suggested = accounts.suggestions.create(made.endpoint.account_id, 44, "genre", "Haus")
    accounts.suggestions.decide(suggested.suggestion_id, "approved", value="House", note="a slip")
    accounts.suggestions.decide(suggested.suggestion_id, "rejected")
    announced = [
        json.loads(accounts.deliveries.get(made.endpoint.account_id, made.endpoint.endpoint_id, one.delivery_id).body)["data"]
        for one in log_of(accounts, made.endpoint)
    ]
    assert announced[0] == {
        "id": suggested.suggestion_id,
        "status": "approved",
        "track_id": 44,
        "field": "genre",
        "value": "House",
        "created_at": "2026-11-21T12:00:00Z",
    }
    assert [one["status"] for one in announced] == ["approved", "rejected"]


def test_announcement_reaches_each_account_once_over_all_processes(accounts: Accounts, url: str, clock: HandClock) -> None:
    first, second = hooked(accounts, NOWHERE).endpoint, hooked(accounts, NOWHERE, [CATALOG_PUBLISHED]).endpoint
    deaf = hooked(accounts, NOWHERE, [TRACK_STARTED]).endpoint
    opened = [Accounts.open(url, clock=clock, outbound=OUTBOUND) for _ in range(4)]
    for build in ("b-1", "b-2"):
        with ThreadPoolExecutor(4) as threads:
            tell = [threads.submit(one.webhooks.announce, f"published {build}", CATALOG_PUBLISHED, {"build": build}) for one in opened]
            assert sorted(one.result() for one in tell) == [False, False, False, True]
    for one in opened:
        one.close()
    assert [len(log_of(accounts, one)) for one in (first, second, deaf)] == [2, 2, 0]
    assert {one.status for one in log_of(accounts, first)} == {PENDING}
