"""The ISRC endpoint in FastAPI over PostgreSQL, written as an expert would. Runs in `.venv-bench` and imports nothing of ours.

Its advantages: tracks are stored as encoded JSON and passed through (no model, one join), asyncpg keeps its statements prepared, the pool
is as large as helps, keys are cached as long as ours, nothing is logged, uvicorn runs on uvloop and httptools. With `PEER_METERING=1`
credits are counted as ours are: exact, committed before the answer, one transaction for all waiting requests. `PEER_WITHOUT_RESET=1` skips
the statement by which asyncpg's pool resets a session after every request, a tuning that few know.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import asyncpg
from fastapi import Depends, FastAPI, Header, HTTPException, Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY_CACHE_SECONDS = 5.0
CONNECTIONS = 16
_TRACK = "SELECT body FROM recording_isrc JOIN track USING (recording_id) WHERE isrc = $1"
_CALLER = "SELECT account_id FROM api_key WHERE key_hash = $1 AND revoked_at IS NULL"
_CHARGE = """
UPDATE credit SET used = used + least(wanted, granted - used) FROM unnest($1::bigint[], $2::bigint[]) AS asked (account, wanted)
WHERE account_id = account RETURNING account_id, granted - used
"""


class Keys:
    """Keys and their accounts, read from the database every KEY_CACHE_SECONDS."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        """Read from `pool`, which leads to the table `api_key`."""
        self._pool = pool
        self._known: dict[str, tuple[float, int]] = {}

    async def find_account(self, key: str) -> int | None:
        """Return the account of a key."""
        known = self._known.get(key)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        account: int | None = await self._pool.fetchval(_CALLER, hashlib.sha256(key.encode()).digest())
        if account is not None:
            self._known[key] = (time.monotonic() + KEY_CACHE_SECONDS, account)
        return account


class Meter:
    """Charges credits: one transaction at a time for all requests that arrived meanwhile."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        """Write to `pool`, which leads to the table `credit`."""
        self._pool = pool
        self._waiting: list[tuple[int, asyncio.Future[int]]] = []
        self._task: asyncio.Task[None] | None = None

    async def charge(self, account: int) -> int:
        """Charge one credit and return how many are left."""
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((account, done))
        # One writer at a time: requests that arrive while it waits for the database share the next transaction.
        if self._task is None:
            self._task = asyncio.create_task(self._drain())
        return await done

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            counts = Counter(account for account, _ in batch)
            left = dict(await self._pool.fetch(_CHARGE, list(counts), list(counts.values())))
            for account, done in batch:
                done.set_result(left[account])
        self._task = None


async def _skip_reset(_connection: object) -> None:
    """Skip the reset of a session: every statement here leaves it unchanged."""


@asynccontextmanager
async def open_pool(application: FastAPI) -> AsyncIterator[None]:
    """Keep the pool open as long as the application runs."""
    options: dict[str, Any] = {"reset": _skip_reset} if os.environ.get("PEER_WITHOUT_RESET") else {}
    async with asyncpg.create_pool(os.environ["PEER_DATABASE"], min_size=CONNECTIONS, max_size=CONNECTIONS, **options) as pool:
        application.state.pool = pool
        application.state.keys = Keys(pool)
        application.state.meter = Meter(pool) if os.environ.get("PEER_METERING") else None
        yield


app = FastAPI(lifespan=open_pool)


async def authenticate(x_api_key: Annotated[str | None, Header()] = None) -> int:
    """Return the calling account; 401 without a live key."""
    account = await app.state.keys.find_account(x_api_key) if x_api_key else None
    if account is None:
        raise HTTPException(401)
    return int(account)


@app.get("/v1/tracks/isrc/{isrc}")  # type: ignore[untyped-decorator,unused-ignore]
async def get_track(isrc: str, account: Annotated[int, Depends(authenticate)]) -> Response:
    """Return the track with the code."""
    code = isrc.replace("-", "").upper()
    body: str | None = await app.state.pool.fetchval(_TRACK, code)
    if body is None:
        raise HTTPException(404)
    headers: dict[str, str] = {}
    if app.state.meter is not None:
        headers["X-Credits-Remaining"] = str(await app.state.meter.charge(account))
    return Response(f'{body[:-1]},"matched_isrc":"{code}"}}', media_type="application/json", headers=headers)


def main() -> None:
    """Run `python -m benchmarks.http_peer PORT [SITE_PACKAGES]`: the folder supplies uvloop and httptools if they are missing here."""
    import uvicorn  # noqa: PLC0415

    # The peer's environment lacks uvloop and httptools; ours has them, and both sides should run on the same loop.
    sys.path.extend(sys.argv[2:3])
    options: dict[str, Any] = {"loop": "uvloop", "http": "httptools", "lifespan": "on", "log_level": "warning", "access_log": False}
    uvicorn.run(app, port=int(sys.argv[1]), **options)


if __name__ == "__main__":
    main()
