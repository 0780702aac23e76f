from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.engine.checkpoints import Checkpoints, use_token
from pipeline.engine.pool import map_ordered, start_workers
from pipeline.engine.progress import StepProgress, count_bytes, count_one, enter_section, show_progress
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

SEARCHED = {"begin": 10.0, "read": 40.0, "join": 30.0, "write": 20.0}


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(clock: Clock) -> StepProgress:
    return StepProgress("works", expected=SEARCHED, is_to_scale=True, later_seconds=4000, clock=clock)


def test_last_run_is_the_first_estimate(progress: StepProgress, clock: Clock) -> None:
    clock.now += 5
    assert progress.describe() == "works: 5% done (begin), about 1 min 35 s left; about 1 h 8 min until the end of the build"


def test_section_counts_as_much_as_it_took_in_the_last_run(progress: StepProgress, clock: Clock) -> None:
    clock.now += 10
    progress.enter("read", 4)
    progress.count()
    assert progress.measure() == pytest.approx(0.2)
    progress.enter("join")
    assert progress.measure() == pytest.approx(0.5)
    # Within a query only the clock tells.
    clock.now += 10
    assert 0.5 < progress.measure() < 0.8


def test_finished_sections_correct_the_estimate(progress: StepProgress, clock: Clock) -> None:
    for section, seconds in (("read", 20), ("join", 80)):
        clock.now += seconds
        progress.enter(section)
    # Half of the step took twice its time. The last run still has a voice: 55 s of its 60 would have been 110.
    assert progress.describe().startswith("works: 50% done (join), about 1 min 32 s left; ")


def test_shares_of_another_catalog_tell_times_once_enough_is_finished(clock: Clock) -> None:
    progress = StepProgress("works", expected=SEARCHED, is_to_scale=False, later_seconds=100, clock=clock)
    clock.now += 300
    assert progress.describe() == "works: 0% done (begin), running for 5 min 0 s"
    progress.enter("read", 4)
    assert progress.describe() == "works: 10% done (read, 0 of 4 parts), about 45 min 0 s left; about 1 h 35 min until the end of the build"


@pytest.mark.parametrize(("megabytes", "told"), [(0.1, "running for 30 s"), (4.9, "running for 30 s"), (7, "about 6 min 39 s left")])
def test_first_bytes_of_a_first_dump_tell_no_time(clock: Clock, megabytes: float, told: str) -> None:
    progress = StepProgress("staging", expected={"reading": 60.0}, is_to_scale=False, later_seconds=None, clock=clock)
    progress.enter("reading", 100_000_000)
    clock.now += 30
    progress.count_bytes("dump", int(megabytes * 1e6))
    assert progress.describe() == f"staging: {int(megabytes)}% done (reading), {told}"


def test_clock_tells_the_share_of_a_dump_whose_bytes_nobody_counts(clock: Clock) -> None:
    progress = StepProgress("staging", expected={"reading": 60.0}, is_to_scale=True, later_seconds=None, clock=clock)
    progress.enter("reading", 100_000_000)
    for seconds, share in ((30, 0.5), (20, 50 / 60), (100, 0.95)):
        clock.now += seconds
        assert progress.measure() == pytest.approx(share)


def test_step_without_any_earlier_run_says_how_long_it_runs(clock: Clock) -> None:
    progress = StepProgress("works", expected={}, is_to_scale=False, later_seconds=None, clock=clock)
    clock.now += 45
    progress.enter("read", 4)
    assert progress.describe() == "works: read, 0 of 4 parts, running for 45 s"


def test_step_that_takes_longer_than_last_time_is_never_done_before_its_end(progress: StepProgress, clock: Clock) -> None:
    progress.enter("write")
    clock.now += 100_000
    assert progress.measure() == pytest.approx(0.99)
    progress.finish()
    assert progress.measure() == 1


def test_share_never_falls(progress: StepProgress, clock: Clock) -> None:
    shares = []
    for section, inputs in (("read", 2), ("unknown", 3), ("join", 1), ("read", 2), ("begin", 1), ("write", 7)):
        progress.enter(section, inputs)
        for _ in range(inputs + 1):
            clock.now += 7
            shares.append(progress.measure())
            progress.count()
    progress.finish()
    assert [*shares, progress.measure()] == sorted([*shares, progress.measure()])
    assert len(set(shares)) > 5


def test_section_of_one_name_may_come_twice(clock: Clock) -> None:
    progress = StepProgress("works", expected={"read": 1.0, "join": 1.0, "read 2": 2.0}, is_to_scale=True, later_seconds=None, clock=clock)
    for section in ("read", "join", "read"):
        clock.now += 3
        progress.enter(section)
    assert progress.measure() == 0.5
    clock.now += 4
    progress.finish()
    assert progress.seconds == {"begin": 3, "read": 3, "join": 3, "read 2": 4}


def test_inputs_of_a_killed_build_are_done_and_cost_no_time(progress: StepProgress, clock: Clock) -> None:
    clock.now += 10
    progress.enter("read", 4, 3)
    assert progress.measure() == pytest.approx(0.4)
    assert progress.is_resumed
    # The 10 s were those of the first section, so the rest goes on at the pace of the last run.
    assert progress.describe().startswith("works: 40% done (read, 3 of 4 parts), about 1 min 0 s left")


def test_sections_that_are_left_out_are_done_and_cost_no_time(progress: StepProgress, clock: Clock) -> None:
    clock.now += 10
    progress.enter("write")
    assert progress.measure() == pytest.approx(0.8)
    assert progress.describe().startswith("works: 80% done (write), about 20 s left")


def test_bytes_that_are_read_twice_count_once(clock: Clock) -> None:
    progress = StepProgress("staging", expected={"reading": 10.0}, is_to_scale=False, later_seconds=None, clock=clock)
    with show_progress(progress, lambda _line: None):
        enter_section("reading", 2_000_000)
        for position in (100_000, 50_000, 200_000):
            count_bytes("dump", position)
        count_bytes("other", 800_000)
        assert progress.measure() == pytest.approx(0.5)
        assert "reading)" in progress.describe()


@pytest.mark.parametrize("workers", [1, 2])
def test_list_of_inputs_is_a_section_of_the_step_that_is_shown(clock: Clock, workers: int) -> None:
    progress = StepProgress("atoms", expected={"abs": 3.0, "after abs": 1.0}, is_to_scale=False, later_seconds=None, clock=clock)
    with show_progress(progress, lambda _line: None):
        for number, _ in enumerate(map_ordered(abs, [1, 2, 3], workers=workers)):
            assert progress.measure() == pytest.approx(number / 4)
        assert progress.measure() == 0.75
    assert progress.measure() == 1
    enter_section("write")
    count_one()
    assert "write" not in progress.seconds


def test_checkpoints_count_the_inputs_that_a_killed_build_has_finished(clock: Clock, tmp_path: Path) -> None:
    def run(progress: StepProgress, items: list[int]) -> None:
        with use_token("night"), show_progress(progress, lambda _line: None), start_workers(1) as pool:
            Checkpoints.open(tmp_path / "spill").run("read", abs, items, pool)

    steps = [StepProgress("atoms", expected={"read": 3.0}, is_to_scale=True, later_seconds=None, clock=clock) for _ in range(2)]
    run(steps[0], [1, 2])
    run(steps[1], [1, 2, 3])
    assert [step.is_resumed for step in steps] == [False, True]


def test_step_that_fails_is_not_finished(progress: StepProgress) -> None:
    with pytest.raises(ValueError, match="broken"), show_progress(progress, lambda _line: None):
        raise ValueError("broken")
    assert progress.measure() < 1


def test_lines_come_until_the_step_ends(clock: Clock) -> None:
    lines: list[str] = []
    progress = StepProgress("works", expected={}, is_to_scale=False, later_seconds=None, clock=clock)
    with show_progress(progress, lines.append, interval_seconds=0.001):
        until(lambda: len(lines) > 1)
    assert set(lines) == {"works: begin, running for 0 s"}
