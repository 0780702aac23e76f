"""Accounts and their API keys: create, look up, revoke. The only mutable state of the service; the catalog is never touched from here."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, event, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError

from account_store.schema import account, api_key, metadata

if TYPE_CHECKING:
    from sqlalchemy import Engine

KEY_LABEL = "mc_"
KEY_BYTES = 24
PREFIX_CHARACTERS = 10
"""What is kept of a key in the clear, so that its owner can tell keys apart."""
USE_RESOLUTION = timedelta(minutes=1)
"""How exact `last_used_at` is: a write per request would make every read a write."""


class AccountError(Exception):
    """A request on accounts or keys that cannot be met; the message says which and why."""


@dataclass(frozen=True)
class Caller:
    """Who a valid key belongs to."""

    key_id: int
    account_id: int


@dataclass(frozen=True)
class KeySummary:
    """A key as its owner sees it; the key itself is never stored."""

    key_id: int
    prefix: str
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class AccountStore:
    """One database of accounts. `url` is an SQLAlchemy URL, e.g. `sqlite:///accounts.db`, `postgresql+psycopg://...`."""

    def __init__(self, url: str) -> None:
        """Open the database and create what tables it lacks."""
        self._engine = _engine(url)
        metadata.create_all(self._engine)

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def create_account(self, name: str) -> int:
        """A new account; AccountError when the name is taken."""
        try:
            with self._engine.begin() as connection:
                result = connection.execute(account.insert().values(name=name, created_at=_now()))
        except IntegrityError:
            raise AccountError(f"there is an account named {name!r} already") from None
        return int(result.inserted_primary_key[0])  # type: ignore[index]

    def account_named(self, name: str) -> int:
        """The id of an account; AccountError when there is none of that name."""
        with self._engine.connect() as connection:
            found = connection.scalar(select(account.c.account_id).where(account.c.name == name))
        if found is None:
            raise AccountError(f"there is no account named {name!r}")
        return int(found)

    def create_key(self, account_id: int, key: str | None = None) -> str:
        """A new API key of the account, shown here once and never again. `key` is for demos and tests that need a known one."""
        key = key or KEY_LABEL + secrets.token_urlsafe(KEY_BYTES)
        row = {"account_id": account_id, "key_hash": _hash(key), "prefix": key[:PREFIX_CHARACTERS], "created_at": _now()}
        try:
            with self._engine.begin() as connection:
                connection.execute(api_key.insert().values(row))
        except IntegrityError:
            raise AccountError("this key is in use already") from None
        return key

    def caller(self, key: str) -> Caller | None:
        """Whose key this is; None when it is unknown or revoked. Notes the time of use."""
        columns = (api_key.c.key_id, api_key.c.account_id, api_key.c.last_used_at)
        query = select(*columns).where(api_key.c.key_hash == _hash(key), api_key.c.revoked_at.is_(None))
        with self._engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        now = _now()
        if row.last_used_at is None or now - row.last_used_at >= USE_RESOLUTION:
            with self._engine.begin() as connection:
                connection.execute(api_key.update().where(api_key.c.key_id == row.key_id).values(last_used_at=now))
        return Caller(row.key_id, row.account_id)

    def keys(self, account_id: int) -> list[KeySummary]:
        """The account's keys, oldest first."""
        columns = (api_key.c.key_id, api_key.c.prefix, api_key.c.created_at, api_key.c.last_used_at, api_key.c.revoked_at)
        with self._engine.connect() as connection:
            rows = connection.execute(select(*columns).where(api_key.c.account_id == account_id).order_by(api_key.c.key_id))
            return [KeySummary(*row) for row in rows]

    def revoke_key(self, key_id: int) -> None:
        """Make a key useless from now on; AccountError when there is no such live key."""
        change = api_key.update().where(api_key.c.key_id == key_id, api_key.c.revoked_at.is_(None)).values(revoked_at=_now())
        with self._engine.begin() as connection:
            if connection.execute(change).rowcount == 0:
                raise AccountError(f"there is no live key {key_id}")


def _engine(url: str) -> Engine:
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return create_engine(parsed, pool_pre_ping=True)
    if parsed.database and parsed.database != ":memory:":
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed)

    @event.listens_for(engine, "connect")
    def prepare(connection: object, _record: object) -> None:
        cursor = connection.cursor()  # type: ignore[attr-defined]
        for pragma in ("journal_mode=WAL", "foreign_keys=ON", "busy_timeout=5000"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    return engine


def _hash(key: str) -> str:
    """Keys are long and random, so a plain hash cannot be searched backwards; a slow one would only slow every request."""
    return hashlib.sha256(key.encode()).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)
