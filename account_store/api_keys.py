"""API keys: made, rotated, revoked, and checked on every request.

A key is random and shown once; the database holds its SHA-256 and a prefix by which its owner tells keys apart. A check costs a dictionary
look-up: what the database says of a key holds for KEY_CACHE_SECONDS, so a revocation, a rotation's end or a changed plan is seen by every
process within that time; the ledger asks about revocations anew, so that a revoked key is charged for nothing from the moment on. Unknown
keys are remembered as long, and no more than REMEMBERED_UNKNOWN of them, so that a flood of made-up keys costs a look-up each, not memory.

What must not live here: what a caller may do (plans.py) or has left (ledger/).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from account_store.database import new_id
from account_store.errors import InvalidValueError, StateError, TakenError, UnknownError
from account_store.schema import account, api_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine, Row

    from account_store.clock import Clock
    from account_store.plans import Plan

V = TypeVar("V")

KEY_LABEL = "mc_"
KEY_BYTES = 24
PREFIX_CHARACTERS = 10
"""What is kept of a key in the clear."""
LONGEST_KEY = 200
"""Characters; ours have 35. Longer ones are unknown without being hashed."""
USE_RESOLUTION = timedelta(minutes=1)
"""How exact `last_used_at` is: a write per request would make every read a write."""
KEY_CACHE_SECONDS = 1.0
"""The bound within which every process sees a revocation, a changed plan, a card put on file."""
ASK_AHEAD_SECONDS = 0.25
"""How long before that a key in use is looked up anew."""
REMEMBERED_KEYS = 100_000
REMEMBERED_UNKNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a live key belongs to, and what the account may do."""

    account_id: int
    key_id: int
    plan: Plan
    has_card: bool


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made: the only time that it is seen."""

    key_id: int
    key: str


@dataclass(frozen=True, slots=True)
class KeySummary:
    """A key as its owner sees it. `revoked_at` lies ahead while a rotated key is still good."""

    key_id: int
    label: str
    prefix: str
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class ApiKeys:
    """The keys of one database. Thread-safe; the methods without `async` may block on the database."""

    def __init__(
        self, engine: Engine, plan_of: Callable[[Row[Any]], Plan], clock: Clock, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """`plan_of` reads the plan out of a row of `account`; `seconds` is the clock by which checks grow stale."""
        self._engine = engine
        self._plan_of = plan_of
        self._clock = clock
        self._seconds = seconds
        self._known: dict[bytes, tuple[float, Caller]] = {}
        self._unknown: dict[bytes, float] = {}
        self._looking: dict[bytes, asyncio.Future[Caller | None]] = {}

    def create(self, account_id: int, key: str | None = None, label: str = "") -> NewKey:
        """A new key of the account. `key` is for demos and tests that need a known one; TakenError when it is in use."""
        key = key or KEY_LABEL + secrets.token_urlsafe(KEY_BYTES)
        if not PREFIX_CHARACTERS < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
            raise InvalidValueError(f"a key has {PREFIX_CHARACTERS + 1} to {LONGEST_KEY} printable ASCII characters without spaces")
        row = {"account_id": account_id, "key_hash": _digest(key).hex(), "prefix": key[:PREFIX_CHARACTERS], "label": label}
        try:
            with self._engine.begin() as connection:
                made = connection.execute(api_key.insert().values(**row, created_at=self._clock()))
        except IntegrityError as error:
            if "FOREIGN KEY" in str(error.orig).upper():
                raise UnknownError(f"there is no account {account_id}") from None
            raise TakenError("this key is in use already") from None
        self._unknown.pop(_digest(key), None)
        return NewKey(new_id(made), key)

    def rotate(self, key_id: int, overlap: timedelta = timedelta(0), account_id: int | None = None) -> NewKey:
        """A new key in the place of a live one, which stays good for `overlap` (so that clients can be moved over). Else as `revoke`."""
        with self._engine.connect() as connection:
            old = connection.execute(select(api_key).where(api_key.c.key_id == key_id)).one_or_none()
        self.revoke(key_id, account_id, at=self._clock() + overlap)
        assert old is not None  # noqa: S101 -- revoke has refused an unknown one
        return self.create(old.account_id, label=old.label)

    def revoke(self, key_id: int, account_id: int | None = None, at: datetime | None = None) -> None:
        """Make a key useless from now, or `at`. UnknownError: no such key (of that account, when given); StateError: revoked before."""
        now = self._clock()
        with self._engine.begin() as connection:
            row = connection.execute(select(api_key).where(api_key.c.key_id == key_id)).one_or_none()
            if row is None or account_id not in (None, row.account_id):
                raise UnknownError(f"there is no key {key_id}")
            if row.revoked_at is not None and row.revoked_at <= now:
                raise StateError(f"key {key_id} was revoked at {row.revoked_at:%Y-%m-%dT%H:%M:%SZ}")
            connection.execute(api_key.update().where(api_key.c.key_id == key_id).values(revoked_at=at or now))
        self.forget()

    def summaries(self, account_id: int) -> list[KeySummary]:
        """The account's keys, oldest first."""
        columns = [api_key.c[name] for name in ("key_id", "label", "prefix", "created_at", "last_used_at", "revoked_at")]
        with self._engine.connect() as connection:
            rows = connection.execute(select(*columns).where(api_key.c.account_id == account_id).order_by(api_key.c.key_id))
            return [KeySummary(*row) for row in rows]

    def forget(self) -> None:
        """Ask the database anew about every key: called after a change in this process, so that it is seen here at once."""
        self._known.clear()
        self._unknown.clear()

    def caller(self, key: str) -> Caller | None:
        """Whose key this is; None when it is unknown or revoked. Blocks on the database when the answer is not remembered."""
        digest = _digest(key) if len(key) <= LONGEST_KEY else None
        if digest is None:
            return None
        found, caller = self._remembered(digest)
        return caller if found else self._look_up(digest)

    def remembered(self, key: str) -> Caller | None:
        """Whose key this is, if the database said so within KEY_CACHE_SECONDS: most of the time, without a coroutine. In an event loop.

        Shortly before that is over it is asked anew, so that a key in steady use is always remembered: else all of its requests that are
        there would wait for the answer, once a second.
        """
        if len(key) > LONGEST_KEY:
            return None
        digest, now = _digest(key), self._seconds()
        known = self._known.get(digest)
        if known is None or known[0] <= now:
            return None
        if known[0] - now < ASK_AHEAD_SECONDS and digest not in self._looking:
            self._look_up_aside(digest)
        return known[1]

    async def authenticate(self, key: str) -> Caller | None:
        """As `caller`, for an event loop: never blocks it, and asks the database once for any number of waiting requests."""
        if len(key) > LONGEST_KEY:
            return None
        digest = _digest(key)
        found, caller = self._remembered(digest)
        if found:
            return caller
        waiting = self._looking.get(digest) or self._look_up_aside(digest)
        return await asyncio.shield(waiting)  # one caller that goes away must not take the answer from the others

    def _look_up_aside(self, digest: bytes) -> asyncio.Future[Caller | None]:
        """Look a key up in a thread."""

        def done(looked: asyncio.Future[Caller | None]) -> None:
            self._looking.pop(digest, None)
            if not looked.cancelled():
                looked.exception()  # whoever waits is told; where nobody does, the next one who asks is

        waiting = self._looking[digest] = asyncio.ensure_future(asyncio.to_thread(self._look_up, digest))
        waiting.add_done_callback(done)
        return waiting

    def _remembered(self, digest: bytes) -> tuple[bool, Caller | None]:
        now = self._seconds()
        known = self._known.get(digest)
        if known is not None and known[0] > now:
            return True, known[1]
        return self._unknown.get(digest, now) > now, None

    def _look_up(self, digest: bytes) -> Caller | None:
        stale = self._seconds() + KEY_CACHE_SECONDS  # counted from before the question: what changes while it is asked is not missed
        now = self._clock()
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            row = connection.execute(_CALLER.where(api_key.c.key_hash == digest.hex())).one_or_none()
        is_ours = row is not None and hmac.compare_digest(row.key_hash, digest.hex())
        if row is None or not is_ours or (row.revoked_at is not None and row.revoked_at <= now):
            self._known.pop(digest, None)
            _remember(self._unknown, REMEMBERED_UNKNOWN, digest, stale)
            return None
        if row.last_used_at is None or now - row.last_used_at >= USE_RESOLUTION:
            with self._engine.begin() as connection:
                connection.execute(api_key.update().where(api_key.c.key_id == row.key_id).values(last_used_at=now))
        if row.revoked_at is not None:
            stale = min(stale, self._seconds() + (row.revoked_at - now).total_seconds())
        caller = Caller(row.account_id, row.key_id, self._plan_of(row), row.has_card)
        _remember(self._known, REMEMBERED_KEYS, digest, (stale, caller))
        return caller


_CALLER = select(
    api_key.c.key_id, api_key.c.key_hash, api_key.c.last_used_at, api_key.c.revoked_at, *[c for c in account.c if c.name != "created_at"]
).join_from(api_key, account)


def _remember(memory: dict[bytes, V], most: int, digest: bytes, value: V) -> None:
    memory.pop(digest, None)
    while len(memory) >= most:
        memory.pop(next(iter(memory)), None)  # the one that was put in first
    memory[digest] = value


def _digest(key: str) -> bytes:
    """Keys are long and random, so a plain hash cannot be searched backwards; a slow one would only slow every request."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
