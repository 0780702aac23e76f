"""Files and folders that are written aside and get their name when they are whole.

A cluster may run one call of a function twice: again after a worker died, or a second time beside a slow one. So a call that runs as an
attempt (`collect_pending`) writes under names of its own. Whoever takes the result of the call gives them their final names (`commit`). The
files of all other attempts stay pending, however late these end. Outside of an attempt a file gets its name at once.
"""

from __future__ import annotations

import shutil
import uuid
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from catalog_store.folder_listing import list_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PENDING_SUFFIX = ".pending"


@dataclass(frozen=True)
class Attempt:
    """One run of a call, and what it has written: each pending path with its final one."""

    name: str
    written: list[tuple[Path, Path]] = field(default_factory=list)


# Each thread has its own attempt, because an engine may run several calls in the threads of one process.
_attempt: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


@contextmanager
def collect_pending() -> Iterator[Attempt]:
    """Run the block as an attempt. Nothing that it writes aside gets its final name; an error removes it."""
    attempt = Attempt(uuid.uuid4().hex[:12])
    token = _attempt.set(attempt)
    try:
        yield attempt
    except BaseException:
        for pending, _ in attempt.written:
            _remove(pending)
        raise
    finally:
        _attempt.reset(token)


def name_pending(path: Path) -> Path:
    """Return the name beside `path` under which it is written: one of the attempt, if this is one."""
    attempt = _attempt.get()
    return path.with_name(f"{path.name}.{attempt.name}{PENDING_SUFFIX}" if attempt else path.name + PENDING_SUFFIX)


@contextmanager
def write_aside(path: Path) -> Iterator[Path]:
    """Yield the name to write a file or a folder under; it gets the name `path` after the block, or with the result of the attempt.

    An error in the block removes what was written. A killed process leaves it, and what is at `path` stays as it was.
    """
    pending = name_pending(path)
    try:
        yield pending
    except BaseException:
        _remove(pending)
        raise
    if (attempt := _attempt.get()) is not None:
        attempt.written.append((pending, path))
    else:
        commit([(pending, path)])


def commit(written: Iterable[tuple[Path, Path]]) -> None:
    """Give pending files and folders their final names, in this order. They replace what has these names."""
    for pending, path in written:
        if path.is_dir():
            # Left by a build that was killed before it noted that the call had ended. A folder cannot replace a full one.
            shutil.rmtree(path)
        pending.rename(path)


def remove_pending(folder: Path) -> None:
    """Remove what attempts left below a folder. No attempt whose result may still be taken may write there."""
    for path in list_tree(folder, "*" + PENDING_SUFFIX):
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
