"""The SQLite file under open connections: that it is still the one at its path.

Whoever deletes or replaces a database file takes it away from under its connections, which go on in a file that has no name any more: what
they write is lost with the process. A connection notes which files it opened; a look (`os.stat`, a microsecond) tells whether they are
still there. A file that is missing is never made anew by a connection: an empty database would answer every key with 401. What must not
live here: SQL.
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
"""Environment variable: set by a server for its workers and companions, which must not make a database that was deleted meanwhile."""
LOG_SUFFIX = "-wal"

_File = tuple[int, int] | None
"""Device and inode; None where there is none."""


class OpenFile:
    """The database and its write-ahead log as one connection opened them."""

    __slots__ = ("_database", "_log", "_path")

    def __init__(self, path: str) -> None:
        """Right after the connection was opened."""
        self._path = path
        self._database = _file_at(path)
        self._log: _File = None

    def fault(self) -> str | None:
        """Tell what happened to the files since; None when they are still there. SQLite keeps the log while a connection uses it."""
        found = _file_at(self._path)
        if found != self._database:
            happened = "was deleted" if found is None else "was replaced by another file"
            return f"{self._path} {happened} under the server: what was written since is lost; put a good one in its place"
        log = _file_at(self._path + LOG_SUFFIX)
        if self._log is None:
            self._log = log
        elif log != self._log:
            return f"{self._path}{LOG_SUFFIX} was deleted or replaced under the server: what was written since is lost"
        return None


def connect_existing(path: str, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 - the driver's
    """A connection to a file that is there; sqlite3.OperationalError when it is not."""
    address = f"file:{quote(os.path.abspath(path))}?mode=rw"  # noqa: PTH100 - symbolic links stay
    connection: sqlite3.Connection = sqlite3.connect(address, uri=True, **options)
    return connection


def make_file(path: Path) -> None:
    """Make an empty database where none is, its owner's alone, unless one must be there. OSError."""
    if MUST_EXIST_VARIABLE not in os.environ:
        if not path.parent.exists():
            make_private_folder(path.parent)
        make_private_file(path)


def _file_at(path: str) -> _File:
    try:
        found = os.stat(path)  # noqa: PTH116 - twice as fast, for every batch of charges
    except OSError:
        return None
    return found.st_dev, found.st_ino
