"""The claim on a catalog: one run writes to it at a time, from its first step to its last, whoever started it.

A run may live in several processes, whose steps run side by side (Dagster's multiprocess executor). These files are in the catalog's root:

    .build.lock    each process of the run holds a shared lock on it, which the kernel frees when the process dies
    .claim.json    the run that holds the claim: `ClaimRecord`
    .claim.lock    held for the moment in which one of the others is read and changed

A claim without a living process is taken over. A run in several processes may have no step at work between two steps. Its claim then holds
as long as its executor lives and its run is not known to have ended. This module knows neither Dagster nor the checks of a step before its
work (work_state.py).
"""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOCK = ".build.lock"
_MUTEX = ".claim.lock"
_RECORD = ".claim.json"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class CatalogBusyError(Exception):
    """Another run holds the catalog; the message names the run, its start and the remedy."""


@dataclass(frozen=True)
class Process:
    """One process. The kernel reuses process numbers; the number and the start (clock ticks since boot) are unique until a reboot."""

    pid: int
    started: int

    @classmethod
    def find(cls, pid: int) -> Process | None:
        """Return the living process of that number; None when there is none, or only its exit code is left."""
        # Field 22 of proc(5) is the start. The list begins with field 3, the state; Z and X are processes that have ended.
        fields = _read_stat(pid)
        return cls(pid, int(fields[19])) if fields and fields[0] not in {"Z", "X"} else None

    @classmethod
    def find_own(cls) -> Process:
        """Return this process."""
        return cls(os.getpid(), int(_read_stat(os.getpid())[19]))

    def is_alive(self) -> bool:
        """Return whether the process still runs."""
        return Process.find(self.pid) == self


@dataclass(frozen=True)
class Holder:
    """The command or job that asks for the catalog."""

    run_id: str
    what: str
    """Name of the command or job, for people."""
    executor: Process | None = None
    """Process that starts the steps, for a run whose steps are processes of their own."""
    dagster_home: str | None = None
    """Folder in which Dagster remembers the run, if it does so after the process has ended."""


class ClaimRecord(msgspec.Struct, frozen=True):
    """Content of `.claim.json`. `is_checked`: the run has found the catalog fit to build on."""

    run_id: str
    what: str
    host: str
    boot_id: str
    process: Process
    since: str
    executor: Process | None = None
    dagster_home: str | None = None
    is_checked: bool = False

    def __str__(self) -> str:
        """Return the claim as text for a message."""
        return f"{self.what} (run {self.run_id}, process {self.process.pid} on {self.host}) since {self.since}"

    def is_between_steps(self, has_ended: Callable[[ClaimRecord], bool]) -> bool:
        """Return whether the run goes on although none of its processes is at work."""
        if self.executor is None:
            return False
        if self.host != socket.gethostname():  # /proc shows no process of another host: an operator deletes the claim of a lost one
            return True
        return self.boot_id == _read_boot_id() and self.executor.is_alive() and not has_ended(self)


class Claim:
    """A catalog held by this process. The claim ends with `release`, or with the process."""

    def __init__(self, root: Path, holder: Holder, lock: IO[str]) -> None:
        """Take the open file `lock`, which carries the lock. Only `claim` makes claims."""
        self._root = root
        self._holder = holder
        self._lock = lock

    @property
    def is_checked(self) -> bool:
        """Return whether the run that holds the catalog has found it fit to build on."""
        record = _read_record(self._root)
        return record is not None and record.run_id == self._holder.run_id and record.is_checked

    def mark_checked(self) -> None:
        """Spare the run's other steps and processes the same check."""
        with _hold_mutex(self._root):
            record = _read_record(self._root)
            if record is not None and record.run_id == self._holder.run_id:
                _write_record(self._root, msgspec.structs.replace(record, is_checked=True))

    def release(self) -> None:
        """Release the claim. The last process of a run clears the record, unless an executor may start further ones."""
        with _hold_mutex(self._root):
            self._lock.close()
            record = _read_record(self._root)
            if record is None or record.run_id != self._holder.run_id or record.executor is not None:
                return
            with (self._root / LOCK).open("a") as lock:
                if _try_lock(lock, fcntl.LOCK_EX):  # no other process of the run holds its shared lock
                    (self._root / _RECORD).unlink(missing_ok=True)


def claim(root: Path, holder: Holder, has_ended: Callable[[ClaimRecord], bool] = lambda _record: False) -> Claim:
    """Claim the catalog at `root` for the run of `holder`; CatalogBusyError when another run holds it.

    `has_ended` returns whether Dagster knows that a run in several processes is over.
    """
    root.mkdir(parents=True, exist_ok=True)
    with _hold_mutex(root):
        # The file is never removed: a lock on a removed file would not stop a process that makes the file again.
        lock = (root / LOCK).open("a")
        try:
            _take_lock(root, holder, lock, has_ended)
        except BaseException:
            lock.close()
            raise
        return Claim(root, holder, lock)


@contextmanager
def hold_claim(root: Path, holder: Holder, has_ended: Callable[[ClaimRecord], bool] = lambda _record: False) -> Iterator[Claim]:
    """Hold a `claim` for the length of a block."""
    held = claim(root, holder, has_ended)
    try:
        yield held
    finally:
        held.release()


def _take_lock(root: Path, holder: Holder, lock: IO[str], has_ended: Callable[[ClaimRecord], bool]) -> None:
    # Success with LOCK_EX shows that no process of any run is at work, whatever the record says: the kernel frees the locks of the dead.
    record = _read_record(root)
    is_mine = record is not None and record.run_id == holder.run_id
    if _try_lock(lock, fcntl.LOCK_EX):
        if record is not None and not is_mine and record.is_between_steps(has_ended):
            raise _build_busy_error(root, record)
        if not is_mine:
            _write_record(root, _build_record(holder))
    elif not is_mine:
        raise _build_busy_error(root, record)
    # flock(2) does not convert a lock atomically: it drops the old lock before it takes the new one. The mutex keeps other claims out.
    if not _try_lock(lock, fcntl.LOCK_SH):
        raise _build_busy_error(root, None)


def _build_record(holder: Holder) -> ClaimRecord:
    return ClaimRecord(
        run_id=holder.run_id,
        what=holder.what,
        host=socket.gethostname(),
        boot_id=_read_boot_id(),
        process=holder.executor or Process.find_own(),
        since=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        executor=holder.executor,
        dagster_home=holder.dagster_home,
    )


def _build_busy_error(root: Path, record: ClaimRecord | None) -> CatalogBusyError:
    if record is None:
        return CatalogBusyError(f"another build is running in {root}: wait for it, or stop it")
    elsewhere = record.executor is not None and record.host != socket.gethostname()
    remedy = f"; if {record.host} is gone for good, delete {root / _RECORD}" if elsewhere else ""
    return CatalogBusyError(f"another build is running in {root}: {record}; wait for it, or stop it{remedy}")


def _try_lock(lock: IO[str], how: int) -> bool:
    """Lock the file, or change its lock to this kind; return False when the lock of another open file prevents it."""
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _hold_mutex(root: Path) -> Iterator[None]:
    """Keep other processes from the lock and the record during a block. Waits; every block lasts a moment."""
    with (root / _MUTEX).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read_record(root: Path) -> ClaimRecord | None:
    """Return the record; None when there is none or it cannot be read.

    A record is unreadable if another version of the program wrote it, or if the disk was full.
    """
    try:
        return msgspec.json.decode((root / _RECORD).read_bytes(), type=ClaimRecord)
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _write_record(root: Path, record: ClaimRecord) -> None:
    pending = root / (_RECORD + ".pending")
    pending.write_bytes(msgspec.json.encode(record))
    pending.rename(root / _RECORD)


def iterate_ancestors(pid: int) -> Iterator[int]:
    """Yield a process and its ancestors."""
    while pid and (fields := _read_stat(pid)):
        yield pid
        pid = int(fields[1])  # field 4 of proc(5): the parent


def _read_stat(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat from the state on: state, parent, ...; empty when there is no such process."""
    # The name of the program is in brackets and may hold spaces and brackets itself, so the fields begin after the last bracket.
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _read_boot_id() -> str:
    return _BOOT_ID.read_text(encoding="ascii").strip()
