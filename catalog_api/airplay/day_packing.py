"""Keeps settled days of airings packed, which makes reports of months quick: a worker does so a few at a time, beside its requests."""

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
_DAYS_AT_ONCE = 500
"""Of streams: a fraction of a second, which is how long stopping the server may have to wait for it."""
_PAUSE_SECONDS = 1.0
_LOOKS_SECONDS = 5.0
"""After so long a report that met days which are not packed is noticed."""
_STARTING_SECONDS = 5.0
"""Three months of fifty streams take two to four seconds."""


async def pack_days_at_start(accounts: Accounts) -> None:
    """What was left while no server ran, before this one takes requests: as much as can be packed in a few seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_STARTING_SECONDS):
            while await _settle(accounts):
                pass


async def keep_days_packed(accounts: Accounts) -> None:
    """Until it is cancelled. Workers look at times of their own, and behind a report; what one has done the others find done."""
    while True:
        until = time.monotonic() + EVERY_SECONDS * random.uniform(0.1, 1)  # noqa: S311 - no secret
        while time.monotonic() < until and not accounts.airplay.is_behind.is_set():  # noqa: ASYNC110 - set by another thread; no hurry
            await asyncio.sleep(_LOOKS_SECONDS)
        while await _settle(accounts):  # noqa: ASYNC110 - work that is left, no flag
            await asyncio.sleep(_PAUSE_SECONDS)


async def _settle(accounts: Accounts) -> int:
    try:
        return await asyncio.to_thread(accounts.airplay.settle, _DAYS_AT_ONCE)
    except UnavailableError as error:
        log.warning("days of airings are not packed: %s", error)
        return 0
