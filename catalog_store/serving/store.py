"""Reads `serving.sqlite`: one connection and one decompressor per thread and process, read-only, with a deadline on every statement.

Only SQL and decoding live here; what a question means belongs to catalog_store/queries. Set-based methods take up to SET_LIMIT keys
and cost one statement.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from catalog_store.errors import CatalogClosedError, DeadlineExceededError, SnapshotInvalidError
from catalog_store.serving.bodies import decompressor
from catalog_store.serving.schema import FILE_NAME, FORMAT_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

SET_LIMIT = 1_000
"""Keys per set-based call: bounds one statement's time (100 keys cost about 0.4 ms)."""
_OPCODES_PER_CLOCK_READ = 5_000
"""SQLite asks for the deadline after so many virtual-machine steps: well under a millisecond."""


class Companion(msgspec.Struct, frozen=True):
    """Second line of a body: the artists' display string and (source, external id, slug) of each link."""

    credit: str
    links: tuple[tuple[str, str, str | None], ...]


class _Deadline:
    """When the statement under way must stop. Not the session itself: a connection that refers to its session would never be freed."""

    __slots__ = ("until",)

    def __init__(self) -> None:
        self.until = float("inf")

    def is_over(self) -> bool:
        return time.monotonic() > self.until


class _Session:
    """What one thread of one process holds."""

    __slots__ = ("connection", "deadline", "decompress", "pid")

    def __init__(self, uri: str) -> None:
        self.pid = os.getpid()
        self.deadline = _Deadline()
        self.connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None, cached_statements=64)
        self.connection.set_progress_handler(self.deadline.is_over, _OPCODES_PER_CLOCK_READ)
        dictionary = self.connection.execute("SELECT value FROM meta WHERE name = 'dictionary'").fetchone()[0]
        self.decompress: Callable[[bytes], bytes] = decompressor(dictionary).decompress


class ServingStore:
    """The lookups of one snapshot; may be shared by threads and survives a fork."""

    def __init__(self, folder: Path, deadline: float) -> None:
        """`folder` holds FILE_NAME; `deadline` (seconds) goes for each statement. SnapshotInvalidError for another format."""
        self._uri = f"file:{quote(str((folder / FILE_NAME).resolve()))}?mode=ro&immutable=1"
        self._deadline = deadline
        self._local = threading.local()
        self._sessions: list[_Session] = []
        self._lock = threading.Lock()
        self._closed = False
        # sqlite3's connections sit in reference cycles of their own: without this, files of a dropped snapshot stay open until a full
        # garbage collection, and for ever under gc.freeze().
        weakref.finalize(self, _close, self._sessions)
        try:
            version = self.rows("SELECT value FROM meta WHERE name = 'format_version'")[0][0]
        except sqlite3.Error as error:
            raise SnapshotInvalidError(f"{folder / FILE_NAME} cannot be read: {error}") from error
        if version != FORMAT_VERSION:
            raise SnapshotInvalidError(f"{folder / FILE_NAME} has format {version}, this program reads {FORMAT_VERSION}")

    def rows(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of one statement; DeadlineExceededError when it takes too long."""
        session = self._session()
        session.deadline.until = time.monotonic() + self._deadline
        try:
            return session.connection.execute(statement, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise DeadlineExceededError(f"a lookup took longer than {self._deadline:g} s") from error
            raise

    def value(self, statement: str, parameters: tuple[Any, ...] = ()) -> Any:  # noqa: ANN401 - SQLite values are of any type
        """First column of the first row, or None."""
        found = self.rows(statement, parameters)
        return found[0][0] if found else None

    def body(self, recording_id: int) -> bytes | None:
        """Both lines of a track, or None."""
        frame = self.value("SELECT body FROM track WHERE recording_id = ?", (recording_id,))
        return None if frame is None else self._session().decompress(frame)

    def bodies(self, recording_ids: Iterable[int]) -> dict[int, bytes]:
        """Both lines of each track that exists, by id."""
        wanted = msgspec.json.encode(list(recording_ids)).decode()
        found = self.rows("SELECT recording_id, body FROM json_each(?) JOIN track ON recording_id = value", (wanted,))
        decompress = self._session().decompress
        return {recording_id: decompress(frame) for recording_id, frame in found}

    def close(self) -> None:
        """Close all connections; later calls raise CatalogClosedError."""
        with self._lock:
            self._closed = True
            _close(self._sessions)

    def _session(self) -> _Session:
        session: _Session | None = getattr(self._local, "session", None)
        if session is None or session.pid != os.getpid():
            session = self._local.session = self._open()
        if self._closed:
            raise CatalogClosedError("the catalog was closed: open it again")
        return session

    def _open(self) -> _Session:
        with self._lock:
            if self._closed:
                raise CatalogClosedError("the catalog was closed: open it again")
            session = _Session(self._uri)
            self._sessions.append(session)
            return session


def _close(sessions: list[_Session]) -> None:
    for session in sessions:
        session.connection.close()
    sessions.clear()


_COMPANION = msgspec.json.Decoder(Companion)


def wire_line(body: bytes) -> bytes:
    """The wire JSON of a body."""
    return body[: body.index(b"\n")]


def companion(body: bytes) -> Companion:
    """What goes with the track of a body."""
    return _COMPANION.decode(body[body.index(b"\n") + 1 :])
