"""Write the request log of the accounts beside the requests: workers collect in memory and write every few seconds, in a thread.

A request adds one tuple to a list. A worker that is killed loses the entries of WRITE_SECONDS; credits do not depend on them. Out of scope:
the stored form (account_store/request_log.py), the operator's log (server/request_statistics.py).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import structlog

from account_store.errors import UnavailableError
from catalog_api.server.request_statistics import name_method, name_route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from account_store.request_log import Entry, RequestLog

log = structlog.get_logger("catalog_api")

WRITE_SECONDS = 2.0
MOST_WAITING = 100_000
"""Entries that wait while the database does not answer: 20 MB. More are dropped, and counted in the log."""
_PRUNE_SECONDS = 600.0


class RequestLogWriter:
    """The entries of one worker that are not written yet. Only its event loop uses it."""

    def __init__(self, requests: RequestLog) -> None:
        """Write into `requests`."""
        self._requests = requests
        self._waiting: list[Entry] = []
        self._dropped = 0

    def append(self, caller: Any, method: str, route: str | None, status: int, seconds: float, state: dict[str, Any]) -> None:  # noqa: ANN401 - a Caller
        """Add a finished request of a caller."""
        if len(self._waiting) >= MOST_WAITING:
            self._dropped += 1
            return
        code, credits_, request_id = state.get("code"), state.get("credits", 0), state["request_id"]
        named = name_route(route), status, code, credits_, int(seconds * 1e6), request_id
        self._waiting.append((caller.account_id, time.time(), caller.key_id, name_method(method), *named))

    async def write(self) -> None:
        """Write what waits. Entries stay for the next call while the database does not answer; refused ones are lost and logged."""
        entries, self._waiting = self._waiting, []
        try:
            await asyncio.to_thread(self._requests.add, entries)
        except UnavailableError as error:
            self._waiting = [*entries, *self._waiting]
            log.warning("request log cannot be written", waiting=len(self._waiting), dropped=self._dropped, reason=str(error))
            return
        except Exception:
            # The database refuses these entries and would do so again. The loop of `run` goes on with the next ones.
            log.exception("entries of the request log were refused and are lost", lost=len(entries))
            return
        if self._dropped:
            log.warning("requests are missing in the request log", dropped=self._dropped)
            self._dropped = 0

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Write every WRITE_SECONDS during the block, and the rest at its end."""
        is_over = asyncio.Event()
        writing = asyncio.create_task(self._write_until(is_over))
        try:
            yield
        finally:
            # Not cancelled: a write goes on in its thread, and the database is closed after this block.
            is_over.set()
            await writing

    async def _write_until(self, is_over: asyncio.Event) -> None:
        prune_at = time.monotonic()
        while not is_over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(is_over.wait(), WRITE_SECONDS)
            await self.write()
            if time.monotonic() >= prune_at:
                prune_at = time.monotonic() + _PRUNE_SECONDS
                await self._prune()

    async def _prune(self) -> None:
        try:
            await asyncio.to_thread(self._requests.prune)
        except UnavailableError as error:
            log.warning("request log cannot be pruned", reason=str(error))
