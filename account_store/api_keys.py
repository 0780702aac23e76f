"""API keys: creation, rotation, revocation, and the check of every request.

A key is random and shown once. The database holds its SHA-256 and a prefix, by which its owner recognises it. A check costs a dictionary
look-up: an answer of the database is cached for KEY_CACHE_SECONDS, so every process sees a revocation or a changed plan within that time.
The ledger asks for revocations itself: a revoked key is charged for nothing from that moment on. Unknown keys are cached as long, at most
CACHED_UNKNOWN of them, so that a flood of invented keys costs a look-up each, but no memory.

Out of scope: the rights of a caller (plans.py) and their credits (ledger/).
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

from account_store.database import connect_for_reads, get_new_id
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
"""Characters of a key that are stored in the clear."""
LONGEST_KEY = 200
"""Characters; ours have 35. Longer keys are unknown without a hash."""
USE_RESOLUTION = timedelta(minutes=1)
"""Resolution of `last_used_at`: an exact one would make every read a write."""
KEY_CACHE_SECONDS = 1.0
"""Time within which every process sees a revocation, a changed plan or a changed card."""
ASK_AHEAD_SECONDS = 0.25
"""Time before the expiry of a cache entry at which a key in use is looked up again."""
CACHED_KEYS = 100_000
CACHED_UNKNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a live key, and the account's rights."""

    account_id: int
    key_id: int
    plan: Plan
    has_card: bool


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key, which is shown only here."""

    key_id: int
    key: str


@dataclass(frozen=True, slots=True)
class KeySummary:
    """A key in its owner's view. `revoked_at` is in the future while a rotated key is still valid."""

    key_id: int
    label: str
    prefix: str
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class ApiKeys:
    """The keys of one database. Thread-safe; the methods without `async` may block on the database."""

    def __init__(
        self, engine: Engine, read_plan: Callable[[Row[Any]], Plan], clock: Clock, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """Read plans from rows of `account` by `read_plan`; cache entries expire by the clock `seconds`."""
        self._engine = engine
        self._read_plan = read_plan
        self._clock = clock
        self._seconds = seconds
        self._known: dict[bytes, tuple[float, Caller]] = {}
        self._unknown: dict[bytes, float] = {}
        self._pending: dict[bytes, asyncio.Future[Caller | None]] = {}

    def create(self, account_id: int, key: str | None = None, label: str = "") -> NewKey:
        """Create a key of the account. `key` serves demos and tests that need a known one. TakenError: it is in use."""
        key = key or KEY_LABEL + secrets.token_urlsafe(KEY_BYTES)
        if not PREFIX_CHARACTERS < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
            raise InvalidValueError(
                f"a key has {PREFIX_CHARACTERS + 1} to {LONGEST_KEY} printable ASCII characters without spaces, got {len(key)} characters"
            )
        row = {"account_id": account_id, "key_hash": _digest(key).hex(), "prefix": key[:PREFIX_CHARACTERS], "label": label}
        try:
            with self._engine.begin() as connection:
                inserted = connection.execute(api_key.insert().values(**row, created_at=self._clock()))
        except IntegrityError as error:
            # SQLAlchemy has one class for both violations; the messages of both drivers name the kind.
            if "FOREIGN KEY" in str(error.orig).upper():
                raise UnknownError(f"there is no account {account_id}") from None
            raise TakenError("this key is in use already; choose another one") from None
        # A key that was tried before it existed is cached as unknown for up to KEY_CACHE_SECONDS.
        self._unknown.pop(_digest(key), None)
        return NewKey(get_new_id(inserted), key)

    def rotate(self, key_id: int, overlap: timedelta = timedelta(0), account_id: int | None = None) -> NewKey:
        """Create a key in place of a live one, which stays valid for `overlap` so that clients can move. Errors: see `revoke`."""
        with self._engine.connect() as connection:
            old = connection.execute(select(api_key).where(api_key.c.key_id == key_id)).one_or_none()
        self.revoke(key_id, account_id, at=self._clock() + overlap)
        assert old is not None  # noqa: S101 -- revoke has refused an unknown one
        return self.create(old.account_id, label=old.label)

    def revoke(self, key_id: int, account_id: int | None = None, at: datetime | None = None) -> None:
        """Revoke a key now, or `at`. UnknownError: no such key (of that account, when given). StateError: it is revoked already."""
        now = self._clock()
        with self._engine.begin() as connection:
            row = connection.execute(select(api_key).where(api_key.c.key_id == key_id)).one_or_none()
            if row is None or account_id not in (None, row.account_id):
                raise UnknownError(f"there is no key {key_id}")
            if row.revoked_at is not None and row.revoked_at <= now:
                raise StateError(f"key {key_id} was revoked at {row.revoked_at:%Y-%m-%dT%H:%M:%SZ}")
            connection.execute(api_key.update().where(api_key.c.key_id == key_id).values(revoked_at=at or now))
        self.forget()

    def list_summaries(self, account_id: int) -> list[KeySummary]:
        """Return the account's keys, oldest first."""
        columns = [api_key.c[name] for name in ("key_id", "label", "prefix", "created_at", "last_used_at", "revoked_at")]
        with self._engine.connect() as connection:
            rows = connection.execute(select(*columns).where(api_key.c.account_id == account_id).order_by(api_key.c.key_id))
            return [KeySummary(*row) for row in rows]

    def forget(self) -> None:
        """Clear the cache, so that a change by this process is seen here at once."""
        self._known.clear()
        self._unknown.clear()

    def find_caller(self, key: str) -> Caller | None:
        """Return the owner of a key; None when it is unknown or revoked. Blocks on the database when the key is not cached."""
        digest = _digest(key) if len(key) <= LONGEST_KEY else None
        if digest is None:
            return None
        found, caller = self._find_cached(digest)
        return caller if found else self._look_up(digest)

    def find_cached_caller(self, key: str) -> Caller | None:
        """Return the owner of a cached key, without a coroutine; None when it is not cached. Call it in an event loop.

        Shortly before an entry expires the key is looked up again, so that a key in steady use is always cached. Otherwise all of its
        pending requests would wait for the database once a second.
        """
        if len(key) > LONGEST_KEY:
            return None
        digest, now = _digest(key), self._seconds()
        known = self._known.get(digest)
        if known is None or known[0] <= now:
            return None
        # Look up ahead of time. Otherwise all requests of a busy key would wait for the database once a second.
        if known[0] - now < ASK_AHEAD_SECONDS and digest not in self._pending:
            self._look_up_in_thread(digest)
        return known[1]

    async def authenticate(self, key: str) -> Caller | None:
        """Return the owner of a key, for an event loop. Asks the database once for any number of waiting requests."""
        if len(key) > LONGEST_KEY:
            return None
        digest = _digest(key)
        found, caller = self._find_cached(digest)
        if found:
            return caller
        waiting = self._pending.get(digest) or self._look_up_in_thread(digest)
        # A client that goes away must not cancel the look-up of the others.
        return await asyncio.shield(waiting)

    def _look_up_in_thread(self, digest: bytes) -> asyncio.Future[Caller | None]:
        """Look a key up in a thread."""

        def finish(lookup: asyncio.Future[Caller | None]) -> None:
            self._pending.pop(digest, None)
            # Waiting callers get the error. Nobody waits for an early look-up: asyncio would log its error as never
            # retrieved.
            if not lookup.cancelled():
                lookup.exception()

        waiting = self._pending[digest] = asyncio.ensure_future(asyncio.to_thread(self._look_up, digest))
        waiting.add_done_callback(finish)
        return waiting

    def _find_cached(self, digest: bytes) -> tuple[bool, Caller | None]:
        now = self._seconds()
        known = self._known.get(digest)
        if known is not None and known[0] > now:
            return True, known[1]
        return self._unknown.get(digest, now) > now, None

    def _look_up(self, digest: bytes) -> Caller | None:
        # The lifetime counts from before the query, so a change committed during the query is seen within KEY_CACHE_SECONDS.
        stale = self._seconds() + KEY_CACHE_SECONDS
        now = self._clock()
        with connect_for_reads(self._engine) as connection:
            row = connection.execute(_CALLER.where(api_key.c.key_hash == digest.hex())).one_or_none()
        # Constant time, although the database has compared the hash already.
        is_equal = row is not None and hmac.compare_digest(row.key_hash, digest.hex())
        if row is None or not is_equal or (row.revoked_at is not None and row.revoked_at <= now):
            self._known.pop(digest, None)
            _cache(self._unknown, CACHED_UNKNOWN, digest, stale)
            return None
        if row.last_used_at is None or now - row.last_used_at >= USE_RESOLUTION:
            with self._engine.begin() as connection:
                connection.execute(api_key.update().where(api_key.c.key_id == row.key_id).values(last_used_at=now))
        # A rotated key ends at a known moment: its entry must not outlive it.
        if row.revoked_at is not None:
            stale = min(stale, self._seconds() + (row.revoked_at - now).total_seconds())
        caller = Caller(row.account_id, row.key_id, self._read_plan(row), row.has_card)
        _cache(self._known, CACHED_KEYS, digest, (stale, caller))
        return caller


_CALLER = select(
    api_key.c.key_id, api_key.c.key_hash, api_key.c.last_used_at, api_key.c.revoked_at, *[c for c in account.c if c.name != "created_at"]
).join_from(api_key, account)


def _cache(memory: dict[bytes, V], most: int, digest: bytes, value: V) -> None:
    # Remove the entry first, so that the new one goes to the end: the first entry of a dictionary is the oldest.
    memory.pop(digest, None)
    while len(memory) >= most:
        memory.pop(next(iter(memory)), None)  # the oldest entry
    memory[digest] = value


def _digest(key: str) -> bytes:
    """Hash a key. Keys are long and random: a plain hash cannot be reversed, and a slow one would slow every request."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
