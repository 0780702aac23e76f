"""Opens the database of the accounts by URL and brings its tables up to date.

SQLite (`sqlite:///accounts.db`) or PostgreSQL (`postgresql://...`, by psycopg): all that differs between them outside of the ledger.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DisconnectionError, InterfaceError, OperationalError

from account_store.errors import InvalidValueError, UnavailableError
from account_store.private_files import narrow
from account_store.sqlite_file import OpenFile, connect_existing, make_file

if TYPE_CHECKING:
    from psycopg import Cursor
    from sqlalchemy import URL, Connection, CursorResult, Engine, ExceptionContext
    from sqlalchemy.engine import ExecutionContext
    from sqlalchemy.pool import ConnectionPoolEntry

log = logging.getLogger("account_store")

SQLITE = "sqlite"
POSTGRESQL = "postgresql"
BUSY_MS = 10_000
"""How long a SQLite writer waits for another process's transaction; they last milliseconds."""
IN_BINARY = "answer_in_binary"
"""Execution option of queries for many bytes: as text, PostgreSQL would send two digits for each byte, half of the time of reading them."""
ANSWER_SECONDS = "answer_seconds"
"""Execution option: how long PostgreSQL may be silent at least."""
NEWEST = "0007"
"""The newest revision in `migrations/versions`: known here so that opening a database that has it need not import Alembic (0.2 s)."""
TURN_SUFFIX = "-turn"
"""Ends the name of the file by which processes take turns (ledger/sqlite_books.py)."""
BESIDE = ("-wal", "-shm", "-journal", TURN_SUFFIX)
"""Files that may lie beside a SQLite file bear its name with one of these behind."""
_MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_SECONDS = 3600.0
"""Bounds each statement that changes tables, and the wait for another process that does."""
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
        engine = _open_postgresql(url)
    else:
        path = str(url.database)
        _keep_private(Path(path))
        engine = create_engine(url, hide_parameters=True, connect_args={"timeout": BUSY_MS / 1000})
        event.listen(engine, "do_connect", lambda _dialect, _record, _address, options: connect_existing(path, **options))
        event.listen(engine, "connect", lambda _connection, record: record.info.update(file=OpenFile(path)))
        event.listen(engine, "checkout", _look_at_file)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    event.listen(engine, "handle_error", _tell_unavailable)
    return engine


def _open_postgresql(url: URL) -> Engine:
    from account_store import postgresql  # noqa: PLC0415 - the driver is imported for PostgreSQL alone

    seconds, outage = postgresql.answer_seconds(), postgresql.Outage()
    pool = postgresql.pool_of(outage, seconds)
    engine = create_engine(url, hide_parameters=True, pool_pre_ping=True, poolclass=pool, pool_timeout=seconds)

    def connect(_dialect: object, _record: object, address: tuple[str, ...], parameters: dict[str, Any]) -> postgresql.PatientConnection:
        return postgresql.connect(outage, seconds, *address, **parameters)

    def set_limit(
        connection: Connection, _cursor: object, _statement: str, _parameters: object, context: ExecutionContext | None, _is_many: object
    ) -> None:
        options = {} if context is None else context.execution_options
        least = postgresql.LONG_ANSWER_SECONDS if options.get(IN_BINARY) else options.get(ANSWER_SECONDS, 0.0)
        driven: postgresql.PatientConnection = connection.connection.driver_connection  # type: ignore[assignment]
        driven.answer_seconds = max(seconds, least)

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "before_cursor_execute", _answer_in_binary)
    event.listen(engine, "before_cursor_execute", set_limit)
    return engine


def _keep_private(database: Path) -> None:
    """The file and what lies beside it. SQLite gives the files that it makes the rights of the database."""
    with suppress(OSError):  # of a file that cannot be made SQLite says why
        make_file(database)
    for suffix in ("", *BESIDE):
        narrow(database.with_name(database.name + suffix))


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


def _look_at_file(_connection: object, record: ConnectionPoolEntry, _proxy: object) -> None:
    fault = record.info["file"].fault()
    if fault is not None:
        log.error("the database of the accounts is opened anew: %s", fault)
        raise DisconnectionError(fault)


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
    error = context.sqlalchemy_exception
    # Damage is a plain DatabaseError of SQLite's; its subclasses are mistakes in what is asked.
    if (isinstance(error, (OperationalError, InterfaceError)) or type(error) is DatabaseError) and not context.is_pre_ping:
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
        connection = connection.execution_options(**{ANSWER_SECONDS: _MIGRATION_SECONDS})  # noqa: PLW2901 - the same one
        if engine.dialect.name == POSTGRESQL:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
