from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from account_store.webhooks.outbox import HELD
from tests.account_store.webhooks.conftest import decide, hooked, log_of
from webhook_delivery.queue import DeliveryQueue

if TYPE_CHECKING:
    from account_store import Accounts
    from tests.account_store.conftest import HandClock

NOWHERE = "http://127.0.0.1:9/hook"


def test_old_deliveries_and_deleted_endpoints_are_swept(accounts: Accounts, clock: HandClock) -> None:
    kept, dropped = hooked(accounts, NOWHERE).endpoint, hooked(accounts, NOWHERE).endpoint
    decide(accounts, kept.account_id, "old")
    accounts.webhooks.change(kept.account_id, kept.endpoint_id, is_enabled=False)
    clock.move(days=14, seconds=1)
    decide(accounts, kept.account_id, "new")
    decide(accounts, dropped.account_id, "x", "y")
    accounts.webhooks.delete(dropped.account_id, dropped.endpoint_id)
    queue = DeliveryQueue(accounts)
    assert queue.sweep() >= 3
    assert queue.sweep() == 0
    assert [one.occurred_at for one in log_of(accounts, kept)] == [clock.now]
    with accounts.engine.connect() as connection:
        count = "SELECT count(*) FROM webhook_endpoint WHERE endpoint_id = '%s'"
        assert [connection.exec_driver_sql(count % one.endpoint_id).scalar() for one in (kept, dropped)] == [1, 0]
        strays = "SELECT count(*) FROM webhook_event WHERE event_id NOT IN (SELECT event_id FROM webhook_delivery)"
        assert connection.exec_driver_sql(strays).scalar() == 0


def test_event_written_while_its_endpoint_was_being_disabled_is_held(accounts: Accounts, clock: HandClock) -> None:
    endpoint = hooked(accounts, NOWHERE).endpoint
    accounts.webhooks.change(endpoint.account_id, endpoint.endpoint_id, is_enabled=False)
    decide(accounts, endpoint.account_id, "A")
    with accounts.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE webhook_delivery SET status = 'pending', due_at = '2026-11-21 12:00:00' WHERE endpoint_id = '{endpoint.endpoint_id}'"
        )
    DeliveryQueue(accounts).sweep()
    [delivery] = log_of(accounts, endpoint)
    assert (delivery.status, delivery.due_at) == (HELD, None)
    accounts.webhooks.change(endpoint.account_id, endpoint.endpoint_id, is_enabled=True)
    assert accounts.deliveries.replay_since(endpoint.account_id, endpoint.endpoint_id, clock.now - timedelta(hours=1)) == 1


def test_backlog_counts_waiting_deliveries(accounts: Accounts, clock: HandClock) -> None:
    before = DeliveryQueue(accounts).measure_backlog()
    assert (before.pending, before.oldest_due_seconds) == (0, 0.0)
    endpoint = hooked(accounts, NOWHERE).endpoint
    decide(accounts, endpoint.account_id, "A", "B")
    clock.move(seconds=90)
    now = DeliveryQueue(accounts).measure_backlog()
    assert (now.pending, now.oldest_due_seconds, now.disabled_endpoints - before.disabled_endpoints) == (2, 90.0, 0)
    accounts.webhooks.change(endpoint.account_id, endpoint.endpoint_id, is_enabled=False)
    assert DeliveryQueue(accounts).measure_backlog().disabled_endpoints == before.disabled_endpoints + 1
