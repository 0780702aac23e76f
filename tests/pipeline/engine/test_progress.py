from __future__ import annotations

import pytest

from pipeline.engine.pool import map_ordered
from pipeline.engine.progress import StepProgress, count_one, show_progress, start_counting
from tests.waiting import until


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_last_build_is_the_first_estimate(clock: Clock) -> None:
    progress = StepProgress("edges", expected_seconds=200, later_seconds=4000, clock=clock)
    clock.now += 50
    assert progress.describe() == "edges: 25% done, about 2 min 30 s left; about 1 h 9 min until the end of the build"


def test_finished_inputs_correct_the_estimate(clock: Clock) -> None:
    progress = StepProgress("atoms", expected_seconds=60, later_seconds=None, clock=clock)
    clock.now += 10
    progress.start_counting(10)
    clock.now += 20
    progress.count_one()
    progress.count_one()
    # Eight more take 80 s; the last build's 30 s that are left are too few.
    assert progress.describe() == "atoms: 2 of 10 parts, 27% done, about 1 min 20 s left"


def test_work_after_the_counted_inputs_is_included(clock: Clock) -> None:
    progress = StepProgress("atoms", expected_seconds=1000, later_seconds=None, clock=clock)
    progress.start_counting(2)
    clock.now += 100
    progress.count_one()
    progress.count_one()
    assert progress.describe() == "atoms: 2 of 2 parts, 10% done, about 15 min 0 s left"


def test_first_build_reports_the_seconds_that_a_step_runs(clock: Clock) -> None:
    progress = StepProgress("works", expected_seconds=None, later_seconds=None, clock=clock)
    clock.now += 45
    assert progress.describe() == "works: running for 45 s"


def test_step_that_takes_longer_than_last_time_is_never_done(clock: Clock) -> None:
    progress = StepProgress("works", expected_seconds=30, later_seconds=7, clock=clock)
    clock.now += 60
    assert progress.describe() == "works: 99% done, longer than in the last build, after 1 min 0 s; about 7 s until the end of the build"


@pytest.mark.parametrize("workers", [1, 2])
def test_pool_counts_a_list_of_inputs_for_the_step_that_is_shown(clock: Clock, workers: int) -> None:
    progress = StepProgress("atoms", expected_seconds=None, later_seconds=None, clock=clock)
    with show_progress(progress, lambda _line: None):
        assert list(map_ordered(abs, [1, 2, 3], workers=workers)) == [1, 2, 3]
        assert progress.describe() == "atoms: 3 of 3 parts, running for 0 s"
        list(map_ordered(abs, iter([1, 2]), workers=1))
        assert progress.describe() == "atoms: running for 0 s"
    start_counting(5)
    count_one()
    assert progress.describe() == "atoms: running for 0 s"


def test_lines_come_until_the_step_ends(clock: Clock) -> None:
    lines: list[str] = []
    progress = StepProgress("works", expected_seconds=None, later_seconds=None, clock=clock)
    with show_progress(progress, lines.append, interval_seconds=0.001):
        until(lambda: len(lines) > 1)
    assert set(lines) == {"works: running for 0 s"}
