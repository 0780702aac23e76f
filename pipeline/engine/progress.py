"""Progress of a step: which share is done and how long the rest takes, as a line of text now and then.

A step passes *sections*: a query of its workbench, the inputs of a pool, the files of a dump. A section counts as much as it took in an
earlier run, and the finished share corrects the time that is left. Out of scope: where the lines go, and which seconds are expected
(pipeline/quality/section_seconds.py).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

INTERVAL_SECONDS = 30.0
"""Time between two lines. A shorter step says nothing."""
FIRST_SECTION = "begin"
"""Name of what a step does before its first named section."""

_TRUST = 0.1
"""Share of a step after which its own pace counts as much as that of the last build."""
_MOST_OF_AN_INPUT = 0.95
"""Largest share of an input that counts before its end: it may take longer than the clock says."""
_MOST_SHOWN = 1_000_000
"""Inputs below which their number is shown. More are the bytes of a dump."""
_LEAST_MADE = 0.05
"""Share of a step after which its own pace is told where nothing else is known. One of .07 % told 58 hours for a build of 10 minutes."""


class StepProgress:
    """The progress of one step."""

    def __init__(
        self,
        name: str,
        *,
        expected: Mapping[str, float],
        is_to_scale: bool,
        later_seconds: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin a step.

        Args:
            name: the step.
            expected: seconds of each section, in order; empty if none is known.
            is_to_scale: whether they are those of a catalog of this size. If not, they are good for shares, but not for times.
            later_seconds: of all steps after this one, to the same scale; None: not known.
            clock: seconds since any moment.
        """
        self.name = name
        self.seconds: dict[str, float] = {}
        """Seconds of each section that has ended."""
        self._expected, self._is_to_scale, self._later = expected, is_to_scale, later_seconds
        ends = list(accumulate(expected.values(), initial=0.0))
        self._starts, self._total = dict(zip(expected, ends, strict=False)), ends[-1]
        self._clock = clock
        self._began = self._entered = self._counted = clock()
        self._times = Counter({FIRST_SECTION: 1})
        self._read: Counter[str] = Counter()
        self._section = self._title = FIRST_SECTION
        self._inputs, self._done = 1, 0
        self._passed = self._found = self._left_out = 0.0
        self._pace: float | None = 1.0 if is_to_scale else None
        self._share = 0.0

    @property
    def is_resumed(self) -> bool:
        """Whether the step has found inputs that a killed build had finished. Its seconds are then too few."""
        return self._found > 0

    def enter(self, section: str, inputs: int = 1, finished: int = 0) -> None:
        """Begin a section of so many inputs, of which a killed build has finished some. The one that was entered last goes on."""
        if section != self._title:
            self._end_section()
            self._title = section
            self._times[section] += 1
            self._section = section if self._times[section] == 1 else f"{section} {self._times[section]}"
            # A section that no run has met before takes its time from the next one.
            start = self._starts.get(self._section, self._passed)
            # Sections may be left out, such as those behind which a killed build goes on. They cost no time here.
            self._left_out += max(start - self._passed, 0.0)
            self._passed = start
        self._inputs, self._done, self._counted = inputs, finished, self._clock()
        if finished:
            self._found += max(self._expected.get(self._section, 0.0), 1e-9) * finished / inputs

    def count(self, inputs: int = 1) -> None:
        """Count inputs of the section as finished."""
        self._done += inputs
        self._counted = self._clock()

    def count_bytes(self, file: str, position: int) -> None:
        """Count the bytes of a file up to a position that are not counted yet."""
        if position > self._read[file]:
            self.count(position - self._read[file])
            self._read[file] = position

    def finish(self) -> None:
        """End the step."""
        self._end_section()
        self._share = 1.0

    def measure(self) -> float:
        """Return the share that is done, from 0 to 1. It never falls."""
        expected = self._expected.get(self._section, 0.0)
        part = 0.0
        if self._done < self._inputs and expected and self._pace:
            # DuckDB reads some dumps itself, so their bytes are not counted.
            uncounted = self._inputs if self._inputs >= _MOST_SHOWN and not self._done else 1
            part = min((self._clock() - self._counted) * self._inputs / (expected * self._pace), _MOST_OF_AN_INPUT * uncounted)
        inside = min((self._done + part) / self._inputs, 1.0) if self._inputs else 1.0
        done = self._passed + expected * inside
        self._share = max(self._share, min(done / self._total, 1.0) if self._total else 0.0)
        return self._share

    def describe(self) -> str:
        """Return the share that is done, and the time that the rest of the step and of the build takes."""
        share, elapsed = self.measure(), self._clock() - self._began
        place = f"{self._title}, {self._done} of {self._inputs} parts" if 1 < self._inputs < _MOST_SHOWN else self._title
        done = f"{self.name}: {int(share * 100)}% done ({place})" if self._total else f"{self.name}: {place}"
        pace = self._find_pace(share * self._total, elapsed)
        if not self._total or pace is None:
            return f"{done}, running for {_format_seconds(elapsed)}"
        rest = (1 - share) * self._total * pace
        line = f"{done}, about {_format_seconds(rest)} left"
        if self._later is None:
            return line
        later = self._later * (1.0 if self._is_to_scale else pace)
        return f"{line}; about {_format_seconds(rest + later)} until the end of the build"

    def _end_section(self) -> None:
        now = self._clock()
        self.seconds[self._section] = self.seconds.get(self._section, 0.0) + now - self._entered
        self._entered = now
        self._passed += self._expected.get(self._section, 0.0)
        self._pace = self._find_pace(self._passed, now - self._began)

    def _find_pace(self, done: float, elapsed: float) -> float | None:
        """Return how much longer than expected this run takes, as a factor; None: not known yet.

        `done`: the seconds expected for what is done now.
        """
        made = max(done - self._found - self._left_out, 0.0)
        if not self._is_to_scale:
            return elapsed / made if made and made >= _LEAST_MADE * self._total else None
        prior = _TRUST * self._total
        return (elapsed + prior) / (made + prior) if made + prior else None


class Sections(Protocol):
    """A receiver of the sections of a step, such as `StepProgress`."""

    def enter(self, section: str, inputs: int = 1, finished: int = 0) -> None:
        """Begin a section."""

    def count(self, inputs: int = 1) -> None:
        """Count inputs of the section as finished."""

    def count_bytes(self, file: str, position: int) -> None:
        """Count the bytes of a file up to a position."""


_shown: list[Sections] = []
"""The steps of this process that are shown; the inputs of its pools belong to the last one."""


@contextmanager
def show_progress(progress: StepProgress, report: Callable[[str], None], interval_seconds: float = INTERVAL_SECONDS) -> Iterator[None]:
    """Report the progress of the block at intervals. The step is finished if the block ends without an error."""
    ended = threading.Event()

    def report_at_intervals() -> None:
        while not ended.wait(interval_seconds):
            report(progress.describe())

    thread = threading.Thread(target=report_at_intervals, daemon=True, name="progress")
    _shown.append(progress)
    thread.start()
    try:
        yield
        progress.finish()
    finally:
        _shown.remove(progress)
        ended.set()
        thread.join()


def send_progress(sections: Sections) -> None:
    """Pass the sections of this process on to `sections`, to the end of the process."""
    _shown.append(sections)


def find_progress() -> Sections | None:
    """Return the step that is shown, if there is one."""
    return _shown[-1] if _shown else None


def enter_section(section: str, inputs: int = 1, finished: int = 0) -> None:
    """Begin a section of the step that is shown, if there is one (see `StepProgress.enter`)."""
    if _shown:
        _shown[-1].enter(section, inputs, finished)


@contextmanager
def enter_block(section: str, inputs: int, finished: int = 0) -> Iterator[None]:
    """Begin a section that ends with the block. What follows it is a section of its own, until one with another name begins."""
    enter_section(section, inputs, finished)
    yield
    enter_section(f"after {section}")


def count_one() -> None:
    """Count an input of the section as finished."""
    if _shown:
        _shown[-1].count()


def count_bytes(file: str, position: int) -> None:
    """Count the bytes of a file up to a position as finished, in a section of bytes. Those that are read twice count once."""
    if _shown:
        _shown[-1].count_bytes(file, position)


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
