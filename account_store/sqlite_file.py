"""Detects a SQLite file that was deleted or replaced under open connections.

After that, connections go on in a file without a name, and their writes are lost with the process. A connection records the files that it
opened; one `os.stat` (a microsecond) shows whether they are still at their path. A connection never makes a missing file: with an empty
database every key would be answered 401. Out of scope: SQL.
"""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from account_store.private_files import make_private_file, make_private_folder

if TYPE_CHECKING:
    from pathlib import Path

MUST_EXIST_VARIABLE = "ACCOUNT_DATABASE_MUST_EXIST"
"""Environment variable that a server sets for its workers and companions: they must not make a database that was deleted."""
LOG_SUFFIX = "-wal"

_File = tuple[int, int] | None
"""Device and inode; None without a file."""


class OpenFile:
    """The database and its write-ahead log that one connection has open."""

    __slots__ = ("_database", "_log", "_path")

    def __init__(self, path: str) -> None:
        """Record the files right after the connection was opened."""
        self._path = path
        self._database = _stat_file(path)
        self._log: _File = None

    def find_fault(self) -> str | None:
        """Return what happened to the files since; None when they are still there. SQLite keeps the log while a connection uses it."""
        found = _stat_file(self._path)
        if found != self._database:
            happened = "was deleted" if found is None else "was replaced by another file"
            return f"{self._path} {happened} under the server: what was written since is lost; put a good one in its place"
        log = _stat_file(self._path + LOG_SUFFIX)
        # The log appears with the first write, which may be another connection's.
        if self._log is None:
            self._log = log
        elif log != self._log:
            return f"{self._path}{LOG_SUFFIX} was deleted or replaced under the server: what was written since is lost"
        return None


def connect_existing(path: str, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 - the driver's
    """Connect to an existing file; sqlite3.OperationalError when there is none."""
    # mode=rw makes no file where none is. `quote`: a path may hold `?` and `#`, which mean something in an address.
    address = f"file:{quote(os.path.abspath(path))}?mode=rw"  # noqa: PTH100 - symbolic links stay
    connection: sqlite3.Connection = sqlite3.connect(address, uri=True, **options)
    return connection


def make_file(path: Path) -> None:
    """Make an empty private database where none is, unless MUST_EXIST_VARIABLE is set. OSError."""
    if MUST_EXIST_VARIABLE not in os.environ:
        if not path.parent.exists():
            make_private_folder(path.parent)
        make_private_file(path)


def _stat_file(path: str) -> _File:
    try:
        found = os.stat(path)  # noqa: PTH116 - twice as fast, and called for every batch of charges
    except OSError:
        return None
    return found.st_dev, found.st_ino
