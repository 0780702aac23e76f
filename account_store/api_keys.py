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
import ipaddress
import secrets
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from account_store.audit import record
from account_store.clock import format_rfc3339
from account_store.database import connect_for_reads, get_new_id
from account_store.errors import InvalidValueError, StateError, TakenError, UnknownError
from account_store.key_rights import ALL_SCOPES, UNRESTRICTED, KeyRights, Network
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
    scopes: frozenset[str] = ALL_SCOPES
    networks: tuple[Network, ...] = ()
    """Addresses that may use the key; none: all."""
    is_test: bool = False


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
    rights: KeyRights

    def is_live(self, now: datetime) -> bool:
        """Return whether requests may use it."""
        return all(end is None or end > now for end in (self.revoked_at, self.rights.expires_at))


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

    def create(self, account_id: int, key: str | None = None, label: str = "", rights: KeyRights = UNRESTRICTED) -> NewKey:
        """Create a key of the account. `key` serves demos and tests that need a known one. TakenError: it is in use."""
        key = key or KEY_LABEL + secrets.token_urlsafe(KEY_BYTES)
        if not PREFIX_CHARACTERS < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
            raise InvalidValueError(
                f"a key has {PREFIX_CHARACTERS + 1} to {LONGEST_KEY} printable ASCII characters without spaces, got {len(key)} characters"
            )
        row = {"account_id": account_id, "key_hash": _digest(key).hex(), "prefix": key[:PREFIX_CHARACTERS], "label": label}
        now = self._clock()
        if rights.expires_at is not None and rights.expires_at <= now:
            raise InvalidValueError(f"a key must expire later than now, got {format_rfc3339(rights.expires_at)}")
        try:
            with self._engine.begin() as connection:
                inserted = connection.execute(api_key.insert().values(**row, **_build_rights_columns(rights), created_at=now))
                record(connection, account_id, "key.created", f"key {get_new_id(inserted)}", at=now, detail=label)
        except IntegrityError as error:
            # SQLAlchemy has one class for both violations; the messages of both drivers name the kind.
            if "FOREIGN KEY" in str(error.orig).upper():
                raise UnknownError(f"there is no account {account_id}") from None
            raise TakenError("this key is in use already; choose another one") from None
        # A key that was tried before it existed is cached as unknown for up to KEY_CACHE_SECONDS.
        self._unknown.pop(_digest(key), None)
        return NewKey(get_new_id(inserted), key)

    def rotate(self, key_id: int, overlap: timedelta = timedelta(0), account_id: int | None = None) -> NewKey:
        """Create a key in place of a live one, with its rights; the old one stays valid for `overlap`. Errors: see `revoke`."""
        with self._engine.connect() as connection:
            old = connection.execute(select(api_key).where(api_key.c.key_id == key_id)).one_or_none()
        self.revoke(key_id, account_id, at=self._clock() + overlap)
        assert old is not None  # noqa: S101 -- revoke has refused an unknown one
        return self.create(old.account_id, label=old.label, rights=_read_rights(old))

    def revoke(self, key_id: int, account_id: int | None = None, at: datetime | None = None) -> None:
        """Revoke a key now, or `at`. UnknownError: no such key (of that account, when given). StateError: it ended already."""
        now = self._clock()
        with self._engine.begin() as connection:
            row = connection.execute(select(api_key).where(api_key.c.key_id == key_id)).one_or_none()
            if row is None or account_id not in (None, row.account_id):
                raise UnknownError(f"there is no key {key_id}")
            if row.revoked_at is not None and row.revoked_at <= now:
                raise StateError(f"key {key_id} was revoked at {format_rfc3339(row.revoked_at)}")
            if row.expires_at is not None and row.expires_at <= now:
                raise StateError(f"key {key_id} expired at {format_rfc3339(row.expires_at)}")
            connection.execute(api_key.update().where(api_key.c.key_id == key_id).values(revoked_at=at or now))
            ends = f"ends at {format_rfc3339(at)}" if at is not None and at > now else ""
            record(connection, row.account_id, "key.revoked", f"key {key_id}", at=now, detail=ends)
        self.forget()

    def list_summaries(self, account_id: int) -> list[KeySummary]:
        """Return the account's keys, oldest first."""
        query = select(api_key).where(api_key.c.account_id == account_id).order_by(api_key.c.key_id)
        with self._engine.connect() as connection:
            return [
                KeySummary(row.key_id, row.label, row.prefix, row.created_at, row.last_used_at, row.revoked_at, _read_rights(row))
                for row in connection.execute(query)
            ]

    def forget(self) -> None:
        """Clear the cache, so that a change by this process is seen here at once."""
        self._known.clear()
        self._unknown.clear()

    def find_caller(self, key: str) -> Caller | None:
        """Return the owner of a key; None when it is unknown or has ended. Blocks on the database when the key is not cached."""
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
        ends = [] if row is None else [end for end in (row.revoked_at, row.expires_at) if end is not None]
        if row is None or not is_equal or any(end <= now for end in ends):
            self._known.pop(digest, None)
            _cache(self._unknown, CACHED_UNKNOWN, digest, stale)
            return None
        if row.last_used_at is None or now - row.last_used_at >= USE_RESOLUTION:
            with self._engine.begin() as connection:
                connection.execute(api_key.update().where(api_key.c.key_id == row.key_id).values(last_used_at=now))
        # A key that expires or was rotated ends at a known moment: its entry must not outlive it.
        if ends:
            stale = min(stale, self._seconds() + (min(ends) - now).total_seconds())
        rights = _read_rights(row)
        networks = tuple(ipaddress.ip_network(text) for text in rights.networks)
        caller = Caller(row.account_id, row.key_id, self._read_plan(row), row.has_card, rights.scopes, networks, rights.is_test)
        _cache(self._known, CACHED_KEYS, digest, (stale, caller))
        return caller


_RIGHTS = ("scopes", "expires_at", "networks", "is_test")
_CALLER = select(
    *[api_key.c[name] for name in ("key_id", "key_hash", "last_used_at", "revoked_at", *_RIGHTS)],
    *[c for c in account.c if c.name != "created_at"],
).join_from(api_key, account)


def _build_rights_columns(rights: KeyRights) -> dict[str, object]:
    scopes = None if rights.scopes == ALL_SCOPES else " ".join(sorted(rights.scopes))
    return {"scopes": scopes, "expires_at": rights.expires_at, "networks": " ".join(rights.networks), "is_test": rights.is_test}


def _read_rights(row: Row[Any]) -> KeyRights:
    scopes = ALL_SCOPES if row.scopes is None else frozenset(row.scopes.split())
    return KeyRights(scopes, row.expires_at, tuple(row.networks.split()), row.is_test)


def _cache(memory: dict[bytes, V], most: int, digest: bytes, value: V) -> None:
    # Remove the entry first, so that the new one goes to the end: the first entry of a dictionary is the oldest.
    memory.pop(digest, None)
    while len(memory) >= most:
        memory.pop(next(iter(memory)), None)  # the oldest entry
    memory[digest] = value


def _digest(key: str) -> bytes:
    """Hash a key. Keys are long and random: a plain hash cannot be reversed, and a slow one would slow every request."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
