"""Answers stored under an idempotency key for 24 hours, so that a repeated request gets the same answer and pays once (contract D4).

    stored = await answers.get(account_id, key, request_hash)     # answered before: send it again, charge nothing
    charge = await ledger.charge(caller, 100, partial=True, idempotency_key=key, request_hash=request_hash)
    ...                                                           # the work for charge.granted rows, which only reads
    await answers.put(account_id, key, StoredAnswer(200, "application/json", body))

The charge makes the record in its own transaction; `put` adds the answer. A process killed in between leaves a charge without an answer.
The repeated request is charged nothing then (`is_replay`), does the work and stores its answer. Out of scope: the hash of a
request, and which routes take the header.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from account_store.database import connect_for_reads
from account_store.errors import IdempotencyKeyReusedError
from account_store.schema import replay

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Engine

    from account_store.clock import Clock

LONGEST_IDEMPOTENCY_KEY = 255
"""Characters."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer in the form in which it was sent."""

    status: int
    media_type: str
    body: bytes
    build: str | None = None
    """The build that answered; None for an answer that is not about the catalog."""


class StoredAnswers:
    """The stored answers of one database."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        """Use an open database."""
        self._engine = engine
        self._clock = clock

    async def get(self, account_id: int, idempotency_key: str, request_hash: str) -> StoredAnswer | None:
        """Return the earlier answer, if any. IdempotencyKeyReusedError: the key belongs to another request."""
        return await asyncio.to_thread(self.get_now, account_id, idempotency_key, request_hash)

    def get_now(self, account_id: int, idempotency_key: str, request_hash: str) -> StoredAnswer | None:
        """Get, blocking."""
        query = select(replay).where(self._is_live(account_id, idempotency_key))
        with connect_for_reads(self._engine) as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        if row.request_hash != request_hash:
            raise IdempotencyKeyReusedError(
                "the idempotency key was used for another request less than 24 hours ago; send a new key with a new request"
            )
        # Charged, but without an answer: its process died or is still at work.
        return None if row.body is None else StoredAnswer(row.status, row.media_type, bytes(row.body), row.build)

    async def put(self, account_id: int, idempotency_key: str, answer: StoredAnswer) -> None:
        """Store the answer of a charged request; the first one stays."""
        await asyncio.to_thread(self.put_now, account_id, idempotency_key, answer)

    def put_now(self, account_id: int, idempotency_key: str, answer: StoredAnswer) -> None:
        """Put, blocking."""
        # Two repeats may do the work at once. The first answer stays, so that all later repeats get the same one.
        values = {"status": answer.status, "media_type": answer.media_type, "body": answer.body, "build": answer.build}
        with self._engine.begin() as connection:
            connection.execute(replay.update().where(self._is_live(account_id, idempotency_key), replay.c.body.is_(None)).values(values))

    def _is_live(self, account_id: int, idempotency_key: str) -> ColumnElement[bool]:
        is_theirs = (replay.c.account_id == account_id) & (replay.c.idempotency_key == idempotency_key)
        return is_theirs & (replay.c.expires_unix > int(self._clock().timestamp()))
