"""Opens the database of the accounts by URL and brings its tables up to date.

SQLite (`sqlite:///accounts.db`) or PostgreSQL (`postgresql://...`, by psycopg). Their differences outside of the ledger are here.
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
"""Longest wait of a SQLite writer for another process's transaction, which lasts milliseconds."""
_RETRY_SECONDS = 0.001
"""SQLite itself waits ever longer between its tries, up to 0.1 s. Processes that charge pass the write lock on within 0.1 ms, so such a
waiter found it taken for seconds, and after BUSY_MS the database was `locked`: of 63 claims beside four such processes one waited 3.2 s."""
_PRIMARY_CODE = 0xFF
"""SQLite's extended codes have the primary one in these bits."""
IN_BINARY = "answer_in_binary"
"""Execution option of queries for many bytes. As text, PostgreSQL would send two digits for each byte: half of the reading time."""
ANSWER_SECONDS = "answer_seconds"
"""Execution option: seconds of silence that PostgreSQL is allowed at least."""
NEWEST = "0013"
"""The newest revision in `migrations/versions`. It is repeated here because importing Alembic takes 0.2 s at every start."""
TURN_SUFFIX = "-turn"
"""Suffix of the file by which processes take turns (ledger/sqlite_ledger.py)."""
BESIDE = ("-wal", "-shm", "-journal", TURN_SUFFIX)
"""Suffixes of files that may be beside a SQLite file."""
_MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_SECONDS = 3600.0
"""Limit of each statement that changes tables, and of the wait for another process that does."""
_MIGRATION_LOCK = 7_418_529_001
"""Number of the PostgreSQL advisory lock under which one process at a time migrates."""


def parse_url(url: str) -> URL:
    """Parse a URL and set the driver that we ship. InvalidValueError: it names another database, or no file."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidValueError(f"{url!r} is not a database URL; expected sqlite:///<file> or postgresql://<user>@<host>/<name>") from None
    backend = parsed.get_backend_name()
    if backend == SQLITE and (parsed.database or ":memory:") == ":memory:":
        raise InvalidValueError("accounts in memory would be lost and seen by one connection only; name a file: sqlite:///accounts.db")
    if backend not in (SQLITE, POSTGRESQL):
        raise InvalidValueError(f"{backend!r} is not a database for accounts; use sqlite or postgresql")
    return parsed.set(drivername="postgresql+psycopg") if backend == POSTGRESQL else parsed


def open_engine(url: URL) -> Engine:
    """Open an engine for everything but the ledger. Each use raises UnavailableError while the database does not answer.

    Transactions on SQLite take the write lock at their start, so they never fail half-way.
    """
    if url.get_backend_name() == POSTGRESQL:
        engine = _open_postgresql(url)
    else:
        path = str(url.database)
        if Path(path).is_dir():
            raise InvalidValueError(f"{path} is a folder; name a file: sqlite:///{path.rstrip('/')}/accounts.db")
        _keep_private(Path(path))
        # hide_parameters: errors reach logs, and parameters hold e-mails and hashes.
        engine = create_engine(url, hide_parameters=True, connect_args={"timeout": BUSY_MS / 1000})
        event.listen(engine, "do_connect", lambda _dialect, _record, _address, options: connect_existing(path, **options))
        # The order matters: the file is recorded before any statement could make a log.
        event.listen(engine, "connect", lambda _connection, record: record.info.update(file=OpenFile(path)))
        # At each checkout, because the file may vanish while connections are in the pool. It costs one `os.stat`.
        event.listen(engine, "checkout", _check_file)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    event.listen(engine, "handle_error", _convert_error)
    return engine


def _open_postgresql(url: URL) -> Engine:
    from account_store import postgresql  # noqa: PLC0415 - the driver is imported for PostgreSQL alone

    seconds, outage = postgresql.read_answer_seconds(), postgresql.Outage()
    pool = postgresql.build_pool_class(outage, seconds)
    # pool_pre_ping: a restarted server leaves dead connections in the pool, which the first requests would get.
    engine = create_engine(url, hide_parameters=True, pool_pre_ping=True, poolclass=pool, pool_timeout=seconds)

    def connect(_dialect: object, _record: object, address: tuple[str, ...], parameters: dict[str, Any]) -> postgresql.BoundedConnection:
        return postgresql.connect(outage, seconds, *address, **parameters)

    def set_limit(
        connection: Connection, _cursor: object, _statement: str, _parameters: object, context: ExecutionContext | None, _is_many: object
    ) -> None:
        options = {} if context is None else context.execution_options
        least = postgresql.LONG_ANSWER_SECONDS if options.get(IN_BINARY) else options.get(ANSWER_SECONDS, 0.0)
        driven: postgresql.BoundedConnection = connection.connection.driver_connection  # type: ignore[assignment]
        driven.answer_seconds = max(seconds, least)

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "before_cursor_execute", _request_binary)
    event.listen(engine, "before_cursor_execute", set_limit)
    return engine


def _keep_private(database: Path) -> None:
    """Narrow the rights of the file and of those beside it. SQLite gives new files the rights of the database."""
    with suppress(OSError):  # SQLite itself reports a file that cannot be made
        make_file(database)
    for suffix in ("", *BESIDE):
        narrow(database.with_name(database.name + suffix))


def _request_binary(
    _connection: Connection, cursor: Cursor[Any], _statement: str, _parameters: object, context: ExecutionContext | None, _is_many: object
) -> None:
    if context is not None and context.execution_options.get(IN_BINARY):
        cursor.format = type(cursor.format).BINARY  # the driver is imported for PostgreSQL alone


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # The driver's own BEGIN comes before the first write only, and is deferred (see `_begin_sqlite`).
    connection.isolation_level = None
    _enable_write_ahead_log(connection)
    # SQLite checks foreign keys only where a connection asks for it. FULL: with NORMAL, a write-ahead log loses the last
    # commits in a power loss.
    for pragma in ("foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _check_file(_connection: object, record: ConnectionPoolEntry, _proxy: object) -> None:
    fault = record.info["file"].find_fault()
    if fault is not None:
        log.error("the database of the accounts is reopened: %s", fault)
        # SQLAlchemy then drops this connection and opens another one, which finds the good file or fails.
        raise DisconnectionError(fault)


def _enable_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging. Several processes may open a new file at once, and SQLite itself does not wait for this."""
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
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        return
    driven: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
    until = time.monotonic() + BUSY_MS / 1000
    driven.execute("PRAGMA busy_timeout=0")
    try:
        while time.monotonic() < until:
            try:
                # A deferred transaction that reads first fails at once, without waiting, if another one has written meanwhile.
                driven.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & _PRIMARY_CODE != sqlite3.SQLITE_BUSY:
                    break
                time.sleep(_RETRY_SECONDS)
            else:
                return
        # Again, for an error in the form that SQLAlchemy gives to all.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        driven.execute(f"PRAGMA busy_timeout={BUSY_MS}")


def _convert_error(context: ExceptionContext) -> None:
    error = context.sqlalchemy_exception
    # SQLite reports damage as a plain DatabaseError; its subclasses are errors of the statement.
    # The pool itself reacts to a failed ping: it connects again.
    if (isinstance(error, (OperationalError, InterfaceError)) or type(error) is DatabaseError) and not context.is_pre_ping:
        raise UnavailableError(
            f"the database of the accounts does not answer: {context.original_exception}"
        ) from context.original_exception


def connect_for_reads(engine: Engine) -> Connection:
    """Open a connection for reads, outside of a transaction: on SQLite a transaction would take the write lock."""
    return engine.connect().execution_options(isolation_level="AUTOCOMMIT")


def get_new_id(inserted: CursorResult[Any]) -> int:
    """Return the key that the database gave to the inserted row."""
    key = inserted.inserted_primary_key
    assert key is not None  # noqa: S101 -- one row was inserted
    return int(key[0])


def migrate(engine: Engine) -> str:
    """Migrate the tables to the newest revision, from any earlier one or none; return it. Any number of processes may call it at once."""
    # The common start finds nothing to do: it takes no lock and does not import Alembic.
    if read_revision(engine) != NEWEST:
        _upgrade(engine)
    return NEWEST


def read_revision(engine: Engine) -> str | None:
    """Return the revision of the tables; None when there are none, or those of the first version."""
    with connect_for_reads(engine) as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        number: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return number


def _upgrade(engine: Engine) -> None:
    with engine.begin() as connection:  # on SQLite this takes the write lock: a second process finds nothing to do
        connection = connection.execution_options(**{ANSWER_SECONDS: _MIGRATION_SECONDS})  # noqa: PLW2901 - the same one
        if engine.dialect.name == POSTGRESQL:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
        upgrade_to(connection, "head")


def upgrade_to(connection: Connection, revision: str) -> None:
    """Bring the tables to a revision, in the transaction of `connection`."""
    from alembic import command  # noqa: PLC0415 -- see NEWEST
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    # `%` starts an interpolation in the configuration parser that Alembic uses.
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
