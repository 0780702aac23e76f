from __future__ import annotations

import asyncio
import ipaddress
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event

from account_store import Accounts, api_keys
from account_store.api_keys import KEY_CACHE_SECONDS, ApiKeys
from account_store.errors import InvalidValueError, StateError, TakenError, UnavailableError, UnknownError
from account_store.key_rights import build_rights, is_address_allowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.account_store.conftest import HandClock


class Seconds:
    """A monotonic clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Server:
    """Another process's view of the keys: its own memory, and a count of what it asks the database."""

    def __init__(self, accounts: Accounts) -> None:
        self.seconds = Seconds()
        self.keys = ApiKeys(accounts.engine, accounts._read_plan, accounts.clock, self.seconds)
        self.statements = 0
        event.listen(accounts.engine, "before_cursor_execute", self._count)
        self._remove = lambda: event.remove(accounts.engine, "before_cursor_execute", self._count)

    def _count(self, *_arguments: object) -> None:
        self.statements += 1

    def stop(self) -> None:
        self._remove()


@pytest.fixture
def server(accounts: Accounts) -> Iterator[Server]:
    running = Server(accounts)
    yield running
    running.stop()


def test_key_names_its_caller_with_the_plan_of_the_account(accounts: Accounts) -> None:
    account = accounts.create("named", "growth")
    made = accounts.keys.create(account.account_id, label="player")
    caller = accounts.keys.find_caller(made.key)
    assert caller is not None
    assert (caller.account_id, caller.key_id, caller.plan.name, caller.has_card) == (account.account_id, made.key_id, "growth", False)
    assert asyncio.run(accounts.keys.authenticate(made.key)) == caller
    [listed] = accounts.keys.list_summaries(account.account_id)
    assert (listed.key_id, listed.label, listed.prefix, listed.revoked_at) == (made.key_id, "player", made.key[:10], None)


@pytest.mark.parametrize("key", ["", "mc_unknown", "x" * 201, "schlüssel", "\udcff", "a\0b"])
def test_invalid_key_has_no_caller(accounts: Accounts, key: str) -> None:
    assert accounts.keys.find_caller(key) is None
    assert asyncio.run(accounts.keys.authenticate(key)) is None


def test_database_does_not_hold_the_key(accounts: Accounts) -> None:
    made = accounts.keys.create(accounts.create("secret").account_id)
    accounts.keys.find_caller(made.key)
    with accounts.engine.connect() as connection:
        dump = str(connection.exec_driver_sql("SELECT * FROM api_key").all())
    assert made.key not in dump
    assert made.key[:10] in dump


def test_revoked_key_is_refused_by_other_processes_within_the_stated_bound(accounts: Accounts, server: Server) -> None:
    made = accounts.keys.create(accounts.create("revoked").account_id)
    assert server.keys.find_caller(made.key) is not None
    accounts.keys.revoke(made.key_id)
    assert accounts.keys.find_caller(made.key) is None, "the process that revokes sees it at once"
    server.seconds.now += KEY_CACHE_SECONDS - 0.01
    assert server.keys.find_caller(made.key) is not None
    server.seconds.now += 0.01
    assert server.keys.find_caller(made.key) is None
    with pytest.raises(StateError, match="was revoked at 2026-11-21T12:00:00Z"):
        accounts.keys.revoke(made.key_id)


def test_changed_plan_and_a_card_reach_other_processes_within_the_same_bound(accounts: Accounts, server: Server) -> None:
    account = accounts.create("upgrades")
    made = accounts.keys.create(account.account_id)
    assert server.keys.find_caller(made.key)
    accounts.change_plan(account.account_id, "scale")
    accounts.set_card(account.account_id, has_card=True)
    server.seconds.now += KEY_CACHE_SECONDS
    caller = server.keys.find_caller(made.key)
    assert caller is not None
    assert (caller.plan.name, caller.has_card) == ("scale", True)


def test_rotated_key_stays_good_for_its_overlap_to_the_second(accounts: Accounts, server: Server, clock: HandClock) -> None:
    old = accounts.keys.create(accounts.create("rotates").account_id, label="player")
    new = accounts.keys.rotate(old.key_id, timedelta(seconds=3))
    assert server.keys.find_caller(old.key) is not None
    assert server.keys.find_caller(new.key) is not None
    clock.move(seconds=3)
    server.seconds.now += 3
    assert server.keys.find_caller(old.key) is None, "although the bound of the memory has not passed"
    assert server.keys.find_caller(new.key) is not None
    assert [key.label for key in accounts.keys.list_summaries(server.keys.find_caller(new.key).account_id)] == ["player", "player"]  # type: ignore[union-attr]


def test_only_the_owner_may_touch_a_key_when_an_owner_is_named(accounts: Accounts) -> None:
    mine, other = accounts.create("mine").account_id, accounts.create("other").account_id
    key = accounts.keys.create(mine)
    for touch in (accounts.keys.revoke, lambda key_id, account_id: accounts.keys.rotate(key_id, account_id=account_id)):
        with pytest.raises(UnknownError, match=f"no key {key.key_id}"):
            touch(key.key_id, other)
    assert accounts.keys.find_caller(key.key) is not None
    with pytest.raises(UnknownError, match="no account 999999"):
        accounts.keys.create(999999)


def test_keys_in_use_or_too_weak_are_refused(accounts: Accounts) -> None:
    account_id = accounts.create("chooses").account_id
    accounts.keys.create(account_id, f"a-known-key-{account_id}")
    with pytest.raises(TakenError):
        accounts.keys.create(account_id, f"a-known-key-{account_id}")
    for weak in ("short", "with a space in it", "tabulated\tkey", "schlüssel-schlüssel", "x" * 201):
        with pytest.raises(InvalidValueError):
            accounts.keys.create(account_id, weak)


def test_live_key_asks_the_database_once_in_the_bound_and_writes_its_use_once_a_minute(
    accounts: Accounts, server: Server, clock: HandClock
) -> None:
    account_id = accounts.create("busy").account_id
    key = accounts.keys.create(account_id).key

    async def many() -> None:
        await asyncio.gather(*[server.keys.authenticate(key) for _ in range(100)])

    server.statements = 0
    asyncio.run(many())
    assert server.statements <= 3, "a hundred waiting requests share one look-up and one note of use"
    first_use = clock.now
    for _ in range(11):
        clock.move(seconds=5)
        server.seconds.now += 5
        server.keys.find_caller(key)
    assert accounts.keys.list_summaries(account_id)[0].last_used_at == first_use
    clock.move(seconds=5)
    server.seconds.now += 5
    server.keys.find_caller(key)
    assert accounts.keys.list_summaries(account_id)[0].last_used_at == clock.now


def test_key_in_steady_use_stays_cached_and_a_revoked_one_expires(accounts: Accounts, server: Server) -> None:
    account_id = accounts.create("steady").account_id
    made = accounts.keys.create(account_id)

    async def use(times: int) -> list[bool]:
        known = []
        for _ in range(times):
            known.append(server.keys.find_cached_caller(made.key) is not None)
            await asyncio.gather(*server.keys._pending.values())
            server.seconds.now += 0.2
        return known

    async def all_uses() -> tuple[list[bool], list[bool]]:
        await server.keys.authenticate(made.key)
        before = await use(20)
        accounts.keys.revoke(made.key_id)
        return before, await use(6)

    before, after = asyncio.run(all_uses())
    assert before == [True] * 20
    assert after[-1] is False
    assert after == sorted(after, reverse=True)


def test_failed_early_lookup_of_a_key_fails_requests_only_after_the_cache_expires(
    accounts: Accounts, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = accounts.keys.create(accounts.create("ahead").account_id).key

    def away(_digest: bytes) -> None:
        raise UnavailableError("away")

    async def use() -> list[bool]:
        await server.keys.authenticate(key)
        monkeypatch.setattr(server.keys, "_look_up", away)
        known = []
        for _ in range(3):
            server.seconds.now += 0.4
            known.append(server.keys.find_cached_caller(key) is not None)
            await asyncio.sleep(0.05)
        with pytest.raises(UnavailableError):
            await server.keys.authenticate(key)
        return known

    assert asyncio.run(use()) == [True, True, False]


def test_unknown_keys_are_cached_within_bounds_and_valid_once_created(
    accounts: Accounts, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_keys, "CACHED_UNKNOWN", 50)
    for number in range(200):
        server.keys.find_caller(f"mc_guess_{number}")
    assert len(server.keys._unknown) == 50
    server.statements = 0
    server.keys.find_caller("mc_guess_199")
    assert server.statements == 0, "remembered"
    server.keys.find_caller("mc_guess_1")
    assert server.statements == 1, "forgotten"
    account_id = accounts.create("late").account_id
    name = f"mc_known_late_{account_id}"
    assert accounts.keys.find_caller(name) is None
    accounts.keys.create(account_id, name)
    assert accounts.keys.find_caller(name) is not None


def test_rights_of_a_key_reach_its_caller_and_its_successor(accounts: Accounts) -> None:
    account_id = accounts.create("rights").account_id
    rights = build_rights(["streams", "read"], ["192.0.2.7", "2001:db8::/32", "192.0.2.7"])
    made = accounts.keys.create(account_id, label="radio", rights=rights)
    successor = accounts.keys.rotate(made.key_id)
    for key in (made.key, successor.key):
        caller = accounts.keys.find_caller(key)
        assert (caller is None) == (key == made.key)
    assert caller is not None
    assert (caller.scopes, caller.is_test) == (frozenset({"read", "streams"}), False)
    assert list(map(str, caller.networks)) == ["192.0.2.7/32", "2001:db8::/32"]
    assert accounts.keys.list_summaries(account_id)[-1].rights == rights


def test_key_expires_to_the_second_also_while_it_is_cached(accounts: Accounts, server: Server, clock: HandClock) -> None:
    account_id = accounts.create("expiry").account_id
    made = accounts.keys.create(account_id, rights=build_rights(expires_at=clock() + timedelta(seconds=60)))
    clock.move(seconds=59.5)
    assert server.keys.find_caller(made.key) is not None
    clock.move(seconds=0.5)
    server.seconds.now += 0.5
    assert server.keys.find_caller(made.key) is None
    with pytest.raises(StateError, match="expired at"):
        accounts.keys.rotate(made.key_id)
    with pytest.raises(InvalidValueError, match="must expire later"):
        accounts.keys.create(account_id, rights=build_rights(expires_at=clock()))


@pytest.mark.parametrize(
    ("scopes", "networks", "is_test", "message"),
    [
        (["write"], [], False, "no scope 'write'"),
        (["streams"], [], True, "a test key has the scope read alone"),
        ([], ["192.0.2.1/24"], False, "'192.0.2.1/24' is not an address or network"),
        ([], ["example.org"], False, "'example.org' is not an address or network"),
        ([], [f"192.0.2.{number}" for number in range(21)], False, "at most 20 allowed addresses"),
    ],
)
def test_impossible_rights_are_refused_with_the_reason(scopes: list[str], networks: list[str], is_test: bool, message: str) -> None:  # noqa: FBT001
    with pytest.raises(InvalidValueError, match=re.escape(message)):
        build_rights(scopes, networks, is_test=is_test)


@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        ("192.0.2.9", True),
        ("::ffff:192.0.2.9", True),
        ("198.51.100.1", False),
        ("2001:db8::5%eth0", True),
        ("[2001:db8::5]", True),
        ("", False),
    ],
)
def test_addresses_are_compared_whatever_their_spelling(address: str, is_allowed: bool) -> None:  # noqa: FBT001
    networks = [ipaddress.ip_network(text) for text in ("192.0.2.0/24", "2001:db8::/32")]
    assert is_address_allowed(address, networks) == is_allowed
