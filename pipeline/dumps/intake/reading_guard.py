"""Guard around every adapter: any error while a dump is read, and files that change meanwhile, become a `DumpError`.

Adapters catch errors about which they can say more (the line, the member, the remedy). All others are translated here, so that they cost
the new dump of one platform and never the build. Errors of the machine, and those that only a bug of this program can raise (KeyError,
TypeError ...), become an `UnblamedError`: otherwise a full disk would mark a good dump as broken.
"""

from __future__ import annotations

import csv
import errno
import lzma
import os
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

from catalog_store.folder_listing import list_tree
from pipeline.dumps.errors import DumpError, UnblamedError
from pipeline.engine.interruption import require_no_signal

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
_OF_THIS_MACHINE = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM),
    *(errno.EIO, errno.EROFS, errno.ESTALE, errno.ENODEV),
)
"""A sector that cannot be read (EIO) is a disk of this machine, too: bytes that a publisher got wrong can be read."""
_MACHINE_WORDS = tuple(os.strerror(code) for code in _OF_THIS_MACHINE)
"""Messages of the system. Rust and C++ libraries pass these on without the error number."""
_MESSAGE_CHARACTERS = 500
_LOOK = (
    "the dump is tried again next time; look at disk, memory and file rights of this machine; if they are sound, keep the dump and "
    "report a bug"
)
_REMEDY = "fetch the dump again, compare its checksums, and do not touch it while it is read"


@contextmanager
def guard_reading(platform: str, dump: Path, staging: Path) -> Iterator[None]:
    """Guard the reading of `dump`: raise any error as a DumpError that names platform, file (if known) and remedy.

    An error in `staging`, or in a folder beside it whose name begins the same (`.scratch`, `.pending`), is not blamed on the dump.
    """
    with translate_errors(platform, dump, staging):
        # Times of change and sizes, not hashes: `require_whole` has hashed the files just before.
        before = _list_files(dump)
        yield
        after = _list_files(dump)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed:
        raise DumpError(f"{dump}: {', '.join(changed[:10])} vanished or changed while {platform} was read; {_REMEDY}")


@contextmanager
def translate_errors(platform: str, dump: Path, staging: Path) -> Iterator[None]:
    """Raise any error of the block as `guard_reading` does, without watching the files: for a folder that may change while it is read."""
    try:
        yield
    except DumpError:
        raise
    # A panic of Rust derives from BaseException. Ctrl-C must still pass.
    except (Exception, pl.exceptions.PanicException) as error:
        require_no_signal()  # DuckDB turns Ctrl-C into an ordinary error; a dump is not to blame for it
        place = getattr(error, "filename", None) or dump
        description = f"{type(error).__name__}: {' '.join(str(error).split())[:_MESSAGE_CHARACTERS]}"
        # Only what a library raises about its input is blamed on the dump; a KeyError is a bug of ours.
        if isinstance(error, _READING) and not _is_of_this_machine(error, staging):
            raise DumpError(f"{place}: {platform} cannot be read ({description}); {_REMEDY}") from error
        raise UnblamedError(f"{place}: {platform} could not be staged ({description}{_find_raising_line(error)}); {_LOOK}") from error


def _find_raising_line(error: BaseException) -> str:
    """Return the last line of this program that an error passed, for a bug report."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/pipeline/" in frame.filename and __file__ != frame.filename]
    return f", {Path(ours[-1].filename).name} line {ours[-1].lineno}" if ours else ""


def _list_files(dump: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of every file, by path. An adapter that lists a folder late would miss a vanished file."""
    found = {}
    for path in [dump] if dump.is_file() else list_tree(dump):
        # Neither a table nor a library can hold such a name: the error came late, and named no file.
        if not _is_utf8(path.name):
            raise DumpError(f"{dump}: the name of {os.fsencode(path.relative_to(dump))!r} is not UTF-8; rename it, or take it out")
        if not path.is_dir():
            stat = path.stat()
            if not S_ISREG(stat.st_mode):
                raise DumpError(f"{path}: is a pipe, a device or a socket, and reading it would never end; {_REMEDY}")
            found[str(path)] = stat.st_size, stat.st_mtime_ns
        # A folder called `tracks.parquet` is how Spark writes a table. An empty one lost its parts.
        elif path.suffix and not any(path.iterdir()):
            raise DumpError(f"{path}: is an empty folder with the name of a file; {_REMEDY}")
    return found


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_of_this_machine(error: BaseException, staging: Path) -> bool:
    if isinstance(error, duckdb.OutOfMemoryException | pa.ArrowMemoryError) or getattr(error, "errno", None) in _OF_THIS_MACHINE:
        return True
    # The messages of libraries and of Python name the path.
    return any(words in str(error) for words in (*_MACHINE_WORDS, str(staging)))
