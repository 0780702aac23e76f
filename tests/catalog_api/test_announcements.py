"""Tests that each account's webhooks get one event for a snapshot, however many processes see it become live."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from account_store import Accounts
from catalog_api.announcements import announce_snapshots
from catalog_api.live_catalog import LiveCatalog
from catalog_store.publisher import publish, rollback
from outbound_http import Outbound
from outbound_http.allow_list import parse_allow_list
from tests.catalog_store.catalog_tables import make_tables
from tests.waiting import until_in_loop

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from account_store.webhooks.endpoints import Endpoint

LOOK_SECONDS = 0.02


def builds(accounts: Accounts, endpoint: Endpoint) -> list[str]:
    """Return the builds that the endpoint's events name, oldest first."""
    announced = accounts.deliveries.read_page(endpoint.account_id, endpoint.endpoint_id)[::-1]
    details = [accounts.deliveries.get(endpoint.account_id, endpoint.endpoint_id, one.delivery_id) for one in announced]
    return [detail.body.partition('"build":"')[2].partition('"')[0] for detail in details]


async def follow(processes: Sequence[Accounts], root: Path, endpoint: Endpoint) -> None:
    """Switch `current` to and fro under so many processes that follow it, and wait after each switch for its event."""
    lives = [LiveCatalog(root, look_seconds=LOOK_SECONDS) for _ in processes]
    async with AsyncExitStack() as stack:
        for live, accounts in zip(lives, processes, strict=True):
            await stack.enter_async_context(announce_snapshots(live, accounts, LOOK_SECONDS))
        for live_id in ("first", "second", "first", "second"):
            await asyncio.to_thread(rollback, root, live_id)
            for live in lives:
                await asyncio.to_thread(live.look)
            await until_in_loop(lambda live_id=live_id: live_id in builds(processes[0], endpoint), "the announcement")
            await asyncio.sleep(5 * LOOK_SECONDS)  # another process may be about to send it again
    for live in lives:
        live.close()


def test_snapshot_is_announced_once_over_processes_switches_and_restarts(tmp_path: Path) -> None:
    for seed, name in enumerate(("first", "second")):
        publish(make_tables(tmp_path / name, 3, seed), tmp_path / "catalog", snapshot_id=name, next_ids={"recording": 1000, "artist": 50})
    url, outbound = f"sqlite:///{tmp_path}/accounts.db", Outbound(parse_allow_list("127.0.0.1:*"))
    processes = [Accounts.open(url, outbound=outbound) for _ in range(3)]
    endpoint = processes[0].webhooks.create(processes[0].create("radio").account_id, "http://127.0.0.1:9/").endpoint
    for _start in range(2):
        asyncio.run(follow(processes, tmp_path / "catalog", endpoint))
        assert builds(processes[0], endpoint) == ["first", "second"]
    for one in processes:
        one.close()
