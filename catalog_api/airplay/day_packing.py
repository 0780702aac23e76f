"""Pack past days of airings, which makes reports of months fast. A worker packs a few days at a time, beside its requests."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from account_store.errors import UnavailableError

if TYPE_CHECKING:
    from account_store.accounts import Accounts

log = logging.getLogger("catalog_api")

EVERY_SECONDS = 60.0
_DAY_BATCH_SIZE = 500
"""Days of streams in one call: a fraction of a second, for which a stop of the server may have to wait."""
_PAUSE_SECONDS = 1.0
_LOOKS_SECONDS = 5.0
"""The interval of checks whether a report met unpacked days."""
_STARTING_SECONDS = 5.0
"""Three months of fifty streams take two to four seconds."""


async def pack_days_at_start(accounts: Accounts) -> None:
    """Pack what was left while no server ran, for at most a few seconds, before requests are accepted."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_STARTING_SECONDS):
            while await _pack(accounts):
                pass


async def keep_days_packed(accounts: Accounts) -> None:
    """Pack until cancelled. Workers check at different times, and after a report that met unpacked days; finished work is found done."""
    while True:
        # A random part of the interval, because all workers start together.
        until = time.monotonic() + EVERY_SECONDS * random.uniform(0.1, 1)  # noqa: S311 - no secret
        while time.monotonic() < until and not accounts.airplay.is_behind.is_set():  # noqa: ASYNC110 - set by another thread; no hurry
            await asyncio.sleep(_LOOKS_SECONDS)
        while await _pack(accounts):  # noqa: ASYNC110 - work that is left, no flag
            await asyncio.sleep(_PAUSE_SECONDS)


async def _pack(accounts: Accounts) -> int:
    try:
        return await asyncio.to_thread(accounts.airplay.settle, _DAY_BATCH_SIZE)
    except UnavailableError as error:
        log.warning("days of airings are not packed: %s", error)
        return 0
