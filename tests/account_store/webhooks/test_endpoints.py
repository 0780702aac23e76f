from __future__ import annotations

import base64
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from account_store.errors import InvalidValueError, UnknownError
from account_store.webhooks.deliveries import DisabledError
from account_store.webhooks.endpoints import LONGEST_OVERLAP, MOST_ENDPOINTS, TooManyEndpointsError
from account_store.webhooks.event_types import CATALOG_PUBLISHED, TRACK_ENDED, TRACK_STARTED
from account_store.webhooks.outbox import DELIVERY_STATUSES, HELD, PENDING
from outbound_http import InvalidAddressError, Outbound, RefusedAddressError
from tests.account_store.webhooks.conftest import decide, hooked, log_of, new_account

if TYPE_CHECKING:
    from account_store import Accounts
    from tests.account_store.conftest import HandClock

NOWHERE = "http://127.0.0.1:9/hook"


def test_endpoint_keeps_the_values_of_its_creation(accounts: Accounts, clock: HandClock) -> None:
    account_id = new_account(accounts)
    made = accounts.webhooks.create(account_id, "HTTP://127.0.0.1:9?x", [TRACK_ENDED, TRACK_STARTED, TRACK_ENDED], "the player")
    one = accounts.webhooks.get(account_id, made.endpoint.endpoint_id)
    assert one == made.endpoint
    assert (one.url, one.event_types, one.description) == ("http://127.0.0.1:9/?x", (TRACK_STARTED, TRACK_ENDED), "the player")
    assert (one.created_at, one.is_enabled, one.disabled_reason, one.failing_since) == (clock.now, True, None, None)
    secret = base64.b64decode(made.secret.removeprefix("whsec_"), validate=True)
    assert len(secret) == 32
    assert made.secret not in repr(made), "what is printed by mistake is not a secret"


def test_every_secret_differs(accounts: Accounts) -> None:
    made = hooked(accounts, NOWHERE)
    others = [accounts.webhooks.rotate(made.endpoint.account_id, made.endpoint.endpoint_id).secret for _ in range(3)]
    assert len({made.secret, *others}) == 4


def test_invalid_endpoint_values_are_refused(accounts: Accounts) -> None:
    account_id = new_account(accounts)
    create, strict = accounts.webhooks.create, Outbound()
    for url, event_types, description, said in (
        ("ftp://x/", [], "", "http or https"),
        (NOWHERE, ["track.started"], "", "no event 'track.started'"),
        (NOWHERE, [], "x" * 501, "at most 500"),
    ):
        with pytest.raises((InvalidValueError, InvalidAddressError), match=said):
            create(account_id, url, event_types, description)
    with pytest.raises(RefusedAddressError):
        create(account_id, "https://10.0.0.1/")
    made = create(account_id, NOWHERE).endpoint
    with pytest.raises(InvalidValueError, match="0 to 168 hours"):
        accounts.webhooks.rotate(account_id, made.endpoint_id, LONGEST_OVERLAP + timedelta(seconds=1))
    with pytest.raises(InvalidValueError, match=f"there are {', '.join(DELIVERY_STATUSES)}"):
        accounts.deliveries.read_page(account_id, made.endpoint_id, status="lost")
    accounts.webhooks._outbound = strict
    with pytest.raises(RefusedAddressError):
        accounts.webhooks.change(account_id, made.endpoint_id, url=NOWHERE)
    assert (
        accounts.webhooks.change(account_id, made.endpoint_id, url="https://not-there-yet.invalid/").url == "https://not-there-yet.invalid/"
    )


def test_account_sees_its_own_endpoints_up_to_a_limit(accounts: Accounts) -> None:
    mine, others = new_account(accounts), hooked(accounts, NOWHERE).endpoint
    every = [accounts.webhooks.create(mine, NOWHERE).endpoint for _ in range(MOST_ENDPOINTS)]
    with pytest.raises(TooManyEndpointsError, match="at most 20"):
        accounts.webhooks.create(mine, NOWHERE)
    assert {one.endpoint_id for one in accounts.webhooks.list_all(mine)} == {one.endpoint_id for one in every}
    accounts.webhooks.delete(mine, every[0].endpoint_id)
    accounts.webhooks.create(mine, NOWHERE)
    strange = (mine, others.endpoint_id)
    for ask in (
        lambda: accounts.webhooks.get(*strange),
        lambda: accounts.webhooks.change(*strange, description="x"),
        lambda: accounts.webhooks.rotate(*strange),
        lambda: accounts.webhooks.delete(*strange),
        lambda: accounts.deliveries.read_page(*strange),
        lambda: accounts.deliveries.ping(*strange),
        lambda: accounts.webhooks.get(mine, every[0].endpoint_id),
    ):
        with pytest.raises(UnknownError):
            ask()
    assert accounts.webhooks.get(others.account_id, others.endpoint_id) == others


def test_disabled_endpoint_holds_events_until_they_are_replayed(accounts: Accounts, clock: HandClock) -> None:
    made = hooked(accounts, NOWHERE).endpoint
    mine = (made.account_id, made.endpoint_id)
    decide(accounts, made.account_id, "A")
    clock.move(hours=1)
    noon = clock.now
    accounts.webhooks.change(*mine, is_enabled=False)
    accounts.webhooks.change(*mine, is_enabled=False, description="asleep")
    decide(accounts, made.account_id, "B")
    assert [one.status for one in log_of(accounts, made)] == [HELD, HELD]
    first = log_of(accounts, made)[0]
    for ask in (
        lambda: accounts.deliveries.ping(*mine),
        lambda: accounts.deliveries.replay(*mine, first.delivery_id),
        lambda: accounts.deliveries.replay_since(*mine, noon),
    ):
        with pytest.raises(DisabledError):
            ask()
    accounts.webhooks.change(*mine, is_enabled=True)
    assert accounts.deliveries.replay_since(*mine, noon) == 1
    assert [one.status for one in log_of(accounts, made)] == [HELD, PENDING]
    assert accounts.deliveries.replay(*mine, first.delivery_id).status == PENDING
    with pytest.raises(UnknownError, match="no delivery 999999"):
        accounts.deliveries.replay(*mine, 999_999)


def test_delivery_log_has_pages_newest_first(accounts: Accounts) -> None:
    made = hooked(accounts, NOWHERE, [CATALOG_PUBLISHED]).endpoint
    other = accounts.webhooks.create(made.account_id, NOWHERE).endpoint
    sent = [accounts.deliveries.ping(made.account_id, made.endpoint_id).delivery_id for _ in range(5)]
    accounts.deliveries.ping(made.account_id, other.endpoint_id)
    page = accounts.deliveries.read_page(made.account_id, made.endpoint_id, limit=2)
    assert [one.delivery_id for one in page] == sent[:2:-1]
    rest = accounts.deliveries.read_page(made.account_id, made.endpoint_id, before=page[-1].delivery_id)
    assert [one.delivery_id for one in rest] == sent[2::-1]
    assert accounts.deliveries.read_page(made.account_id, made.endpoint_id, status=HELD) == []
