"""The keys that seal webhook secrets: those of the operator's environment, else one in a file, which is made at the first start.

    ACCOUNT_SECRET_KEYS        the keys themselves; no file is read
    ACCOUNT_SECRET_KEY_FILE    the file; by default `<database>-key` beside a SQLite file, else below XDG_STATE_HOME (~/.local/state)

The database records the key's fingerprint, so that a lost key, or one of another machine, is noticed before a second one seals anything.
Opening the accounts seals secrets that are stored unencrypted. Out of scope: encryption (sealing.py).
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.fernet import Fernet
from sqlalchemy import or_, select, text

from account_store.database import POSTGRESQL, connect_for_reads
from account_store.errors import InvalidValueError, StateError
from account_store.private_files import FILE_MODE, make_private_folder, narrow
from account_store.webhooks.sealing import KEYS_VARIABLE, SEALED_LABEL, Seal, split_keys
from account_store.webhooks.webhook_tables import secret_key, webhook_endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import URL, ColumnElement, Connection, Engine

    from account_store.clock import Clock

log = logging.getLogger("account_store")

KEY_FILE_VARIABLE = "ACCOUNT_SECRET_KEY_FILE"
KEY_SUFFIX = "-key"
"""Suffix of the key file beside a SQLite database."""
_LOCK = 7_418_529_002
"""Number of the PostgreSQL advisory lock under which one process at a time makes a key."""
_PURPOSE = "webhooks"
_COLUMNS = ("secret", "previous_secret")


def find_key_file(url: URL, environment: Mapping[str, str]) -> Path:
    """Return the path of the key file."""
    named = environment.get(KEY_FILE_VARIABLE)
    if named:
        return Path(named)
    if url.get_backend_name() != POSTGRESQL:
        return Path(f"{url.database}{KEY_SUFFIX}")
    # Neither user nor password: they may change, and the key must stay the same.
    place = f"{url.host or url.query.get('host', '')}:{url.port or ''}/{url.database}"
    state = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME") or "/") / ".local/state"
    return Path(state) / "music-catalog" / f"accounts-{hashlib.sha256(place.encode()).hexdigest()[:16]}{KEY_SUFFIX}"


def open_seal(engine: Engine, url: URL, environment: Mapping[str, str], clock: Clock) -> Seal:
    """Return the seal of a migrated database. InvalidValueError: the environment or the file holds no valid key.

    Without any key the seal refuses to encrypt, and the log has the remedy.
    """
    file = find_key_file(url, environment)
    named = environment.get(KEYS_VARIABLE, "").strip()
    keys = named or read_keys(file)
    if keys:
        # For its error: an invalid key is refused before the database is asked.
        Seal(keys)
        with connect_for_reads(engine) as connection:
            # The common start: nothing to write, so no write lock is taken.
            if _read_fingerprint(connection) in _compute_fingerprints(keys) and not _has_unsealed(connection):
                return Seal(keys)
    with engine.begin() as connection:
        _lock(connection)
        # Read again under the lock: another process may have made the key meanwhile.
        keys = keys or read_keys(file)
        if not keys:
            if (lost := _explain_loss(connection, file)) is not None:
                log.error("secrets of webhooks: %s", lost)
                return Seal(refusal=lost)
            try:
                keys = _make_key(file)
            except OSError as error:
                refusal = f"no key can be kept in {file} ({error}): name a file by {KEY_FILE_VARIABLE}, or keys by {KEYS_VARIABLE}"
                log.error("secrets of webhooks: %s", refusal)  # noqa: TRY400 -- a trace does not help an operator
                return Seal(refusal=refusal)
        seal = Seal(keys)
        if unreadable := _count_unreadable(connection, seal):
            where = KEYS_VARIABLE if named else str(file)
            log.error("secrets of webhooks: %d are sealed by a key that %s does not hold: add that key after a comma", unreadable, where)
        else:
            # Recorded only when this key opens everything: otherwise the next start could not notice the loss.
            _record_fingerprint(connection, keys, clock)
        _seal_unsealed(connection, seal)
        return seal


def replace_lost_key(engine: Engine, url: URL, environment: Mapping[str, str], clock: Clock) -> tuple[Path, int]:
    """Replace a key that is lost for good; return the new key's file and the number of secrets that nobody can read any more.

    StateError: the environment or the file has a key, so nothing is lost.
    """
    file = find_key_file(url, environment)
    if environment.get(KEYS_VARIABLE, "").strip():
        raise StateError(f"{KEYS_VARIABLE} names the keys: change them there")
    with engine.begin() as connection:
        _lock(connection)
        if read_keys(file):
            raise StateError(f"{file} holds a key: move it away first, if it is the wrong one")
        try:
            keys = _make_key(file)
        except OSError as error:
            raise InvalidValueError(f"{file} cannot be written: {error}") from error
        _record_fingerprint(connection, keys, clock)
        return file, _count_unreadable(connection, Seal(keys))


def read_keys(file: Path) -> str:
    """Return the keys in the file, in the form of KEYS_VARIABLE; empty without a file. InvalidValueError: it cannot be read."""
    try:
        keys = ",".join(file.read_text(encoding="ascii").split())
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValueError(f"the key of the secrets, {file}, cannot be read: {error}") from None
    if not keys:
        raise InvalidValueError(f"the key of the secrets, {file}, is empty: put the one from the backup there")
    narrow(file)
    return keys


def _make_key(file: Path) -> str:
    """Make a key in the file, atomically; return it, or the key that another process made meanwhile. OSError."""
    if not file.parent.exists():
        make_private_folder(file.parent)
    # Written and synced under another name first: no process ever reads half a key.
    fresh = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    key = Fernet.generate_key()
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as written:
            os.fchmod(written.fileno(), FILE_MODE)
            written.write(key + b"\n")
            written.flush()
            os.fsync(written.fileno())
        # A link fails when the name exists, unlike a rename: the first of several processes wins.
        with suppress(FileExistsError):
            os.link(fresh, file)
    finally:
        fresh.unlink()
    # The folder, too: without it a power loss may take the name of a key that has sealed secrets already.
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    log.info("a key for the secrets of webhooks is in %s: back it up with the database", file)
    return read_keys(file)


def _explain_loss(connection: Connection, file: Path) -> str | None:
    """Return why no key may be made: another key sealed secrets, or another machine has one. None when one may."""
    sealed = len(_list_secrets(connection, is_sealed=True))
    # A recorded fingerprint means that another machine may hold the key, even before anything is sealed.
    is_shared = connection.dialect.name == POSTGRESQL and _read_fingerprint(connection) is not None
    if not sealed and not is_shared:
        return None
    return (
        f"their key, {file}, is not there, and {sealed} of them are sealed by it. Put it back, from the backup or from the machine that "
        f"made it, or name it by {KEYS_VARIABLE}. Lost for good: `python -m account_store replace-secret-key`, then rotate each webhook"
    )


def _lock(connection: Connection) -> None:
    if connection.dialect.name == POSTGRESQL:  # on SQLite the transaction is the only one that writes
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def _compute_fingerprints(keys: str) -> list[str]:
    """Return hashes of the keys, which reveal nothing of random keys."""
    return [hashlib.sha256(key.encode()).hexdigest()[:32] for key in split_keys(keys)]


def _read_fingerprint(connection: Connection) -> str | None:
    found: str | None = connection.scalar(select(secret_key.c.fingerprint).where(secret_key.c.purpose == _PURPOSE))
    return found


def _record_fingerprint(connection: Connection, keys: str, clock: Clock) -> None:
    """Record the fingerprint of the first key, which seals."""
    values = {"fingerprint": _compute_fingerprints(keys)[0], "noted_at": clock()}
    if _read_fingerprint(connection) is None:
        connection.execute(secret_key.insert().values(purpose=_PURPOSE, **values))
    else:
        connection.execute(secret_key.update().where(secret_key.c.purpose == _PURPOSE).values(**values))


def _has_unsealed(connection: Connection) -> bool:
    return connection.execute(select(webhook_endpoint.c.endpoint_id).where(_is_unsealed()).limit(1)).first() is not None


def _is_unsealed() -> ColumnElement[bool]:
    """Return a condition: the endpoint has a secret that is not sealed (those of deleted endpoints are empty)."""
    columns = [webhook_endpoint.c[name] for name in _COLUMNS]
    return or_(*[(column != "") & column.not_like(f"{SEALED_LABEL}%") for column in columns])


def _list_secrets(connection: Connection, *, is_sealed: bool) -> list[str]:
    rows = connection.execute(select(*[webhook_endpoint.c[name] for name in _COLUMNS]))
    return [one for row in rows for one in row if one and one.startswith(SEALED_LABEL) == is_sealed]


def _count_unreadable(connection: Connection, seal: Seal) -> int:
    return sum(not seal.can_open(stored) for stored in _list_secrets(connection, is_sealed=True))


def _seal_unsealed(connection: Connection, seal: Seal) -> None:
    # Locked: a rotation at this moment must not be overwritten by the old secret.
    rows = connection.execute(select(webhook_endpoint).where(_is_unsealed()).with_for_update()).all()
    for row in rows:
        stored = {name: getattr(row, name) for name in _COLUMNS}
        values = {name: seal.close(one) for name, one in stored.items() if one and not one.startswith(SEALED_LABEL)}
        connection.execute(webhook_endpoint.update().where(webhook_endpoint.c.endpoint_id == row.endpoint_id).values(values))
    if rows:
        log.info("secrets of webhooks: %d were stored unencrypted and are sealed now", len(rows))
