"""The guard around every adapter: what libraries raise about a damaged dump, and files that change under the reader, -> `DumpError`.

Adapters catch what they can say more about (the line, the member, the mend). Whatever slips through is translated here, so that the last
good dump is used. What is no fault of the dump must not be taken for one, or a full disk would have a good dump marked as broken: such
errors pass as they are. So do errors of our own code (KeyError, TypeError ...): they are bugs.
"""

from __future__ import annotations

import errno
import sqlite3
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb
import msgspec
import polars as pl
import pyarrow as pa
from lxml import etree

from pipeline.dumps.errors import DumpError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_READING = (
    OSError,
    EOFError,
    UnicodeError,
    duckdb.Error,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    pa.ArrowException,
    sqlite3.Error,
    etree.LxmlError,
    msgspec.DecodeError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
_OF_THIS_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_MACHINE_WORDS = ("No space left on device", "Disk quota exceeded", "Too many open files", "Cannot allocate memory")
"""Rust and C++ libraries hand on the words of the system, not its numbers."""
_MESSAGE_CHARACTERS = 500
_MEND = "fetch the dump again, compare its checksums, and do not touch it while it is read"


@contextmanager
def guarded(platform: str, dump: Path) -> Iterator[None]:
    """Around the reading of `dump`: DumpError that names file (as far as known) and mend, for all that it is to blame for."""
    try:
        before = _files(dump)
        yield
        after = _files(dump)
    except _READING as error:
        if _is_of_this_machine(error):
            raise
        place = getattr(error, "filename", None) or dump
        said = " ".join(str(error).split())[:_MESSAGE_CHARACTERS]
        raise DumpError(f"{place}: {platform} cannot be read ({type(error).__name__}: {said}); {_MEND}") from error
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed:
        raise DumpError(f"{dump}: {', '.join(changed[:10])} vanished or changed while {platform} was read; {_MEND}")


def _files(dump: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of every file, by its path: an adapter that lists a folder late does not see what is gone by then."""
    found = {}
    for path in [dump] if dump.is_file() else dump.rglob("*"):
        if not path.is_dir():
            stat = path.stat()
            found[str(path)] = stat.st_size, stat.st_mtime_ns
        elif path.suffix and not any(path.iterdir()):
            raise DumpError(f"{path}: an empty folder under the name of a file; {_MEND}")
    return found


def _is_of_this_machine(error: BaseException) -> bool:
    if isinstance(error, duckdb.OutOfMemoryException) or getattr(error, "errno", None) in _OF_THIS_MACHINE:
        return True
    return any(words in str(error) for words in _MACHINE_WORDS)
