"""The files of a snapshot on their way into its folder: parts that are taken over, and the manifest entry of each file.

A file that is the same inode as in the live snapshot keeps its entry and is not read. publisher.py decides which files a snapshot holds.
"""

from __future__ import annotations

import errno
import shutil
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.parquet as pq

from catalog_store.snapshot import TABLES_FOLDER, StoredFile, StoredTable, TablePart, describe_file, hash_file, read_manifest
from catalog_store.tables.files import list_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from catalog_store.job_runner import JobRunner

NAME_DIGITS = 16
"""Digits of the checksum in the name of a part: two different parts share them once in 2^64."""


class _Content(NamedTuple):
    """The size and checksum of a part. They stay the same when the part is linked to another folder."""

    rows: int
    bytes: int
    sha256: str


def import_tables(tables: Mapping[str, Path], folder: Path, previous: Path | None, run: JobRunner) -> dict[str, StoredTable]:
    """Link or copy the parts of `tables` into the snapshot `folder`. Return the manifest entry of each table."""
    sources = {name: list_parts(source) for name, source in tables.items()}
    known = _read_known_contents(previous)
    every = [part for found in sources.values() for part in found]
    fresh = [part for part in every if _read_inode(part) not in known]
    read = dict(zip(fresh, run(_read_content, fresh), strict=True))
    contents = {part: read[part] if part in read else known[_read_inode(part)] for part in every}
    return {name: _import_table(folder, name, {part: contents[part] for part in found}) for name, found in sources.items()}


def _import_table(folder: Path, name: str, contents: Mapping[Path, _Content]) -> StoredTable:
    files = []
    for number, (source, content) in enumerate(contents.items()):
        # The digits make the name of a part true for its bytes: catalog.duckdb never reads the rows of another snapshot by mistake.
        path = f"{TABLES_FOLDER}/{name}/part-{number:05d}-{content.sha256[:NAME_DIGITS]}.parquet"
        link_or_copy(source, folder / path)
        files.append(TablePart(path, *content))
    return StoredTable(sum(file.rows for file in files), sum(file.bytes for file in files), tuple(files))


def _read_known_contents(previous: Path | None) -> dict[tuple[int, int], _Content]:
    """Return what the parts of the live snapshot hold, by inode."""
    if previous is None:
        return {}
    files = [file for table in read_manifest(previous).tables.values() for file in table.files if (previous / file.path).is_file()]
    return {_read_inode(previous / file.path): _Content(file.rows, file.bytes, file.sha256) for file in files}


def _read_inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _read_content(part: Path) -> _Content:
    return _Content(pq.read_metadata(part).num_rows, part.stat().st_size, hash_file(part))


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where that is not possible. The target's folder is created."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError as error:
        # Another file system, no permission, too many links, or no links at all: only then a copy is right.
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
            raise
        shutil.copyfile(source, target)


def describe_serving(folder: Path, files: Sequence[Path], previous: Path | None, run: JobRunner) -> Iterator[StoredFile]:
    """Yield the manifest entries of serving files. A file shared with the live snapshot (the same inode) reuses its entry."""
    known = {} if previous is None else {file.path: file for file in read_manifest(previous).serving}
    reused = {}
    for file in files:
        name = file.relative_to(folder).as_posix()
        if previous is not None and name in known and (previous / name).is_file() and file.samefile(previous / name):
            reused[file] = known[name]
    read = run(partial(describe_file, folder), [file for file in files if file not in reused])
    yield from (reused[file] if file in reused else next(read) for file in files)


def has_published(snapshot: Path, paths: Collection[str]) -> bool:
    """Return whether a snapshot has these files as they were published: damaged ones must not pass into the next snapshot."""
    manifest = read_manifest(snapshot)
    wanted = frozenset(paths)
    stored = [file for file in (*manifest.serving, *manifest.attachments) if file.path in wanted]
    try:
        return len(stored) == len(wanted) and all(hash_file(snapshot / file.path) == file.sha256 for file in stored)
    except OSError:
        return False
