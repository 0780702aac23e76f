"""Cost of a stage: wall and processor seconds, peak memory, spilled and written bytes, of this process and of its pool workers.

Workers are children of a fork server and never of this process, so the system charges their cost to nobody here. A worker therefore sends
its cost with each result (`measure_worker`), and the pool charges it to the measured blocks that are open (`charge_worker`).
"""

from __future__ import annotations

import os
import re
import resource
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")

_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_WRITTEN = re.compile(r"^write_bytes: (\d+)$", re.MULTILINE)
_SAMPLE_SECONDS = 0.2
_SAMPLING_SHARE = 0.02
"""Share of the time that the gauge of the spill folders may take: a folder of many files is measured less often."""
_BLOCK_BYTES = 512
"""Unit of `st_blocks`, on every file system (stat(2))."""


class WorkerCost(NamedTuple):
    """Cost of a pool worker since it last sent one."""

    cpu_seconds: float
    peak_bytes: int
    written_bytes: int


@dataclass(eq=False)
class Usage:
    """Cost of a measured block. The fields are filled when the block ends."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """CPU seconds of this process, the processes of its steps, pool workers, and the commands that any of these has waited for."""
    worker_cpu_seconds: float = 0.0
    """The part of pool workers."""
    peak_bytes: int = 0
    """Peak memory of this process, or of a step in a process of its own if that is larger."""
    worker_peak_bytes: int = 0
    """Peak memory of the largest pool worker."""
    spill_bytes: int = 0
    """Largest size of the spill folders. It is sampled, so the peak of a short block can be between two samples."""
    written_bytes: int = 0
    """Bytes that the process and its workers gave to disks: tables, spilled data and everything else. Memory file systems do not count."""

    def charge(self, cost: WorkerCost) -> None:
        """Add the cost of a pool worker."""
        self.worker_cpu_seconds += cost.cpu_seconds
        self.worker_peak_bytes = max(self.worker_peak_bytes, cost.peak_bytes)
        self.written_bytes += cost.written_bytes

    def add(self, other: Usage) -> None:
        """Add the cost of a block in another process, whose workers count as workers and which counts as this process itself."""
        self.charge(WorkerCost(other.worker_cpu_seconds, other.worker_peak_bytes, other.written_bytes))
        self.cpu_seconds += other.cpu_seconds - other.worker_cpu_seconds
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)


_open: list[Usage] = []
"""The measured blocks of this process that have not ended."""
_sent_cpu_seconds = 0.0
_sent_written_bytes = 0


@contextmanager
def measure_usage(list_spill_folders: Callable[[], Sequence[Path]] = tuple) -> Iterator[Usage]:
    """Measure the block. The peak is that of the block where the kernel lets a process reset it, else of the process so far.

    `list_spill_folders` returns the folders that hold spilled data at the moment.
    """
    usage = Usage()
    _reset_peak()
    gauge = _SpillGauge(list_spill_folders)
    gauge.start()
    # The peak is reset before the clocks start, so that its system call is not part of the measurement.
    wall, cpu, written = time.perf_counter(), _read_cpu_seconds(), _read_written_bytes()
    _open.append(usage)
    try:
        yield usage
    finally:
        _open.remove(usage)
        usage.seconds = time.perf_counter() - wall
        # Steps in processes of their own have added their cost before the block ends.
        usage.cpu_seconds += _read_cpu_seconds() - cpu + usage.worker_cpu_seconds
        usage.peak_bytes = max(_read_peak_bytes(), usage.peak_bytes)
        usage.written_bytes += _read_written_bytes() - written
        usage.spill_bytes = gauge.stop()


def measure_worker() -> WorkerCost:
    """Return the cost of this pool worker since the last call; the first call covers its start, imports included."""
    global _sent_cpu_seconds, _sent_written_bytes  # counters of a process, as those of the kernel are
    cpu, written, peak = _read_cpu_seconds(), _read_written_bytes(), _read_peak_bytes()
    cost = WorkerCost(cpu - _sent_cpu_seconds, peak, written - _sent_written_bytes)
    _sent_cpu_seconds, _sent_written_bytes = cpu, written
    # The next result may belong to another measured block.
    _reset_peak()
    return cost


def call_measured(function: Callable[[Item], Result], item: Item) -> tuple[Result, WorkerCost]:
    """Call the function in a worker, and measure what the worker has cost since its last result."""
    return function(item), measure_worker()


def charge_worker(cost: WorkerCost) -> None:
    """Charge the cost of a pool worker to every open block."""
    for usage in _open:
        usage.charge(cost)


def call_as_step(function: Callable[[], Result]) -> tuple[Result, Usage]:
    """Call the function in a process that has just started for it, and measure what the process has cost."""
    started = _read_cpu_seconds()
    with measure_usage() as usage:
        result = function()
    usage.cpu_seconds += started
    return result, usage


def charge_step(cost: Usage) -> None:
    """Charge the cost of a step in a process of its own to every open block."""
    for usage in _open:
        usage.add(cost)


class _SpillGauge(threading.Thread):
    """Thread that keeps the largest size of the spill folders."""

    def __init__(self, list_folders: Callable[[], Sequence[Path]]) -> None:
        super().__init__(daemon=True, name="spill gauge")
        self._list_folders = list_folders
        self._ended = threading.Event()
        self._largest = 0

    def run(self) -> None:
        pause = _SAMPLE_SECONDS
        while not self._ended.wait(pause):
            started = time.thread_time()
            self._largest = max(self._largest, sum(map(_measure_folder, self._list_folders())))
            pause = max(_SAMPLE_SECONDS, (time.thread_time() - started) / _SAMPLING_SHARE)

    def stop(self) -> int:
        """End the thread and return the largest size. The last sample is taken now, for what a block leaves behind."""
        self._ended.set()
        self.join()
        return max(self._largest, sum(map(_measure_folder, self._list_folders())))


def _measure_folder(folder: Path) -> int:
    """Return the bytes that the files below a folder take on disk; files that vanish meanwhile do not count."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(place, name)).st_blocks  # noqa: PTH118 - a path object costs as much as the call
            except OSError:
                continue
    return size * _BLOCK_BYTES


def _read_cpu_seconds() -> float:
    # RUSAGE_CHILDREN counts processes that were waited for: commands, and never pool workers.
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))


def _reset_peak() -> None:
    try:
        # "5" resets VmHWM to the present size (proc_pid_clear_refs(5)). resource.getrusage has no such reset: its peak covers the whole
        # process.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return  # not Linux, or not allowed: the peak since the process started is the best there is


def _read_peak_bytes() -> int:
    return _read_number("/proc/self/status", _PEAK) * 1024


def _read_written_bytes() -> int:
    return _read_number("/proc/self/io", _WRITTEN)


def _read_number(file: str, pattern: re.Pattern[str]) -> int:
    try:
        found = pattern.search(Path(file).read_text(encoding="ascii"))
    except OSError:
        return 0
    return int(found[1]) if found else 0
