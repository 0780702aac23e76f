from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from account_store.audit import acting_as
from account_store.errors import UnknownError
from tests.account_store.conftest import new_caller

if TYPE_CHECKING:
    from account_store import Accounts


def test_each_change_is_an_entry_with_its_actor_and_without_secrets(accounts: Accounts) -> None:
    account_id = new_caller(accounts).account_id
    with acting_as("user kim@example.org"):
        made = accounts.keys.create(account_id, label="radio")
        accounts.keys.revoke(made.key_id)
        hook = accounts.webhooks.create(account_id, "https://93.184.215.14/secret-path", is_vetted=True)
        accounts.webhooks.change(account_id, hook.endpoint.endpoint_id, description="x")
        accounts.webhooks.rotate(account_id, hook.endpoint.endpoint_id)
        accounts.webhooks.delete(account_id, hook.endpoint.endpoint_id)
    heard = accounts.streams.create(account_id, "http://93.184.215.14/live", "Radio One")
    accounts.streams.change(account_id, heard.stream_id, name="Radio Two")
    accounts.streams.stop(account_id, heard.stream_id)
    accounts.streams.stop(account_id, heard.stream_id)
    member, _ = accounts.users.invite(account_id, f"member{account_id}@example.org")
    accounts.users.reset_password(member.email)
    accounts.change_plan(account_id, "scale")
    accounts.set_card(account_id, has_card=True)
    found = accounts.audit.read_page(account_id, limit=100)[::-1][1:]
    assert [(one.actor, one.action, one.detail) for one in found] == [
        ("user kim@example.org", "key.created", "radio"),
        ("user kim@example.org", "key.revoked", ""),
        ("user kim@example.org", "webhook.created", "93.184.215.14"),
        ("user kim@example.org", "webhook.changed", ""),
        ("user kim@example.org", "webhook.secret_rotated", ""),
        ("user kim@example.org", "webhook.deleted", ""),
        ("operator", "stream.created", "Radio One"),
        ("operator", "stream.changed", "name"),
        ("operator", "stream.stopped", "Radio Two"),
        ("operator", "member.added", "owner"),
        ("operator", "member.password_changed", ""),
        ("operator", "account.plan_changed", "scale"),
        ("operator", "account.card_changed", "on"),
    ]
    texts = " ".join(str(one) for one in found)
    assert all(secret not in texts for secret in (made.key, hook.secret, "secret-path"))


def test_entries_are_read_in_pages_and_belong_to_one_account(accounts: Accounts) -> None:
    mine, other = new_caller(accounts).account_id, new_caller(accounts).account_id
    for number in range(3):
        accounts.keys.create(mine, label=str(number))
        accounts.keys.create(other)
    first = accounts.audit.read_page(mine, limit=2)
    second = accounts.audit.read_page(mine, limit=2, before=first[-1].entry_id)
    assert [one.detail for one in (*first, *second)] == ["2", "1", "0", ""]


def test_refused_change_leaves_no_entry(accounts: Accounts) -> None:
    account_id = new_caller(accounts).account_id
    before = accounts.audit.read_page(account_id, limit=10)
    with pytest.raises(UnknownError):
        accounts.keys.revoke(10**6, account_id)
    with pytest.raises(UnknownError):
        accounts.set_card(10**6, has_card=True)
    assert accounts.audit.read_page(account_id, limit=10) == before
