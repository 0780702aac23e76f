"""The service that answers test keys: the fixed catalog, and a ledger that charges nothing.

Each worker opens it for its first request with a test key, in a process beside it: publishing takes a second or two.
"""

from __future__ import annotations

import asyncio
import copy
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from account_store.ledger.free_ledger import FreeLedger
from catalog_api.live_catalog import LiveCatalog
from catalog_api.past_catalogs import PastCatalogs

if TYPE_CHECKING:
    from account_store.accounts import Accounts

_SECONDS = 120
"""Limit of publishing, on a busy machine."""


class FixedParts(NamedTuple):
    """The parts of the service that test keys do not share with others."""

    live: LiveCatalog
    accounts: Accounts
    past: PastCatalogs


class FixedService:
    """The parts for test keys in one worker."""

    def __init__(self) -> None:
        """Start closed."""
        self._opened: FixedParts | None = None
        self._resources = ExitStack()
        self._lock = asyncio.Lock()

    async def open(self, accounts: Accounts) -> FixedParts:
        """Return the parts; the first call makes them."""
        if self._opened is None:
            async with self._lock:
                if self._opened is None:
                    self._opened = await asyncio.to_thread(self._open, accounts)
        return self._opened

    def close(self) -> None:
        """Close the catalog and remove its files."""
        self._resources.close()

    def _open(self, accounts: Accounts) -> FixedParts:
        folder = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="test-catalog-"))
        # A process of its own: publishing needs memory that a worker does not have to keep.
        command = [sys.executable, "-m", "catalog_api.test_mode.fixed_catalog", folder]
        subprocess.run(command, check=True, timeout=_SECONDS, stdout=subprocess.DEVNULL)  # noqa: S603 - ours
        live = LiveCatalog(Path(folder), what="catalog of test keys", verify_contents=False)
        live.look()
        self._resources.callback(live.close)
        # The same database, except for credits.
        free = copy.copy(accounts)
        free.ledger = FreeLedger(accounts.clock)
        past = PastCatalogs(Path(folder), live)
        self._resources.callback(past.close)
        return FixedParts(live, free, past)
