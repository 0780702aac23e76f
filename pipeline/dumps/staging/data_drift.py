"""Comparison of a dump with the one before: does a table have far fewer rows, or a column far fewer values?

One rule serves all tables and columns, in staging (against the tables staged before) and in the gate (against the live snapshot).
Out of scope: counting (staging_profile.py), what a build does about it (intake/newest_dump.py, pipeline/quality/gate.py).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt
from typing import TYPE_CHECKING

from pipeline.dumps.errors import DumpError

if TYPE_CHECKING:
    from pipeline.dumps.staging.staging_profile import Profile

STANDARD_ERRORS = 3
LEAST = 5
"""Rows that may vanish by chance, beside three standard errors of the count before. A smaller fall says nothing."""
SHOWN = 8
"""Losses that a message names. It only counts the others."""


@dataclass(frozen=True)
class DriftLimits:
    """Limits of how much less a dump may hold; see `pipeline.settings.Settings`."""

    lowest_rows: float = 0.7
    largest_loss: float = 0.1

    def to_note(self) -> dict[str, float]:
        """Return the limits for the note beside a dump that they refused. Other limits give the dump another chance."""
        return asdict(self)


DAY_LIMITS = DriftLimits(lowest_rows=0.0, largest_loss=0.95)
"""Limits for days of a daily dump. A day holds what happened on it, so only a vanished column is a fault."""


class ShrunkenDumpError(DumpError):
    """A readable dump that holds much less than the one before. An operator can let it through."""


@dataclass(frozen=True)
class Loss:
    """Fall in the rows of `what` (a table, or `<table>.<column>`) from `was` to `now`."""

    what: str
    was: int
    now: int
    setting: str

    def __str__(self) -> str:
        """Return the loss as messages show it."""
        return f"{self.what} {self.was:,} -> {self.now:,}"


def is_short(now: float, was: float, share: float) -> bool:
    """Return whether `now` is less than `share` of `was`, beyond chance."""
    # Counts vary like a Poisson variable, whose standard error is the square root: small tables may shrink by chance, large ones may not.
    return now < was * share - STANDARD_ERRORS * sqrt(was) - LEAST


def find_losses(before: Profile, now: Profile, limits: DriftLimits) -> list[Loss]:
    """Return tables with too few rows, and columns with too few values in the remaining rows, the largest loss first.

    A table that grew may not lose values; one that shrank (as far as `lowest_rows` allows) may lose its share of them.
    """
    rows = [
        Loss(table, was, now.rows[table], "CATALOG_LOWEST_ROWS=0")
        for table, was in before.rows.items()
        if is_short(now.rows[table], was, limits.lowest_rows)
    ]
    # A table that lost its rows lost values in all its columns. Only the first cause is reported.
    shrunken = {loss.what for loss in rows}
    values = []
    for name, was in before.filled.items():
        table = name.partition(".")[0]
        if table in shrunken or not before.rows[table]:
            continue
        # A grown table may not lose values, but its new rows need not have any.
        expected = was * min(1.0, now.rows[table] / before.rows[table])
        if is_short(now.filled[name], expected, 1 - limits.largest_loss):
            values.append(Loss(name, was, now.filled[name], "CATALOG_LARGEST_LOSS=1"))
    return sorted([*rows, *values], key=lambda loss: (loss.now - loss.was, loss.what))


def describe_losses(found: list[Loss]) -> str:
    """Return the losses as one line of text, at most SHOWN by name."""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(map(str, found[:SHOWN])) + more


def list_settings(found: list[Loss]) -> str:
    """Return the settings that let these losses through."""
    return " ".join(sorted({loss.setting for loss in found}))


def require_no_losses(platform: str, before: Profile | None, now: Profile, limits: DriftLimits) -> None:
    """Raise ShrunkenDumpError when a dump lost more than `limits` allow. Without a dump before there is nothing to compare."""
    found = find_losses(before, now, limits) if before else []
    if found:
        raise ShrunkenDumpError(
            f"{platform}: holds much less than the dump staged before: {describe_losses(found)}. Were columns renamed, files left out? "
            "Compare it with its format notes (docs/reference/formats); if the dump is right, build once with "
            f"{list_settings(found)}"
        )
