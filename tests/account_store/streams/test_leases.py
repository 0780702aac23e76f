from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

import pytest

from account_store.streams.leases import Lease, LeaseLostError, Leases, hold, read_database_ms
from account_store.streams.registry import ACTIVE
from account_store.streams.stream_tables import monitor_worker, stream
from tests.account_store.conftest import new_caller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from account_store import Accounts

_numbers = itertools.count(1)
SECONDS = 3600.0
"""A lease lasts longer than any test. It ends where `expire` says so."""


@pytest.fixture
def account_id(accounts: Accounts) -> Iterator[int]:
    """Yield an account whose streams are the only active ones during the test."""
    made = new_caller(accounts).account_id
    yield made
    for one in accounts.streams.read_page(made, status=ACTIVE):
        accounts.streams.stop(made, one.stream_id)
    with accounts.engine.begin() as connection:
        connection.execute(monitor_worker.delete())


def streams(accounts: Accounts, account_id: int, count: int) -> list[str]:
    return [accounts.streams.create(account_id, f"https://radio.example/{n}", f"Radio {n}").stream_id for n in range(count)]


def worker(accounts: Accounts, capacity: int = 100, seconds: float = SECONDS) -> Leases:
    return Leases(accounts.engine, f"worker {next(_numbers)}", capacity, seconds)


def expire(accounts: Accounts, lease: Lease) -> None:
    """Let its time be over, as if nobody had renewed it."""
    with accounts.engine.begin() as connection:
        connection.execute(
            stream.update().where(stream.c.stream_id == lease.stream_id).values(lease_ends_ms=read_database_ms(connection) - 1)
        )


def ids(leases: list[Lease]) -> set[str]:
    return {one.stream_id for one in leases}


def test_stream_is_one_workers_until_its_lease_ends(accounts: Accounts, account_id: int) -> None:
    [name] = streams(accounts, account_id, 1)
    first, second = worker(accounts), worker(accounts)
    [lease] = first.claim()
    assert (lease.stream_id, lease.token, lease.listened_ms) == (name, 1, None)
    assert first.renew([lease], {name: 4711}).lost == []
    assert second.claim() == []
    expire(accounts, lease)
    [taken] = second.claim()
    assert (taken.stream_id, taken.token, taken.listened_ms) == (name, 2, 4711)
    assert first.renew([lease]).lost == [lease]


def test_worker_whose_lease_was_lost_can_write_no_more(accounts: Accounts, account_id: int) -> None:
    streams(accounts, account_id, 1)
    stale, heir = worker(accounts), worker(accounts)
    [old] = stale.claim()
    expire(accounts, old)
    with accounts.engine.begin() as connection:
        hold(connection, old)  # late, but nobody else's yet
    [new] = heir.claim()
    with accounts.engine.begin() as connection, pytest.raises(LeaseLostError):
        hold(connection, old)
    with accounts.engine.begin() as connection:
        hold(connection, new)
    stale.release([old])
    assert heir.renew([new]).lost == [], "a stale worker gives up nothing of another's"


def test_released_stream_can_be_claimed_at_once(accounts: Accounts, account_id: int) -> None:
    names = set(streams(accounts, account_id, 3))
    first = worker(accounts)
    leases = first.claim()
    assert ids(leases) == names
    first.release(leases[:2])
    first.leave()
    second = worker(accounts)
    assert ids(second.claim()) == ids(leases[:2])


def test_workers_share_by_capacity_and_a_late_one_gets_its_part(accounts: Accounts, account_id: int) -> None:
    streams(accounts, account_id, 9)
    large, small = worker(accounts, capacity=20), worker(accounts, capacity=10)
    held = large.claim()
    assert len(held) == 9
    assert small.claim() == []
    assert large.count_surplus(len(held)) == 3
    large.release(held[:3])
    assert ids(small.claim()) == ids(held[:3])
    assert (large.count_surplus(6), small.count_surplus(3)) == (0, 0)
    assert large.claim(6) == []


def test_capacity_is_never_exceeded(accounts: Accounts, account_id: int) -> None:
    streams(accounts, account_id, 5)
    one = worker(accounts, capacity=2)
    held = one.claim()
    assert len(held) == 2
    assert one.claim(len(held)) == []


def test_workers_that_claim_at_once_never_get_the_same_stream(accounts: Accounts, account_id: int) -> None:
    names = set(streams(accounts, account_id, 40))
    crowd = [worker(accounts, capacity=10) for _ in range(6)]
    for one in crowd:
        one.claim(10)  # all are known before anyone claims
    got: list[list[Lease]] = []
    barrier = threading.Barrier(len(crowd))

    def claim(leases: Leases) -> None:
        barrier.wait()
        held: list[Lease] = []
        for _ in range(4):
            held += leases.claim(len(held))
        got.append(held)

    threads = [threading.Thread(target=claim, args=(one,)) for one in crowd]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    claimed = [lease.stream_id for held in got for lease in held]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) == names


def test_lease_time_is_the_databases(accounts: Accounts) -> None:
    # The database runs on this machine, so its time is between two of ours, however long the question takes. It rounds to milliseconds.
    with accounts.engine.begin() as connection:
        before = time.time_ns() // 1_000_000
        found = read_database_ms(connection)
        after = time.time_ns() // 1_000_000
    assert before - 1 <= found <= after + 1
