from __future__ import annotations

import os
from pathlib import Path

import pytest

from catalog_store.memory_budget import MemoryBudget, get_budget, use_budget
from pipeline.engine.duckdb_session import open_duckdb, stream
from pipeline.engine.local import call_alone
from pipeline.engine.usage import measure_usage

ROWS = 12_000_000
"""A sort of them takes 300 MB."""
LIMIT_BYTES = 60_000_000
OVERHEAD_BYTES = 100_000_000
"""DuckDB's code, its threads and a block of the result, which its limit does not cover."""


def sort_rows(spill: str) -> tuple[int, int, int]:
    """Sort more rows than the budget allows; return rows, peak of the process and spilled bytes."""
    with measure_usage() as before:
        pass
    with use_budget(MemoryBudget(2 * LIMIT_BYTES)), measure_usage(lambda: [Path(spill)]) as usage, open_duckdb(Path(spill)) as database:
        rows = sum(frame.height for frame in stream(database, f"SELECT hash(n) AS h FROM range({ROWS}) AS t(n) ORDER BY h"))
    return rows, usage.peak_bytes - before.peak_bytes, usage.spill_bytes


def test_session_spills_and_stays_within_the_budget_of_its_process(tmp_path: Path) -> None:
    rows, grown, spilled = call_alone(sort_rows, str(tmp_path / "spill"))
    assert rows == ROWS
    assert spilled > 0
    assert grown < LIMIT_BYTES + OVERHEAD_BYTES


def count_threads(spill: str) -> tuple[int, str, int]:
    with open_duckdb(Path(spill)) as database:
        row = database.execute("SELECT current_setting('threads')").fetchone()
        return row[0] if row else 0, get_budget().database_limit, os.getpid()


@pytest.mark.parametrize(("total", "limit"), [(4_000_000_000, "1000000000B"), (1_600_000_000, "400000000B")])
def test_session_in_a_worker_has_one_thread_and_its_share(tmp_path: Path, total: int, limit: str) -> None:
    with use_budget(MemoryBudget(total, processes=2)):
        assert call_alone(count_threads, str(tmp_path / "spill"))[:2] == (1, limit)
