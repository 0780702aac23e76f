"""Back up and restore the database of the accounts and the keys that seal its secrets, while servers run.

SQLite's online backup copies a SQLite file in one read transaction, which delays no writer. COPY exports PostgreSQL, all tables in one
transaction of isolation REPEATABLE READ, so the copy is the state of one moment, and programs of PostgreSQL need not be installed. A
backup holds:

  accounts.db                  SQLite
  state.json, <table>.copy     PostgreSQL: revision, columns in order and sequences; the rows in the text format of COPY
  secret.key                   the keys that seal secrets, if there are any

All files are 0600. A restore brings the revision of the backup back and migrates it then. Out of scope: what else belongs to a
backup, and its checksums (pipeline/backup.py).
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import inspect, text

from account_store.database import (
    ANSWER_SECONDS,
    BESIDE,
    BUSY_MS,
    NEWEST,
    SQLITE,
    TURN_SUFFIX,
    migrate,
    open_engine,
    parse_url,
    upgrade_to,
)
from account_store.errors import InvalidValueError, StateError, UnavailableError
from account_store.private_files import make_private_file, make_private_folder
from account_store.sqlite_file import connect_existing
from account_store.webhooks.sealing import KEYS_VARIABLE
from account_store.webhooks.secret_keys import find_key_file, read_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import URL, Connection, Engine

DATABASE_FILE = "accounts.db"
STATE_FILE = "state.json"
KEY_FILE = "secret.key"
_COPY_SUFFIX = ".copy"
_COPY_SECONDS = 3600.0
"""Longest silence of PostgreSQL in a statement of a backup or restore."""
_BLOCK_BYTES = 1 << 20


class DatabaseState(msgspec.Struct, frozen=True):
    """The description of a PostgreSQL backup: its schema revision, its files and its sequences."""

    revision: str
    tables: dict[str, list[str]]
    """Table -> columns in the order of its file. Referred tables come first."""
    sequences: dict[str, int]
    """`<table>.<column>` -> the last number that was given out. An id that was deleted is not given out again."""


def back_up_accounts(address: str, folder: Path, environment: Mapping[str, str]) -> list[Path]:
    """Write a backup of the database into `folder`, a new private folder; return its files.

    UnavailableError: the database does not answer or is damaged. InvalidValueError: the URL or the key cannot be read. OSError.
    """
    url = parse_url(address)
    make_private_folder(folder)
    files = _copy_sqlite(url, folder) if url.get_backend_name() == SQLITE else _copy_postgresql(url, folder)
    keys = environment.get(KEYS_VARIABLE, "").strip() or read_keys(find_key_file(url, environment))
    if keys:
        files.append(_write_private(folder / KEY_FILE, keys.encode() + b"\n"))
    return files


def require_restorable(address: str, folder: Path, environment: Mapping[str, str], *, replaces: bool) -> None:
    """Check a restore before anything is changed.

    InvalidValueError: backup and database do not fit. StateError: something would be overwritten, and `replaces` is false.
    """
    url = parse_url(address)
    is_sqlite = url.get_backend_name() == SQLITE
    if is_sqlite != (folder / DATABASE_FILE).is_file():
        kind = "SQLite" if (folder / DATABASE_FILE).is_file() else "PostgreSQL"
        raise InvalidValueError(f"{folder} is a backup of {kind}: restore it into a database of that kind")
    revision = _read_sqlite_revision(folder / DATABASE_FILE) if is_sqlite else _read_state(folder).revision
    if revision > NEWEST:
        raise InvalidValueError(
            f"{folder} has revision {revision}, this program knows those up to {NEWEST}: restore it with a newer program"
        )
    key = find_key_file(url, environment)
    stored = folder / KEY_FILE
    named = environment.get(KEYS_VARIABLE, "").strip()
    if not named and stored.is_file() and key.is_file() and not replaces and read_keys(key) != read_keys(stored):
        raise StateError(f"{key} holds another key than the backup: move it away, or replace it (--replace)")
    if replaces:
        return
    if is_sqlite and os.path.lexists(str(url.database)):
        raise StateError(f"{url.database} exists: name another file, or replace it (--replace)")
    if not is_sqlite:
        engine = open_engine(url)
        try:
            if _list_tables(engine):
                raise StateError(f"the database {url.database} holds tables: name an empty one, or replace them (--replace)")
        finally:
            engine.dispose()


def restore_accounts(address: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Replace the database and its key with those of a backup, then migrate it. Call `require_restorable` first."""
    url = parse_url(address)
    # Write the key first: a server that finds secrets without their key refuses to make another one, but logs an error.
    stored, key = folder / KEY_FILE, find_key_file(url, environment)
    if stored.is_file() and not environment.get(KEYS_VARIABLE, "").strip():
        if not key.parent.exists():
            make_private_folder(key.parent)
        _replace(_write_private(key.with_name(f".{key.name}.restored"), stored.read_bytes()), key)
    if url.get_backend_name() == SQLITE:
        _restore_sqlite(url, folder)
    else:
        _restore_postgresql(url, folder)
    engine = open_engine(url)
    try:
        migrate(engine)
    finally:
        engine.dispose()


def _copy_sqlite(url: URL, folder: Path) -> list[Path]:
    path = str(url.database)
    target = _write_private(folder / DATABASE_FILE, b"")
    try:
        with closing(connect_existing(path, timeout=BUSY_MS / 1000)) as source, closing(sqlite3.connect(target)) as copy:
            # Copy all pages in one step: a copy in several steps starts over whenever a server writes meanwhile.
            source.backup(copy, pages=-1)
            # A copy in the mode of the original would need a log beside it to be read.
            copy.execute("PRAGMA journal_mode=DELETE")
            (found,) = copy.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.Error as error:
        raise UnavailableError(f"{path} cannot be copied: {error}") from error
    if found != "ok":
        raise UnavailableError(f"{path} is damaged: {found}: restore an earlier backup")
    _flush(target)
    return [target]


def _restore_sqlite(url: URL, folder: Path) -> None:
    path = Path(str(url.database))
    if not path.parent.exists():
        make_private_folder(path.parent)
    fresh = path.with_name(f".{path.name}.restored")
    fresh.unlink(missing_ok=True)
    make_private_file(fresh)
    with (folder / DATABASE_FILE).open("rb") as source, fresh.open("r+b") as target:
        while block := source.read(_BLOCK_BYTES):
            target.write(block)
    _flush(fresh)
    # The log of the replaced file would be applied to the new one. Servers notice the lost log and open the database again.
    for suffix in BESIDE:
        if suffix != TURN_SUFFIX:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    _replace(fresh, path)


def _read_sqlite_revision(file: Path) -> str:
    try:
        with closing(connect_existing(str(file))) as connection:
            (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise InvalidValueError(f"{file} is not a database of accounts: {error}") from error
    return str(revision)


def _copy_postgresql(url: URL, folder: Path) -> list[Path]:
    engine = open_engine(url)
    try:
        with engine.connect().execution_options(isolation_level="REPEATABLE READ", **{ANSWER_SECONDS: _COPY_SECONDS}) as connection:
            connection.execute(text("SET TRANSACTION READ ONLY"))
            revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
            found = inspect(connection)
            tables = {
                name: [column["name"] for column in found.get_columns(name)]
                for name, _ in found.get_sorted_table_and_fkc_names()
                if name is not None
            }
            sequences = {key: _read_sequence(connection, sequence) for key, sequence in _list_sequences(connection, tables)}
            files = [_copy_table(connection, name, columns, folder) for name, columns in tables.items()]
    finally:
        engine.dispose()
    state = DatabaseState(str(revision), tables, sequences)
    return [_write_private(folder / STATE_FILE, msgspec.json.format(msgspec.json.encode(state))), *files]


def _copy_table(connection: Connection, name: str, columns: list[str], folder: Path) -> Path:
    file = _write_private(folder / f"{name}{_COPY_SUFFIX}", b"")
    with file.open("wb") as out, _get_cursor(connection) as cursor, cursor.copy(f"COPY {_quote(name, columns)} TO STDOUT") as rows:
        for block in rows:
            out.write(block)
    _flush(file)
    return file


def _restore_postgresql(url: URL, folder: Path) -> None:
    state = _read_state(folder)
    engine = open_engine(url)
    try:
        # One transaction: a restore that fails leaves the tables as they were.
        with engine.begin() as connection:
            connection = connection.execution_options(**{ANSWER_SECONDS: _COPY_SECONDS})  # noqa: PLW2901 - the same one
            for name in inspect(connection).get_table_names():
                connection.execute(text(f'DROP TABLE "{name}" CASCADE'))
            upgrade_to(connection, state.revision)
            for name, columns in state.tables.items():
                connection.execute(text(f'DELETE FROM "{name}"'))
                with (
                    (folder / f"{name}{_COPY_SUFFIX}").open("rb") as source,
                    _get_cursor(connection) as cursor,
                    cursor.copy(f"COPY {_quote(name, columns)} FROM STDIN") as rows,
                ):
                    while block := source.read(_BLOCK_BYTES):
                        rows.write(block)
            for key, sequence in _list_sequences(connection, state.tables):
                if state.sequences.get(key):
                    connection.execute(text("SELECT setval(:name, :last)"), {"name": sequence, "last": state.sequences[key]})
    finally:
        engine.dispose()


def _list_sequences(connection: Connection, tables: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    """Return (`<table>.<column>`, sequence) of each column that has a sequence."""
    ask = text("SELECT pg_get_serial_sequence(:table, :column)")
    pairs = [(name, column) for name, columns in tables.items() for column in columns]
    found = ((f"{name}.{column}", connection.scalar(ask, {"table": f'"{name}"', "column": column})) for name, column in pairs)
    return [(key, str(sequence)) for key, sequence in found if sequence is not None]


def _read_sequence(connection: Connection, sequence: str) -> int:
    """Return the last number that a sequence gave out; 0 for none."""
    value: int = connection.scalar(text(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}")) or 0
    return value


def _get_cursor(connection: Connection) -> Any:  # noqa: ANN401 - the driver is imported for PostgreSQL alone
    driven: Any = connection.connection.driver_connection
    driven.answer_seconds = _COPY_SECONDS
    return driven.cursor()


def _quote(name: str, columns: list[str]) -> str:
    listed = ", ".join(f'"{column}"' for column in columns)
    return f'"{name}" ({listed})'


def _list_tables(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return inspect(connection).get_table_names()


def _read_state(folder: Path) -> DatabaseState:
    try:
        return msgspec.json.decode((folder / STATE_FILE).read_bytes(), type=DatabaseState)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidValueError(f"{folder / STATE_FILE} cannot be read: {error}") from error


def _write_private(file: Path, content: bytes) -> Path:
    file.unlink(missing_ok=True)
    make_private_file(file)
    file.write_bytes(content)
    _flush(file)
    return file


def _replace(fresh: Path, file: Path) -> None:
    fresh.replace(file)
    _flush(file.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
