"""Tests of deliveries: times, receivers and order. No event is lost, and a dead receiver delays no other receiver."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from account_store import Accounts
from account_store.webhooks.event_types import SUGGESTION_DECIDED, TRACK_STARTED
from account_store.webhooks.outbox import DELIVERED, FAILED, HELD, PENDING
from tests.account_store.webhooks.conftest import decide, hooked, log_of
from tests.ports import free_port
from tests.webhook_delivery.conftest import deliver
from tests.webhook_delivery.receiver import answers, receiving, says, waits_for
from webhook_delivery import schedule
from webhook_delivery.queue import LEASE, DeliveryQueue

if TYPE_CHECKING:
    from tests.account_store.conftest import HandClock


def test_standard_library_of_receivers_verifies_our_messages(accounts: Accounts) -> None:
    with receiving() as receiver:
        made = hooked(accounts, receiver.url, [SUGGESTION_DECIDED])
        deaf = accounts.webhooks.create(made.endpoint.account_id, receiver.url, [TRACK_STARTED])
        stranger = hooked(accounts, receiver.url)
        decide(accounts, made.endpoint.account_id, "Acid Haüs")
        deliver(accounts)
    [one] = receiver.received
    message = one.verified(made.secret)
    assert (message["type"], message["data"]["value"], message["data"]["status"]) == (SUGGESTION_DECIDED, "Acid Haüs", "approved")
    assert set(message) == {"type", "timestamp", "data"}
    assert one.headers["content-type"] == "application/json"
    with pytest.raises(WebhookVerificationError):
        one.verified(deaf.secret)
    [delivery] = log_of(accounts, made.endpoint)
    assert (delivery.status, delivery.event_id, delivery.last_status_code, delivery.attempt_count) == (DELIVERED, one.event_id, 204, 1)
    assert log_of(accounts, deaf.endpoint) == log_of(accounts, stranger.endpoint) == []


def test_receiver_that_was_down_gets_everything_in_order_when_it_is_up(accounts: Accounts, clock: HandClock) -> None:
    port = free_port()
    made = hooked(accounts, f"http://127.0.0.1:{port}/")
    decide(accounts, made.endpoint.account_id, "A", "B", "C")
    deliver(accounts)
    before = log_of(accounts, made.endpoint)
    assert [(one.status, one.attempt_count) for one in before] == [(PENDING, 1), (PENDING, 0), (PENDING, 0)], "it rests after a failure"
    assert "ConnectError" in str(before[0].last_error)
    endpoint = accounts.webhooks.get(made.endpoint.account_id, made.endpoint.endpoint_id)
    assert endpoint.failing_since == clock.now
    with receiving(port=port) as receiver:
        clock.move(seconds=10)
        deliver(accounts)
    assert [one.verified(made.secret)["data"]["value"] for one in receiver.received] == ["A", "B", "C"]
    assert [one.event_id for one in receiver.received] == [one.event_id for one in before]
    assert {one.status for one in log_of(accounts, made.endpoint)} == {DELIVERED}
    assert accounts.webhooks.get(endpoint.account_id, endpoint.endpoint_id).failing_since is None


def test_address_that_resolves_to_our_network_by_now_is_not_called(accounts: Accounts, url: str, clock: HandClock) -> None:
    with receiving() as receiver:
        made = hooked(accounts, receiver.url)
        decide(accounts, made.endpoint.account_id, "A")
        strict = Accounts.open(url, clock=clock)
        deliver(strict)
        strict.close()
        assert receiver.received == []
    [delivery] = log_of(accounts, made.endpoint)
    assert (delivery.status, delivery.last_status_code) == (PENDING, None)
    assert "not a public address" in str(delivery.last_error)


def test_delivery_fails_after_ten_attempts_in_a_day_and_can_be_replayed(accounts: Accounts, clock: HandClock) -> None:
    with receiving(answers(503)) as receiver:
        made = hooked(accounts, receiver.url)
        began = clock.now
        decide(accounts, made.endpoint.account_id, "A")
        offsets = []
        for _ in schedule.OFFSETS:
            [delivery] = log_of(accounts, made.endpoint)
            assert delivery.due_at is not None
            clock.now = max(clock.now + timedelta(minutes=5), delivery.due_at)  # it has rested by then, too
            offsets.append(delivery.due_at - began)
            deliver(accounts)
        [delivery] = log_of(accounts, made.endpoint)
        assert (delivery.status, delivery.attempt_count, delivery.due_at, delivery.finished_at) == (FAILED, 10, None, clock.now)
        assert timedelta(hours=21) < offsets[-1] < timedelta(hours=28)
        clock.move(days=1)
        deliver(accounts)
        assert len(receiver.received) == 10
        accounts.deliveries.replay(made.endpoint.account_id, made.endpoint.endpoint_id, delivery.delivery_id)
        deliver(accounts)
        [anew] = log_of(accounts, made.endpoint)
        assert (anew.status, anew.finished_at) == (PENDING, None), "a replay has all its attempts"
        receiver.behaves(answers(200))
        clock.move(minutes=10)
        deliver(accounts)
        [replayed] = log_of(accounts, made.endpoint)
    assert (replayed.status, replayed.attempt_count) == (DELIVERED, 12)
    assert len({one.event_id for one in receiver.received}) == 1


def test_410_disables_an_endpoint_until_its_owner_enables_it(accounts: Accounts, clock: HandClock) -> None:
    with receiving(answers(410)) as receiver:
        made = hooked(accounts, receiver.url)
        account_id, endpoint_id = made.endpoint.account_id, made.endpoint.endpoint_id
        decide(accounts, account_id, "A", "B")
        deliver(accounts)
        endpoint = accounts.webhooks.get(account_id, endpoint_id)
        assert (endpoint.is_enabled, endpoint.disabled_reason, endpoint.disabled_at) == (False, "gone", clock.now)
        decide(accounts, account_id, "C")
        clock.move(days=1)
        deliver(accounts)
        assert len(receiver.received) == 1
        assert [one.status for one in log_of(accounts, endpoint)] == [FAILED, HELD, HELD]
        receiver.behaves(answers(200))
        accounts.webhooks.change(account_id, endpoint_id, is_enabled=True)
        deliver(accounts)
        assert len(receiver.received) == 1, "what was held goes out on request only"
        assert accounts.deliveries.replay_since(account_id, endpoint_id, clock.now - timedelta(days=2)) == 3
        deliver(accounts)
    assert [json.loads(one.body)["data"]["value"] for one in receiver.received] == ["A", "A", "B", "C"]


def test_endpoint_that_fails_for_days_is_disabled_with_the_reason(accounts: Accounts, clock: HandClock) -> None:
    with receiving(answers(500)) as receiver:
        made = hooked(accounts, receiver.url)
        for _day in range(7):
            decide(accounts, made.endpoint.account_id, "A")
            deliver(accounts)
            clock.move(days=1)
        endpoint = accounts.webhooks.get(made.endpoint.account_id, made.endpoint.endpoint_id)
        assert (endpoint.disabled_reason, len(receiver.received)) == ("failing", 6)
        assert endpoint.failing_since == clock.now - timedelta(days=7)
        assert {one.status for one in log_of(accounts, endpoint)} == {HELD}
        changed = accounts.webhooks.change(made.endpoint.account_id, made.endpoint.endpoint_id, is_enabled=True)
        assert (changed.is_enabled, changed.disabled_reason, changed.failing_since) == (True, None, None)


def test_slow_receiver_delays_only_itself(accounts: Accounts, clock: HandClock) -> None:
    may_answer = threading.Event()
    with receiving(waits_for(may_answer, says(b""))) as slow, receiving() as good:
        endless = hooked(accounts, slow.url)
        decide(accounts, endless.endpoint.account_id, *"ABCDE")
        quick = hooked(accounts, good.url)
        decide(accounts, quick.endpoint.account_id, *"ABCDEFGHIJ")
        with ThreadPoolExecutor(1) as threads:
            delivering = threads.submit(deliver, accounts)
            good.awaited(10)  # while the other has not answered
            may_answer.set()
            delivering.result()
        assert [one.verified(quick.secret)["data"]["value"] for one in good.received] == list("ABCDEFGHIJ")
        assert len(slow.received) == 1
        clock.move(minutes=1)
        deliver(accounts)
        assert len(slow.received) == 2, "one attempt, then it rests again, however much waits"


def test_both_secrets_sign_during_a_rotation(accounts: Accounts, clock: HandClock) -> None:
    with receiving() as receiver:
        made = hooked(accounts, receiver.url)
        account_id, endpoint_id = made.endpoint.account_id, made.endpoint.endpoint_id
        new = accounts.webhooks.rotate(account_id, endpoint_id, timedelta(hours=2))
        assert new.secret != made.secret
        decide(accounts, account_id, "A")
        deliver(accounts)
        assert receiver.received[-1].verified(made.secret) == receiver.received[-1].verified(new.secret)
        clock.move(hours=2, seconds=1)
        decide(accounts, account_id, "B")
        deliver(accounts)
        assert receiver.received[-1].verified(new.secret)
        with pytest.raises(WebhookVerificationError):
            receiver.received[-1].verified(made.secret)
        newest = accounts.webhooks.rotate(account_id, endpoint_id, timedelta(0))
        decide(accounts, account_id, "C")
        deliver(accounts)
        assert receiver.received[-1].headers["webhook-signature"].count("v1,") == 1
        assert receiver.received[-1].verified(newest.secret)


def test_ping_is_sent_for_any_choice_of_event_types(accounts: Accounts) -> None:
    with receiving() as receiver:
        made = hooked(accounts, receiver.url, [TRACK_STARTED])
        pinged = accounts.deliveries.ping(made.endpoint.account_id, made.endpoint.endpoint_id)
        assert pinged.status == PENDING
        deliver(accounts)
    [one] = receiver.received
    assert one.event_id == pinged.event_id
    message = one.verified(made.secret)
    assert (message["type"], message["data"]["webhook_id"]) == ("webhook.ping", made.endpoint.endpoint_id)


def test_endpoint_of_a_dead_deliverer_is_claimed_when_its_lease_ends(accounts: Accounts, clock: HandClock) -> None:
    with receiving() as receiver:
        made = hooked(accounts, receiver.url)
        endpoint_id = made.endpoint.endpoint_id
        decide(accounts, made.endpoint.account_id, "A")
        queue = DeliveryQueue(accounts)
        assert endpoint_id in queue.claim("dies", 100)
        lost = queue.find_next("dies", endpoint_id)
        assert lost is not None
        assert endpoint_id not in queue.claim("lives", 100)
        assert queue.find_next("lives", endpoint_id) is None
        deliver(accounts)
        assert receiver.received == []
        clock.now += LEASE + timedelta(seconds=1)
        assert queue.find_next("dies", endpoint_id) is None, "a lease that ended is not a licence"
        deliver(accounts)
    [one] = receiver.received
    assert one.event_id == lost.event_id
