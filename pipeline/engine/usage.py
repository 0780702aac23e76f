"""Cost of a stage: wall and processor seconds (children included) and the peak memory of this process while it ran."""

from __future__ import annotations

import os
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


@dataclass
class Usage:
    """Cost of a measured block. The fields are filled when the block ends."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0


@contextmanager
def measure_usage() -> Iterator[Usage]:
    """Measure the block. The peak is that of the block where the kernel lets a process reset it, else of the process so far."""
    usage = Usage()
    _reset_peak()
    # The peak is reset before the clocks start, so that its system call is no part of the measurement.
    wall, cpu = time.perf_counter(), _read_cpu_seconds()
    try:
        yield usage
    finally:
        usage.seconds = time.perf_counter() - wall
        usage.cpu_seconds = _read_cpu_seconds() - cpu
        usage.peak_bytes = _read_peak_bytes()


def _read_cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _reset_peak() -> None:
    try:
        # "5" resets VmHWM to the present size (proc_pid_clear_refs(5)). resource.getrusage has no such reset: its peak covers the whole
        # process.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return  # not Linux, or not allowed: the peak since the process started is the best there is


def _read_peak_bytes() -> int:
    try:
        found = _PEAK.search(Path("/proc/self/status").read_text(encoding="ascii"))
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0
