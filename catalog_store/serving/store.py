"""The reader of `serving/`: one connection to `serving.sqlite` per thread and process; bodies, keys and lists mapped and shared by all.

Connections are read-only, with a deadline on every statement. Only SQL and decoding belong here; the meaning of a question belongs in
catalog_store/queries. Set-based methods take up to SET_LIMIT keys and cost one statement.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from contextlib import closing
from typing import TYPE_CHECKING, Any

from zstandard import ZstdError

from catalog_store.errors import CatalogClosedError, DeadlineExceededError, IndexDamagedError, SnapshotInvalidError
from catalog_store.format_versions import require_readable
from catalog_store.lists.list_index import ListIndex
from catalog_store.serving.body_encoding import create_decompressor
from catalog_store.serving.body_file import BodyFile
from catalog_store.serving.key_index import KeyIndex
from catalog_store.serving.row_layers import build_uri, connect_rows
from catalog_store.serving.schema import BODIES_FOLDER, FILE_NAME, KEYS_FOLDER, LISTS_FOLDER, READ_VERSIONS
from catalog_store.serving.stored_body import StoredBody

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

SET_LIMIT = 1_000
"""Keys per set-based call. The limit bounds one statement's time (100 keys cost about 0.4 ms)."""
_OPCODES_PER_CLOCK_READ = 5_000
"""SQLite checks the deadline after this many virtual-machine steps: well under a millisecond."""
_MAPPED_BYTES = 1 << 40
"""More than any file, so SQLite maps as much as it can."""
_CACHE_KIB = 16_384
"""SQLite's page cache of a thread. It holds the inner pages of all tables of a hundred million recordings, so a lookup reads one page
beyond the mapped ones."""

_DAMAGES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
"""SQLite's codes for files that are gone, cut or overwritten. Others are errors of the statement."""

_process = object()
"""The identity of this process: each fork gets a new object. Asking the kernel for the process id takes a tenth of a lookup."""


def _mark_fork() -> None:
    global _process  # noqa: PLW0603 - what a fork must change
    _process = object()


os.register_at_fork(after_in_child=_mark_fork)


class _Deadline:
    """The time at which the current statement must stop.

    It is separate from the session: a connection that refers to its session would never be freed.
    """

    __slots__ = ("until",)

    def __init__(self) -> None:
        self.until = float("inf")

    def is_over(self) -> bool:
        return time.monotonic() > self.until


class _MappedFiles:
    """The memory-mapped files, shared by threads and processes."""

    __slots__ = ("keys", "lists", "releases", "tracks")

    def __init__(self, folder: Path) -> None:
        self.keys = KeyIndex(folder / KEYS_FOLDER)
        self.lists = ListIndex(folder / LISTS_FOLDER)
        self.tracks = BodyFile(folder / BODIES_FOLDER, "track")
        self.releases = BodyFile(folder / BODIES_FOLDER, "release")


class _Session:
    """The state of one thread in one process."""

    __slots__ = ("connection", "deadline", "decompress_release", "decompress_track", "process", "recent")

    def __init__(self, folder: Path, arrays: _MappedFiles) -> None:
        self.process = _process
        self.deadline = _Deadline()
        self.connection = connect_rows(folder)
        for layer in ("main", "base"):
            # Reading a mapped page costs half of a system call and a copy. SQLite itself stops mapping at 2 GiB.
            self.connection.execute(f"PRAGMA {layer}.mmap_size = {_MAPPED_BYTES}")
            self.connection.execute(f"PRAGMA {layer}.cache_size = -{_CACHE_KIB}")
        self.connection.set_progress_handler(self.deadline.is_over, _OPCODES_PER_CLOCK_READ)
        self.recent: dict[int, StoredBody] = {}
        """Tracks of the last question. A caller that finds an id by its track asks for the track next."""
        self.decompress_track = create_decompressor(arrays.tracks.dictionary).decompress
        self.decompress_release = create_decompressor(arrays.releases.dictionary).decompress


class ServingStore:
    """The lookups of one snapshot. Threads may share it, and it survives a fork."""

    def __init__(self, folder: Path, deadline: float) -> None:
        """Open `folder`, which is `serving/`. `deadline` in seconds applies to each statement; SnapshotInvalidError for another format."""
        self._folder = folder.resolve()
        self._deadline = deadline
        self._local = threading.local()
        self._sessions: list[_Session] = []
        self._lock = threading.Lock()
        self._closed = False
        # sqlite3's connections are in reference cycles of their own. Without this, files of a dropped snapshot stay open until a full
        # garbage collection, and for ever under gc.freeze().
        weakref.finalize(self, _close, self._sessions)
        _check_version(folder / FILE_NAME)
        self._arrays: _MappedFiles | None = _MappedFiles(folder)
        # Open this thread's connection now: the snapshot's files may be removed later.
        self._get_session()

    @property
    def arrays(self) -> _MappedFiles:
        """The memory-mapped files; CatalogClosedError after `close`."""
        if self._arrays is None:
            raise CatalogClosedError("the catalog was closed: open it again")
        return self._arrays

    @property
    def keys(self) -> KeyIndex:
        """The index of ISRCs and platform ids."""
        return self.arrays.keys

    @property
    def lists(self) -> ListIndex:
        """The ordered lists of tracks and releases."""
        return self.arrays.lists

    def fetch_rows(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of one statement; DeadlineExceededError when it takes too long, IndexDamagedError."""
        session = self._get_session()
        session.deadline.until = time.monotonic() + self._deadline
        try:
            return session.connection.execute(statement, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            # sqlite3 reports a progress handler that stops a statement only by this message.
            if "interrupted" in str(error):
                raise DeadlineExceededError(f"a lookup took longer than {self._deadline:g} s") from error
            _raise_damage(self._folder, error)
            raise

    def fetch_value(self, statement: str, parameters: tuple[Any, ...] = ()) -> Any:  # noqa: ANN401 - SQLite values are of any type
        """Return the first column of the first row, or None."""
        found = self.fetch_rows(statement, parameters)
        return found[0][0] if found else None

    def read_track(self, recording_id: int) -> StoredBody | None:
        """Return a track, or None."""
        session = self._get_session()
        cached = session.recent.get(recording_id)
        if cached is not None:
            return cached
        frame = self.arrays.tracks.read_frame(recording_id)
        if not frame:
            return None
        try:
            stored = StoredBody(recording_id, session.decompress_track(frame))
        except ZstdError as error:
            raise self.arrays.tracks.build_damage_error(recording_id) from error
        session.recent = {recording_id: stored}
        return stored

    def read_tracks(self, recording_ids: Iterable[int]) -> Mapping[int, StoredBody]:
        """Return each track that exists, by id."""
        session = self._get_session()
        wanted, recent = dict.fromkeys(recording_ids), session.recent
        # A caller asks for the bodies of a page and then for their links. The second question finds the bodies of the first.
        if wanted.keys() <= recent.keys():
            return recent if len(recent) == len(wanted) else {identifier: recent[identifier] for identifier in wanted}
        found = session.recent = _read_bodies(self.arrays.tracks, session.decompress_track, wanted)
        return found

    def read_releases(self, release_ids: Iterable[int]) -> dict[int, StoredBody]:
        """Return each release that exists, by id."""
        return _read_bodies(self.arrays.releases, self._get_session().decompress_release, dict.fromkeys(release_ids))

    def close(self) -> None:
        """Close all connections and release the arrays; later calls raise CatalogClosedError."""
        with self._lock:
            self._closed = True
            # A running lookup keeps the arrays until it ends.
            self._arrays = None
            _close(self._sessions)

    def _get_session(self) -> _Session:
        session: _Session | None = getattr(self._local, "session", None)
        # A SQLite connection must not be used across a fork, so a child opens its own.
        if session is None or session.process is not _process:
            session = self._local.session = self._open_session()
        if self._closed:
            raise CatalogClosedError("the catalog was closed: open it again")
        return session

    def _open_session(self) -> _Session:
        with self._lock:
            if self._closed:
                raise CatalogClosedError("the catalog was closed: open it again")
            try:
                session = _Session(self._folder, self.arrays)
            except sqlite3.DatabaseError as error:
                _raise_damage(self._folder, error)
                raise
            self._sessions.append(session)
            return session


def _raise_damage(folder: Path, error: sqlite3.DatabaseError) -> None:
    # The low byte is the code; the others give details. Errors of the module itself have none.
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGES:
        raise IndexDamagedError(f"rows of {folder} cannot be read: {error}: roll back to another snapshot, or publish again") from error


def _check_version(path: Path) -> None:
    try:
        with closing(sqlite3.connect(build_uri(path), uri=True)) as connection:
            ((version,),) = connection.execute("SELECT value FROM meta WHERE name = 'format_version'").fetchall()
    except (sqlite3.Error, ValueError) as error:
        raise SnapshotInvalidError(f"{path} cannot be read: {error}") from error
    require_readable(path, "serving", version, READ_VERSIONS)


def _read_bodies(bodies: BodyFile, decompress: Callable[[bytes], bytes], ids: Iterable[int]) -> dict[int, StoredBody]:
    found = {}
    for identifier, frame in bodies.read_frames(ids):
        try:
            found[identifier] = StoredBody(identifier, decompress(frame))
        except ZstdError as error:
            raise bodies.build_damage_error(identifier) from error
    return found


def _close(sessions: list[_Session]) -> None:
    for session in sessions:
        session.connection.close()
    sessions.clear()
