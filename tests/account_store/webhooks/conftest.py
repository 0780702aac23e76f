"""Accounts whose webhooks may lead to loopback, webhooks of new accounts, and events."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from account_store import Accounts
from outbound_http import Outbound
from outbound_http.allow_list import parse_allow_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from account_store.webhooks.deliveries import Delivery
    from account_store.webhooks.endpoints import Endpoint, NewSecret
    from tests.account_store.conftest import HandClock

_numbers = itertools.count(1)
OUTBOUND = Outbound(parse_allow_list("127.0.0.0/8:*"))
"""A client shared by all tests, because reading the TLS authorities is slow."""


@pytest.fixture
def accounts(url: str, clock: HandClock) -> Iterator[Accounts]:
    opened = Accounts.open(url, clock=clock, outbound=OUTBOUND)
    yield opened
    # The next test's deliverer must not send the deliveries that are still due from this test.
    for account in opened.list_all():
        for endpoint in opened.webhooks.list_all(account.account_id):
            opened.webhooks.delete(account.account_id, endpoint.endpoint_id)
    opened.close()


def new_account(accounts: Accounts) -> int:
    return accounts.create(f"gets events {next(_numbers)}").account_id


def hooked(accounts: Accounts, url: str, event_types: Sequence[str] = ()) -> NewSecret:
    """Return a webhook of a new account."""
    return accounts.webhooks.create(new_account(accounts), url, event_types)


def decide(accounts: Accounts, account_id: int, *values: str) -> None:
    """Make as many events as there are values: suggestions that are decided."""
    for value in values:
        made = accounts.suggestions.create(account_id, 1, "genre", value)
        accounts.suggestions.decide(made.suggestion_id, "approved")


def log_of(accounts: Accounts, endpoint: Endpoint) -> list[Delivery]:
    """Its deliveries, oldest first."""
    return accounts.deliveries.read_page(endpoint.account_id, endpoint.endpoint_id)[::-1]
