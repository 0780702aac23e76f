"""Tell the webhooks of all accounts once that a snapshot is live. Any process of any node may notice it first.

Out of scope: following `current` (live_catalog.py), recipients and delivery (account_store/webhooks).
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from account_store.errors import UnavailableError
from account_store.webhooks.event_types import CATALOG_PUBLISHED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from account_store.accounts import Accounts
    from catalog_api.live_catalog import LiveCatalog

log = structlog.get_logger("catalog_api")


@asynccontextmanager
async def announce_snapshots(live: LiveCatalog, accounts: Accounts, look_seconds: float) -> AsyncIterator[None]:
    """Check for a new snapshot at this interval, as long as the block lasts."""
    task = asyncio.create_task(_announce(live, accounts, look_seconds))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _announce(live: LiveCatalog, accounts: Accounts, look_seconds: float) -> None:
    announced = None
    while True:
        snapshot = live.snapshot
        if snapshot is not None and snapshot != announced:
            build, made_at = snapshot
            payload = {"build": build, "created_at": made_at}
            try:
                # The first argument identifies the event: the store takes it once, from any number of workers.
                await asyncio.to_thread(accounts.webhooks.announce, f"{CATALOG_PUBLISHED} {build}", CATALOG_PUBLISHED, payload)
                # Only after success: a database that is away is tried again in the next round.
                announced = snapshot
            except UnavailableError as error:
                log.warning("the new snapshot is not announced to webhooks yet", snapshot=build, reason=str(error))
        await asyncio.sleep(look_seconds)
