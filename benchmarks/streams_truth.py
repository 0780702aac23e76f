"""The comparison of airings with the script.

A row is right when it has the recording, starts within 2 s and lasts as long to within 3 s.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_START_ERROR, MOST_LENGTH_ERROR = 2.0, 3.0
"""Seconds."""
HEADING = "airings | rows | right | missing | false | start error p50 / max s | length error p50 / max s"


@dataclass(frozen=True)
class Aired:
    """One airing, in seconds of a show."""

    recording_id: int
    start: float
    seconds: float
    kind: str = ""
    """Manner of the play, as the script gives it."""

    @property
    def end(self) -> float:
        """Return the second at which it is over."""
        return self.start + self.seconds


@dataclass(frozen=True)
class Result:
    """The result of one show: which row belongs to which airing."""

    pairs: list[tuple[Aired, Aired]]
    """Airing, row."""
    missing: list[Aired]
    false: list[Aired]

    @property
    def wrong(self) -> list[tuple[Aired, Aired]]:
        """Return the pairs that differ too much."""
        return [(one, row) for one, row in self.pairs if not _is_right(one, row)]

    @property
    def is_right(self) -> bool:
        """Return whether script and rows agree, row for row."""
        return not (self.missing or self.false or self.wrong)

    def build_columns(self) -> list[str]:
        """Return the columns that HEADING names."""
        starts = [abs(row.start - one.start) for one, row in self.pairs]
        lengths = [abs(row.seconds - one.seconds) for one, row in self.pairs]
        airings, rows = len(self.pairs) + len(self.missing), len(self.pairs) + len(self.false)
        right = len(self.pairs) - len(self.wrong)
        return [*map(str, (airings, rows, right, len(self.missing), len(self.false))), spread(starts), spread(lengths)]

    def list_complaints(self) -> list[str]:
        """Return a line for each airing or row that does not agree."""
        wrong = [f"wrong: {one} is {row}" for one, row in self.wrong]
        return wrong + [f"missing: {one}" for one in self.missing] + [f"false: {row}" for row in self.false]


def compare(truth: Sequence[Aired], rows: Sequence[Aired]) -> Result:
    """Pair each airing with the nearest row of its recording that begins while it airs, or as long before."""
    left, pairs, missing = list(rows), [], []
    for one in truth:
        # A song that airs twice gives two rows, and each row is paired once.
        near = [row for row in left if row.recording_id == one.recording_id and abs(row.start - one.start) < one.seconds]
        best = min(near, key=lambda row: abs(row.start - one.start), default=None)
        if best is None:
            missing.append(one)
        else:
            left.remove(best)
            pairs.append((one, best))
    return Result(pairs, missing, left)


def spread(values: Sequence[float]) -> str:
    """Return median and maximum."""
    return f"{statistics.median(values):.2f} / {max(values):.2f}" if values else "-"


def _is_right(one: Aired, row: Aired) -> bool:
    return abs(row.start - one.start) <= MOST_START_ERROR and abs(row.seconds - one.seconds) <= MOST_LENGTH_ERROR
