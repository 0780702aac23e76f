"""Progress of a step: which share is done and how long the rest takes, as a line of text now and then.

The seconds of the last build are the first estimate. Where a pool works through a known number of inputs, those that are finished correct
it. Out of scope: where the lines go, and the costs of builds.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTERVAL_SECONDS = 30.0
"""Time between two lines. A shorter step says nothing."""


class StepProgress:
    """The progress of one step."""

    def __init__(
        self, name: str, *, expected_seconds: float | None, later_seconds: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`expected_seconds`: of the step in the last build; `later_seconds`: of all steps after it. None: not known."""
        self._name = name
        self._expected, self._later = expected_seconds, later_seconds
        self._clock = clock
        self._started = self._counting_since = clock()
        self._done, self._total = 0, 0

    def start_counting(self, total: int) -> None:
        """Begin to count `total` inputs; 0 when their number is not known. A step may count several lists, one after the other."""
        self._counting_since, self._done, self._total = self._clock(), 0, total

    def count_one(self) -> None:
        """Count an input as finished."""
        self._done += self._total > 0

    def describe(self) -> str:
        """Return the share that is done, and the time that the rest of the step and of the build takes."""
        now = self._clock()
        elapsed = now - self._started
        counted = f"{self._done} of {self._total} parts, " if self._done else ""
        rest = self._estimate_rest(now, elapsed)
        if rest is None or (not rest and self._expected is None):
            return f"{self._name}: {counted}running for {_format_seconds(elapsed)}"
        share = elapsed / (elapsed + rest) if elapsed else 0.0
        # More than the estimate has passed: how much is left is unknown.
        left = f"about {_format_seconds(rest)} left" if rest else f"longer than in the last build, after {_format_seconds(elapsed)}"
        whole = "" if self._later is None else f"; about {_format_seconds(rest + self._later)} until the end of the build"
        return f"{self._name}: {counted}{min(share, 0.99):.0%} done, {left}{whole}"

    def _estimate_rest(self, now: float, elapsed: float) -> float | None:
        by_last_build = None if self._expected is None else max(0.0, self._expected - elapsed)
        if not self._done:
            return by_last_build
        by_count = (now - self._counting_since) * (self._total - self._done) / self._done
        # Further lists of inputs may follow the one that is counted, so the count alone can be too small.
        return max(by_count, by_last_build or 0.0)


_shown: list[StepProgress] = []
"""The steps of this process that are shown; the inputs of its pools belong to the last one."""


@contextmanager
def show_progress(progress: StepProgress, report: Callable[[str], None], interval_seconds: float = INTERVAL_SECONDS) -> Iterator[None]:
    """Report the progress of the block at intervals."""
    ended = threading.Event()

    def report_at_intervals() -> None:
        while not ended.wait(interval_seconds):
            report(progress.describe())

    thread = threading.Thread(target=report_at_intervals, daemon=True, name="progress")
    _shown.append(progress)
    thread.start()
    try:
        yield
    finally:
        _shown.remove(progress)
        ended.set()
        thread.join()


def start_counting(total: int) -> None:
    """Begin to count inputs of the step that is shown, if there is one; 0 when their number is not known."""
    if _shown:
        _shown[-1].start_counting(total)


def count_one() -> None:
    """Count an input of the step that is shown as finished."""
    if _shown:
        _shown[-1].count_one()


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
