"""A recorder of the system calls by which this process changes files below a folder. It can make one of them fail (system_calls.c).

`watch` once per process, `arm` around what is to be seen, `read_log` afterwards, from any process. Out of scope: which call
fails and what must hold afterwards (injection.py), what of the calls survives a power loss (power_loss.py).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

SOURCE = Path(__file__).with_name("system_calls.c")


class Operation(IntEnum):
    """Operations as in system_calls.c. MARK is a line that the recording program wrote by itself."""

    MARK = 0
    READ_OPEN = 1
    WRITE_OPEN = 2
    CREATE = 3
    WRITE = 4
    SYNC = 5
    RENAME = 6
    LINK = 7
    SYMLINK = 8
    UNLINK = 9
    RMDIR = 10
    MKDIR = 11
    TRUNCATE = 12
    MODE = 13
    ALLOCATE = 14


class Action(IntEnum):
    """Actions on a call, as in system_calls.c."""

    PASS = 0
    FAIL = 1
    KILL = 2
    SHORT = 3
    TORN = 4


@dataclass(frozen=True)
class Call:
    """A system call. `path` is the file it changes; `other` a rename's or link's new name, or a symbolic link's text.

    `offset` and `length` belong to a write. `offset` of an open holds its flags. `was_there` says that the new name existed before.
    """

    operation: Operation
    number: int
    path: str
    other: str
    offset: int
    length: int
    result: int
    was_there: bool
    injected: Action
    thread: int
    data: bytes

    def __str__(self) -> str:
        more = {Operation.WRITE: f" {self.length} bytes at {self.offset}"}.get(self.operation, "")
        return f"{self.number} {self.operation.name.lower()} {self.path}{' -> ' + self.other if self.other else ''}{more}"


class UnwatchableError(Exception):
    """An error on a machine without a compiler, or whose kernel lets no process trap its own calls."""


@functools.cache
def _library() -> ctypes.CDLL:
    source = SOURCE.read_bytes()
    library = Path(tempfile.gettempdir()) / f"music-catalog-{hashlib.sha256(source).hexdigest()[:16]}-{os.getuid()}.so"
    if not library.exists():
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("c++")
        if compiler is None:
            raise UnwatchableError("no C compiler")
        aside = library.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-x", "c", "-O2", "-Wall", "-shared", "-fPIC", "-o", str(aside), str(SOURCE)], check=True)
        aside.rename(library)
    return ctypes.CDLL(str(library))


def watch() -> None:
    """Trap the calls of this process from now on. Raise UnwatchableError where that is impossible."""
    if error := _library().watch():
        raise UnwatchableError(f"the kernel traps no calls here: {os.strerror(error)}")


def arm(
    root: Path,
    log: Path,
    *,
    with_data: bool = False,
    skip_sync: bool = True,
    at: int = 0,
    action: Action = Action.PASS,
    error: int = 0,
    from_then_on: frozenset[Operation] = frozenset(),
) -> None:
    """Log the calls below `root` from now on and do `action` to number `at`; those `from_then_on` fail from there to `disarm`.

    `with_data` logs what was written; `skip_sync` answers syncs at once.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    mask = sum(1 << operation for operation in from_then_on)
    _library().arm(
        os.fsencode(root), descriptor, int(with_data), int(skip_sync), ctypes.c_long(at), int(action), error, ctypes.c_uint(mask)
    )


def disarm() -> None:
    """Let all calls pass again, unseen."""
    _library().disarm()


def mark(text: str) -> None:
    """Write a line into the log in its place among the calls, for example a promise to a caller."""
    _library().mark(text.encode())


_RECORD = struct.Struct("=IIqqqqIIIIII")


def read_log(log: Path) -> list[Call]:
    """Return the calls in order."""
    content = log.read_bytes()
    calls, at = [], 0
    while at < len(content):
        size, operation, number, offset, length, result, was_there, injected, path, other, data, thread = _RECORD.unpack_from(content, at)
        texts = at + _RECORD.size
        names = [os.fsdecode(content[texts : texts + path]), os.fsdecode(content[texts + path : texts + path + other])]
        written = content[texts + path + other : texts + path + other + data]
        calls.append(Call(Operation(operation), number, *names, offset, length, result, bool(was_there), Action(injected), thread, written))
        at += size
    return calls
