"""The guard around every adapter: whatever is raised while a dump is read, and files that change under the reader, -> `DumpError`.

Adapters catch what they can say more about (the line, the member, the mend). Whatever slips through is translated here, so that it costs
the news of one platform and never the night. What may be no fault of the dump becomes an `UnblamedError`, or a full disk would have a good
dump marked as broken: errors of the machine, and those that only our own code can raise (KeyError, TypeError ...), which are bugs.
"""

from __future__ import annotations

import csv
import errno
import lzma
import sqlite3
import tarfile
import traceback
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

import duckdb
import msgspec
import polars as pl
import pyarrow as pa
import zstandard
from lxml import etree

from pipeline.dumps.errors import DumpError, UnblamedError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    lzma.LZMAError,
    zstandard.ZstdError,
    csv.Error,
    OverflowError,
    RecursionError,
)
_OF_THIS_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_MACHINE_WORDS = ("No space left on device", "Disk quota exceeded", "Too many open files", "Cannot allocate memory")
"""Rust and C++ libraries hand on the words of the system, not its numbers."""
_MESSAGE_CHARACTERS = 500
_LOOK = "the dump is tried again next time; look at disk and memory of this machine; if they are sound, keep the dump and report a bug"
_MEND = "fetch the dump again, compare its checksums, and do not touch it while it is read"


@contextmanager
def guarded(platform: str, dump: Path, staging: Path) -> Iterator[None]:
    """Around the reading of `dump`: DumpError that names platform, file (as far as known) and mend, whatever is raised.

    The dump is not to blame for what fails in `staging` and in the folders beside it whose names begin the same (`.scratch`, `.pending`).
    """
    with translated(platform, dump, staging):
        before = _files(dump)
        yield
        after = _files(dump)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed:
        raise DumpError(f"{dump}: {', '.join(changed[:10])} vanished or changed while {platform} was read; {_MEND}")


@contextmanager
def translated(platform: str, dump: Path, staging: Path) -> Iterator[None]:
    """As `guarded`, for a folder that may change while it is read."""
    try:
        yield
    except DumpError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        place = getattr(error, "filename", None) or dump
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:_MESSAGE_CHARACTERS]}"
        if isinstance(error, _READING) and not _is_of_this_machine(error, staging):
            raise DumpError(f"{place}: {platform} cannot be read ({said}); {_MEND}") from error
        raise UnblamedError(f"{place}: {platform} could not be staged ({said}{_raised_at(error)}); {_LOOK}") from error


def _raised_at(error: BaseException) -> str:
    """The last line of our own code that an error passed: what a bug report needs."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/pipeline/" in frame.filename and __file__ != frame.filename]
    return f", {Path(ours[-1].filename).name} line {ours[-1].lineno}" if ours else ""


def _files(dump: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of every file, by its path: an adapter that lists a folder late does not see what is gone by then."""
    found = {}
    for path in [dump] if dump.is_file() else dump.rglob("*"):
        if not path.is_dir():
            stat = path.stat()
            if not S_ISREG(stat.st_mode):
                raise DumpError(f"{path}: a pipe, a device or a socket, which would be read for ever; {_MEND}")
            found[str(path)] = stat.st_size, stat.st_mtime_ns
        elif path.suffix and not any(path.iterdir()):
            raise DumpError(f"{path}: an empty folder under the name of a file; {_MEND}")
    return found


def _is_of_this_machine(error: BaseException, staging: Path) -> bool:
    if isinstance(error, duckdb.OutOfMemoryException | pa.ArrowMemoryError) or getattr(error, "errno", None) in _OF_THIS_MACHINE:
        return True
    # Libraries tell the path in their message, and so does Python.
    return any(words in str(error) for words in (*_MACHINE_WORDS, str(staging)))
