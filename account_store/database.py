"""Opens the database of the accounts by URL and brings its tables up to date.

SQLite (`sqlite:///accounts.db`) or PostgreSQL (`postgresql://...`, by psycopg): all that differs between them outside of the ledger.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError

from account_store.errors import InvalidValueError, UnavailableError

if TYPE_CHECKING:
    from psycopg import Cursor
    from sqlalchemy import URL, Connection, CursorResult, Engine, ExceptionContext
    from sqlalchemy.engine import ExecutionContext

SQLITE = "sqlite"
POSTGRESQL = "postgresql"
BUSY_MS = 10_000
"""How long a SQLite writer waits for another process's transaction; they last milliseconds."""
IN_BINARY = "answer_in_binary"
"""Execution option of queries for many bytes: as text, PostgreSQL would send two digits for each byte, half of the time of reading them."""
NEWEST = "0006"
"""The newest revision in `migrations/versions`: known here so that opening a database that has it need not import Alembic (0.2 s)."""
_MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 7_418_529_001
"""Number of the PostgreSQL advisory lock under which one process at a time migrates."""


def parse_url(url: str) -> URL:
    """The URL with the driver that we ship. InvalidValueError when it names another database or no file."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidValueError(f"{url!r} is no database URL; expected sqlite:///<file> or postgresql://<user>@<host>/<name>") from None
    backend = parsed.get_backend_name()
    if backend == SQLITE and (parsed.database or ":memory:") == ":memory:":
        raise InvalidValueError("accounts in memory would be lost and seen by one connection only; name a file: sqlite:///accounts.db")
    if backend not in (SQLITE, POSTGRESQL):
        raise InvalidValueError(f"{backend!r} is no database for accounts; use sqlite or postgresql")
    return parsed.set(drivername="postgresql+psycopg") if backend == POSTGRESQL else parsed


def open_engine(url: URL) -> Engine:
    """Connections for everything but the ledger's own; a database that does not answer raises UnavailableError wherever it is asked.

    Transactions on SQLite take the write lock at once: they never fail half-way.
    """
    if url.get_backend_name() == POSTGRESQL:
        engine = create_engine(url, hide_parameters=True, pool_pre_ping=True)
        event.listen(engine, "before_cursor_execute", _answer_in_binary)
    else:
        Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(url, hide_parameters=True, connect_args={"timeout": BUSY_MS / 1000})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    event.listen(engine, "handle_error", _tell_unavailable)
    return engine


def _answer_in_binary(
    _connection: Connection, cursor: Cursor[Any], _statement: str, _parameters: object, context: ExecutionContext | None, _is_many: object
) -> None:
    if context is not None and context.execution_options.get(IN_BINARY):
        cursor.format = type(cursor.format).BINARY  # the driver is imported for PostgreSQL alone


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGINs come too late and are deferred
    _write_ahead(connection)
    for pragma in ("foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Processes that open a new file at once find it locked, and for this statement SQLite does not wait by itself."""
    until = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _tell_unavailable(context: ExceptionContext) -> None:
    if isinstance(context.sqlalchemy_exception, (OperationalError, InterfaceError)) and not context.is_pre_ping:
        raise UnavailableError(
            f"the database of the accounts does not answer: {context.original_exception}"
        ) from context.original_exception


def reading(engine: Engine) -> Connection:
    """A connection for reads alone, outside of a transaction: on SQLite one would take the write lock, which others wait for."""
    return engine.connect().execution_options(isolation_level="AUTOCOMMIT")


def new_id(inserted: CursorResult[Any]) -> int:
    """The key that the database gave to the row just inserted."""
    key = inserted.inserted_primary_key
    assert key is not None  # noqa: S101 -- one row was inserted
    return int(key[0])


def migrate(engine: Engine) -> str:
    """Bring the tables to the newest revision, from empty or any earlier one; the revision. Any number of processes may call it at once."""
    if revision(engine) != NEWEST:
        _upgrade(engine)
    return NEWEST


def revision(engine: Engine) -> str | None:
    """The revision that the tables have; None when there are none, or those of the first version."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        number: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return number


def _upgrade(engine: Engine) -> None:
    from alembic import command  # noqa: PLC0415 -- see NEWEST
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    with engine.begin() as connection:  # on SQLite this takes the write lock: who comes second finds nothing to do
        if engine.dialect.name == POSTGRESQL:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
