from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from account_store.streams.leases import Lease, Leases
from account_store.streams.traces import StoredTrace, load_trace, save_traces
from tests.account_store.conftest import new_caller

if TYPE_CHECKING:
    from account_store import Accounts


@pytest.fixture
def lease(accounts: Accounts) -> Lease:
    account_id = new_caller(accounts).account_id
    stream_id = accounts.streams.create(account_id, "https://radio.example/live", "Radio").stream_id
    return next(one for one in Leases(accounts.engine, f"worker of {stream_id}", 10_000).claim() if one.stream_id == stream_id)


def stored(accounts: Accounts, one: Lease) -> StoredTrace | None:
    with accounts.engine.connect() as connection:
        return load_trace(connection, one.stream_id)


def left_by(accounts: Accounts, *traces: tuple[Lease, StoredTrace]) -> None:
    with accounts.engine.begin() as connection:
        save_traces(connection, traces)


def test_latest_trace_is_loaded(accounts: Accounts, lease: Lease) -> None:
    assert stored(accounts, lease) is None
    left_by(accounts)
    for trace in (StoredTrace(1_795_000_000_000, b"one"), StoredTrace(1_795_000_005_000, b"\0two")):
        left_by(accounts, (lease, trace))
        assert stored(accounts, lease) == trace


def test_worker_whose_lease_was_lost_leaves_no_trace(accounts: Accounts, lease: Lease) -> None:
    left_by(accounts, (lease, StoredTrace(1, b"its own")))
    lost = Lease(lease.stream_id, lease.account_id, lease.url, lease.name, lease.token - 1, lease.created_at, None)
    left_by(accounts, (lost, StoredTrace(2, b"of who was away")))
    accounts.streams.stop(lease.account_id, lease.stream_id)
    left_by(accounts, (lease, StoredTrace(3, b"of a stopped stream")))
    assert stored(accounts, lease) == StoredTrace(1, b"its own")
