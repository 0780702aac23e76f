"""Tests of the delay before a dead process is restarted, with a manual clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from catalog_api.server.restart_backoff import FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS, STEADY_SECONDS, RestartBackoff


def test_process_that_ran_steadily_is_restarted_at_once() -> None:
    restarts = RestartBackoff()
    for start in (100.0, 1000.0, 2000.0):
        restarts.record_start(start)
        assert restarts.record_death(start + STEADY_SECONDS) == 0


def test_delay_grows_for_a_process_that_dies_at_once() -> None:
    restarts, now, waits = RestartBackoff(), 100.0, []
    for _ in range(9):
        restarts.record_start(now)
        waits.append(restarts.record_death(now + 1))
        now += 1 + waits[-1]
    assert waits == [0, FIRST_DELAY_SECONDS, 1, 2, 4, 8, 16, LONGEST_DELAY_SECONDS, LONGEST_DELAY_SECONDS]


@given(st.lists(st.floats(0, STEADY_SECONDS * 0.99), min_size=1, max_size=60))
def test_crash_loop_never_restarts_without_delay(lives: list[float]) -> None:
    restarts, now, waited = RestartBackoff(), 100.0, 0.0
    for life in lives:
        restarts.record_start(now)
        seconds = restarts.record_death(now + life)
        waited += seconds
        now += life + seconds
    starts = len(lives)
    least = sum(min(FIRST_DELAY_SECONDS * 2**number, LONGEST_DELAY_SECONDS) for number in range(starts - 1))
    assert waited >= least * 0.99
