"""Cache of fingerprints, one per content of a file, so that a build decodes only new audio.

One SQLite file beside the staging tables: `content` (SHA-256 -> fingerprint, or why there is none), `landmark` (SHA-256 -> peaks), `file`
(path, size, time of change -> SHA-256), so that a file that has not been touched is not even read. A content without landmarks, which an
older program decoded, is decoded again. Written every FILES_PER_COMMIT files: a killed night goes on where
it was. Newer code tries undecodable files again. An operator may delete the file: then all audio is decoded again.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import polars as pl

from pipeline.dumps.platforms.audio.decoding import Decoded, decode_files, hash_code
from pipeline.dumps.platforms.fingerprints.items import build_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

FILES_PER_COMMIT = 200
REPORT_SECONDS = 10.0
"""Between two lines of progress, if a file ends then: an hour of sound takes as long."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS content (sha256 TEXT PRIMARY KEY, fingerprint_id INTEGER NOT NULL, duration_seconds INTEGER NOT NULL,
    items BLOB NOT NULL, problem TEXT, code TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS landmark (sha256 TEXT PRIMARY KEY, peaks BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS content_by_id ON content (fingerprint_id);
CREATE TABLE IF NOT EXISTS file (path TEXT PRIMARY KEY, size INTEGER NOT NULL, changed_ns INTEGER NOT NULL, sha256 TEXT NOT NULL);
"""


class AudioCache:
    """Cache that is open for one process; a context manager."""

    class Known(NamedTuple):
        """`problem`: why there is no fingerprint."""

        fingerprint_id: int
        problem: str | None

    def __init__(self, path: Path) -> None:
        """Open the cache; create its file if it is missing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path)
        self._connection.executescript(_SCHEMA)

    def __enter__(self) -> Self:
        """Return the cache."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Save all new entries, also after an error."""
        self._connection.commit()
        self._connection.close()

    def fingerprint(self, folder: Path, paths: Sequence[str], report: Callable[[str], None]) -> dict[str, Known]:
        """Return the entry of each of these files below `folder`. Unknown files are decoded; missing files are left out."""
        # A file of equal content is decoded once, whatever its name: a renamed folder costs hashing alone.
        contents = {path: sha256 for path in paths if (sha256 := self._hash_content(folder, path)) is not None}
        first = {sha256: path for path, sha256 in reversed(contents.items())}
        waiting = [(sha256, folder / path) for sha256, path in first.items() if self._find_known(sha256) is None]
        progress = _Progress(len(waiting), report)
        for start in range(0, len(waiting), FILES_PER_COMMIT):
            batch = waiting[start : start + FILES_PER_COMMIT]
            decoded = decode_files([path for _, path in batch], note=lambda done, before=start: progress.note(before + done))  # type: ignore[misc]
            for (sha256, _), one in zip(batch, decoded, strict=True):
                self._remember(sha256, one)
            self._connection.commit()
        return {path: known for path, sha256 in contents.items() if (known := self._find_known(sha256)) is not None}

    def read_fingerprints(self, ids: Sequence[int]) -> pl.DataFrame:
        """Return fingerprint_id, duration_seconds, items and peaks of the fingerprints with these ids, in order of id."""
        marks = ", ".join("?" * len(ids))
        rows = self._connection.execute(
            "SELECT fingerprint_id, duration_seconds, items, peaks FROM content JOIN landmark USING (sha256) "
            f"WHERE fingerprint_id IN ({marks}) GROUP BY fingerprint_id ORDER BY fingerprint_id",
            list(ids),
        ).fetchall()
        frame = pl.DataFrame([row[:2] for row in rows], schema={"fingerprint_id": pl.Int64, "duration_seconds": pl.Int32}, orient="row")
        return frame.with_columns(_unpack_lists("items", [row[2] for row in rows]), _unpack_lists("peaks", [row[3] for row in rows]))

    def _hash_content(self, folder: Path, path: str) -> str | None:
        """Return the SHA-256 of a file, which is read only if it has changed; None when it is missing."""
        try:
            stat = (folder / path).stat()
            row = self._connection.execute("SELECT size, changed_ns, sha256 FROM file WHERE path = ?", (path,)).fetchone()
            # ctime and not mtime: tools that copy audio set mtime back, nobody can set ctime.
            if row and row[:2] == (stat.st_size, stat.st_ctime_ns):
                return str(row[2])
            with (folder / path).open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return None
        self._connection.execute("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?)", (path, stat.st_size, stat.st_ctime_ns, sha256))
        return sha256

    def _find_known(self, sha256: str) -> Known | None:
        row = self._connection.execute(
            "SELECT fingerprint_id, problem, code, peaks IS NULL FROM content LEFT JOIN landmark USING (sha256) WHERE sha256 = ?", (sha256,)
        ).fetchone()
        if row is None or (row[1] is not None and row[2] != hash_code()) or (row[1] is None and row[3]):
            return None
        return self.Known(row[0], row[1])

    def _remember(self, sha256: str, decoded: Decoded) -> None:
        items, peaks = (np.ascontiguousarray(values, dtype="<u4").tobytes() for values in (decoded.items, decoded.peaks))
        row = (sha256, _build_fingerprint_id(sha256), decoded.duration_seconds, items, decoded.problem, hash_code())
        self._connection.execute("INSERT OR REPLACE INTO landmark VALUES (?, ?)", (sha256, peaks))
        self._connection.execute("INSERT OR REPLACE INTO content VALUES (?, ?, ?, ?, ?, ?)", row)


class _Progress:
    """Says how many files are fingerprinted, every REPORT_SECONDS and at the end."""

    def __init__(self, files: int, report: Callable[[str], None]) -> None:
        self._files, self._report = files, report
        self._said_at = time.monotonic()

    def note(self, done: int) -> None:
        if done == self._files or time.monotonic() - self._said_at >= REPORT_SECONDS:
            self._said_at = time.monotonic()
            self._report(f"{done:,} of {self._files:,} new files fingerprinted")


def _unpack_lists(name: str, blobs: Sequence[bytes]) -> pl.Series:
    # Lists as offsets into one array: a Python list of a million items per file would take far more memory.
    values = [np.frombuffer(blob, dtype="<u4") for blob in blobs]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(one) for one in values], dtype=np.int64)])
    return build_lists(np.concatenate([np.zeros(0, "<u4"), *values]).astype(np.uint32), starts).alias(name)


def _build_fingerprint_id(sha256: str) -> int:
    """Return a negative number of 63 bits. Ids of public fingerprints are positive."""
    return -1 - (int(sha256[:16], 16) >> 1)
