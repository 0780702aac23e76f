from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from catalog_store.memory_budget import LEAST_PROCESS_BYTES, LEAST_SHARE_BYTES, MemoryBudget, get_budget, measure_ram, use_budget

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process two processors and 24 GB of RAM."""
    monkeypatch.setattr("catalog_store.memory_budget.count_processors", lambda: 2)
    monkeypatch.setattr("catalog_store.memory_budget.measure_ram", lambda: 24_000_000_000)


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("total", "processes"), [(8_000_000_000, 2), (2 * LEAST_SHARE_BYTES, 2), (2 * LEAST_SHARE_BYTES - 1, 1), (500_000_000, 1)]
)
def test_fewer_processes_work_where_memory_is_short(total: int, processes: int) -> None:
    budget = MemoryBudget.share_out(total)
    assert budget.processes == processes
    assert budget.processes * budget.process_bytes <= total
    assert budget.take_share() == MemoryBudget(budget.process_bytes)


@pytest.mark.usefixtures("machine")
def test_default_is_two_gigabytes_and_four_bytes_a_recording_for_each_process() -> None:
    assert MemoryBudget.of_catalog(0).process_bytes == 2_000_000_000
    assert MemoryBudget.of_catalog(90_000_000).process_bytes == 2_360_000_000


@pytest.mark.usefixtures("machine")
def test_default_is_at_most_half_of_the_ram() -> None:
    assert MemoryBudget.of_catalog(10_000_000_000).total_bytes == 12_000_000_000


def test_database_and_bucket_fit_into_their_process() -> None:
    budget = MemoryBudget(4_000_000_000, processes=2)
    assert budget.database_limit == "1000000000B"
    assert budget.fit_rows(bytes_per_row=1_000, most=10_000_000) == 700_000
    assert budget.fit_rows(bytes_per_row=1_000, most=400_000) == 400_000
    assert budget.fit_rows(bytes_per_row=10**12, most=400_000) == 1


def test_database_of_staging_leaves_room_for_frames_and_keeps_what_the_least_process_has() -> None:
    assert MemoryBudget(4_000_000_000, processes=2).staging_database_limit == "500000000B"
    assert MemoryBudget(LEAST_PROCESS_BYTES).staging_database_limit == MemoryBudget(LEAST_PROCESS_BYTES).database_limit
    assert MemoryBudget(400_000_000).staging_database_limit == MemoryBudget(400_000_000).database_limit


def test_inner_budget_ends_with_its_block() -> None:
    outer, inner = MemoryBudget(2_000_000_000), MemoryBudget(1_000_000_000)
    with use_budget(outer):
        with suppress(KeyError), use_budget(inner):
            assert get_budget() == inner
            raise KeyError
        assert get_budget() == outer


@pytest.mark.parametrize(
    ("lines", "limits", "expected"),
    [
        ("0::/build/night", {"build/memory.max": "3000000000", "build/night/memory.max": "max"}, 3_000_000_000),
        ("0::/build/night", {"build/memory.max": "3000000000", "build/night/memory.max": "2000000000"}, 2_000_000_000),
        ("0::/", {"memory.max": "1000000000"}, 1_000_000_000),
        ("0::/", {"memory.max": "max"}, MACHINE),
        ("5:cpu,memory:/job\n4:cpuset:/other", {"memory/job/memory.limit_in_bytes": "1500000000"}, 1_500_000_000),
        ("5:memory:/job", {"memory/job/memory.limit_in_bytes": str(2**63 - 4096)}, MACHINE),
        ("", {}, MACHINE),
    ],
)
def test_ram_is_the_least_of_the_machine_and_its_control_groups(tmp_path: Path, lines: str, limits: dict[str, str], expected: int) -> None:
    (tmp_path / "cgroup").write_text(lines)
    for name, limit in limits.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(limit + "\n")
    assert measure_ram(tmp_path, tmp_path / "groups") == expected


def test_ram_without_control_groups_is_the_machines(tmp_path: Path) -> None:
    assert measure_ram(tmp_path, tmp_path) == MACHINE


def test_steps_that_run_at_once_share_the_memory() -> None:
    budget = MemoryBudget.share_out(8 << 30)
    assert budget.divide(1) == budget
    assert budget.divide(2).total_bytes == 4 << 30
