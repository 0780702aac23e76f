"""Memory that the processes of a build may take: what the operator allows, shared between the processes that work at once.

A build sets the budget for each of its steps (`use_budget`), and a pool gives each worker a share. Every DuckDB session, pool and index
builder takes its limit from here. Without a build, as in `verify`, the default for an empty catalog holds. A budget decides about memory
and speed and never about rows. Out of scope: how a setting is written (pipeline/settings.py).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

PROCESS_BYTES = 2_000_000_000
"""Default of one process: libraries, one bucket and DuckDB's buffers."""
BYTES_PER_RECORDING = 4
"""Default that a process has besides: columns of numbers of the whole catalog."""
LEAST_PROCESS_BYTES = 768 << 20
"""Least memory of a build: libraries take 250 MB, the largest bucket of linkage 350 MB."""
LEAST_SHARE_BYTES = 1_250 << 20
"""Least memory of a process beside others. A range of recordings took 1.24 GB in a process that was to have .8."""
RAM_SHARE = 0.5
"""Largest default: the file cache, a server or another program has the rest."""
DATABASE_SHARE = 0.5
"""Share of a process for DuckDB's buffers. Results on their way, libraries and what DuckDB does not count need the rest."""
STAGING_DATABASE_SHARE = 0.25
"""Share of a process for DuckDB's buffers in staging, where blocks and the rows of a part are in memory beside them."""
BUCKET_SHARE = 0.35
"""Share of a process for the rows of one bucket, at their widest point."""


@dataclass(frozen=True)
class MemoryBudget:
    """Bytes for a number of processes that work at once."""

    total_bytes: int
    processes: int = 1

    @classmethod
    def share_out(cls, total_bytes: int) -> Self:
        """Return the budget of a build: a process per processor, fewer when each would have less than LEAST_SHARE_BYTES."""
        return cls(total_bytes, max(1, min(count_processors(), total_bytes // LEAST_SHARE_BYTES)))

    @classmethod
    def of_catalog(cls, recordings: int) -> Self:
        """Return the default budget for a catalog of this size."""
        wanted = count_processors() * (PROCESS_BYTES + BYTES_PER_RECORDING * recordings)
        return cls.share_out(min(int(measure_ram() * RAM_SHARE), wanted))

    @property
    def process_bytes(self) -> int:
        """Bytes of one process."""
        return self.total_bytes // self.processes

    @property
    def database_limit(self) -> str:
        """DuckDB's `memory_limit` in one process."""
        return f"{int(self.process_bytes * DATABASE_SHARE)}B"

    @property
    def staging_database_limit(self) -> str:
        """DuckDB's `memory_limit` in one process that stages a dump."""
        # Small budgets keep what the smallest one allows: DuckDB's threads pin some 100 MB each.
        least = int(min(self.process_bytes, LEAST_PROCESS_BYTES) * DATABASE_SHARE)
        return f"{max(least, int(self.process_bytes * STAGING_DATABASE_SHARE))}B"

    @property
    def lone_database_limit(self) -> str:
        """DuckDB's `memory_limit` in a process that works while no other one does."""
        return f"{int(self.total_bytes * DATABASE_SHARE)}B"

    def fit_rows(self, bytes_per_row: int, most: int) -> int:
        """Return how many rows a bucket may hold, at most `most`. `bytes_per_row` is what a row takes at the widest point of its work."""
        return max(1, min(most, int(self.process_bytes * BUCKET_SHARE) // bytes_per_row))

    def divide(self, shares: int) -> MemoryBudget:
        """Return the budget of one of several steps that work at once."""
        return self if shares == 1 else MemoryBudget.share_out(self.total_bytes // shares)

    def take_share(self) -> MemoryBudget:
        """Return the budget of one of the processes."""
        return MemoryBudget(self.process_bytes)


_set: list[MemoryBudget] = []
"""Budgets that blocks of this process have set, the innermost last."""


def get_budget() -> MemoryBudget:
    """Return the budget of this process."""
    return _set[-1] if _set else MemoryBudget.of_catalog(0)


def set_budget(budget: MemoryBudget) -> None:
    """Set the budget of this process to its end."""
    _set.append(budget)


@contextmanager
def use_budget(budget: MemoryBudget) -> Iterator[None]:
    """Set the budget of this process for a block."""
    _set.append(budget)
    try:
        yield
    finally:
        _set.remove(budget)


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    # os.cpu_count() also counts the processors that taskset or a cpuset withholds from this process.
    return len(os.sched_getaffinity(0))


@cache
def measure_ram(process: Path = Path("/proc/self"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of RAM that this process may use: the machine's, or less where a control group limits it."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_read_group_limits(process, groups)])


def _read_group_limits(process: Path, groups: Path) -> Iterator[int]:
    """Yield the limits of the control groups of this process, of both versions (cgroups(7)); none where there are no such groups."""
    try:
        lines = (process / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            tree, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            tree, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        # Every group above limits its members, too. In a container the tree begins at its own group.
        group = Path(path.lstrip("/"))
        for place in (group, *group.parents):
            yield from _read_limit(tree / place / name)


def _read_limit(file: Path) -> Iterator[int]:
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:  # no such group in this tree, or no limit at its root
        return
    if text.isdecimal():  # else "max"
        yield int(text)
