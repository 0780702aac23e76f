from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.engine.usage import Usage
from pipeline.quality.build_costs import COST_NAMES, KEPT_BUILDS, BuildCost, StepCost, add_build_cost, find_step_costs, read_build_costs

if TYPE_CHECKING:
    from pathlib import Path


def build(number: int, *steps: StepCost) -> BuildCost:
    return BuildCost(f"s{number}", number, steps)


def test_last_builds_are_kept_newest_first_and_the_oldest_go(tmp_path: Path) -> None:
    file = tmp_path / "report" / "costs.json"
    for number in range(KEPT_BUILDS + 3):
        add_build_cost(file, build(number, StepCost("atoms", float(number), 2.0)))
    kept = read_build_costs(file)
    assert [one.recordings for one in kept] == list(range(KEPT_BUILDS + 2, 2, -1))
    assert kept[0].steps == (StepCost("atoms", KEPT_BUILDS + 2.0, 2.0),)


@pytest.mark.parametrize("content", [b"", b"[{", b'{"steps": 1}', b"[1]", b'[{"snapshot_id": "\xad"}]'])
def test_unreadable_history_is_ignored_and_replaced(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "costs.json"
    file.write_bytes(content)
    assert read_build_costs(file) == []
    add_build_cost(file, build(1))
    assert read_build_costs(file) == [build(1)]


def test_step_is_compared_with_the_last_build_that_ran_it() -> None:
    new, old = StepCost("genres", 1.0, 1.0), StepCost("genres", 9.0, 9.0)
    staged = StepCost("staging", 5.0, 5.0)
    assert find_step_costs([build(3, new), build(2, old, staged), build(1, StepCost("staging", 7.0, 7.0))]) == {
        "genres": new,
        "staging": staged,
    }


def test_total_adds_times_and_takes_the_largest_peak() -> None:
    total = build(1, StepCost("a", 1.0, 2.0, 1.0, 10, 7, 4, 100), StepCost("b", 2.0, 3.0, 0.5, 8, 9, 5, 50)).total
    assert total == StepCost("s1", 3.0, 5.0, 1.5, 10, 9, 5, 150)
    assert build(1).total == StepCost("s1", 0, 0)


def test_every_measured_figure_is_kept() -> None:
    assert len(COST_NAMES) == len(vars(Usage()))
