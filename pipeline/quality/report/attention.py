"""Choose the first lines of the report: everything that needs a person, worst first, and the figures that changed most.

Out of scope: judging a build (../gate.py) and drawing the page (page.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.quality.build_figures import Figures
    from pipeline.quality.gate import Verdict

DRIFTED = 0.01
"""Change of a share of empty values above which the report marks it."""
CHANGED = 0.005
"""Relative change of a count above which the report names it among the changes."""
MOST_CHANGES = 12
_COUNTED = ("rows", "edges", "conflicts", "mixed", "genres")


@dataclass(frozen=True)
class Source:
    """The result of one dump: `status` and `problem` as staging reported, counts over all kinds of record."""

    platform: str
    dump: str
    status: str
    problem: str
    warnings: Sequence[str] = ()


class Point(NamedTuple):
    """Something to look at: `section` is the id of the heading that has the details."""

    text: str
    section: str


def list_points(verdicts: Iterable[Verdict], sources: Iterable[Source], now: Figures, before: Figures) -> list[Point]:
    """Return what needs a person: refusals, lost and broken dumps, wrong golden pairs, odd dumps, columns that emptied or filled."""
    lost, odd = [], []
    for source in sources:
        was_read = any(name.startswith(f"{source.platform}.") for topic, name in before if topic == "intake")
        if source.problem or (source.status == "missing" and was_read):
            lost.append(Point(f"{source.platform}: {source.problem or 'no dump, although there was one before'}", "sources"))
        odd += [Point(f"{source.platform}: {line}", "sources") for line in source.warnings]
    return [
        *(Point(f"{verdict.name}: {verdict.message}", "gate") for verdict in verdicts if not verdict.passed),
        *lost,
        *(Point(f"golden pair {name} is answered wrongly since this build", "golden") for name in _list_newly_wrong(now, before)),
        *odd,
        *(Point(f"{name}: {was:.2%} empty before, {share:.2%} now", "nulls") for name, share, was in _list_drifts(now, before)),
    ]


def list_changes(now: Figures, before: Figures) -> list[tuple[str, float, float]]:
    """Return name, value now and before of the counts that changed most, the largest relative change first."""
    found = [
        (f"{topic} {name}".replace("_", " "), now.get((topic, name), 0.0), before.get((topic, name), 0.0))
        for topic, name in sorted({*now, *before})
        if topic in _COUNTED and before
    ]
    changed = [(name, value, was) for name, value, was in found if abs(value - was) > CHANGED * max(was, 1.0)]
    return sorted(changed, key=lambda change: (-abs(change[1] - change[2]) / max(change[2], 1.0), change[0]))[:MOST_CHANGES]


def _list_newly_wrong(now: Figures, before: Figures) -> Sequence[str]:
    return sorted(name for (topic, name), right in now.items() if topic == "golden_pair" and not right and before.get((topic, name)))


def _list_drifts(now: Figures, before: Figures) -> list[tuple[str, float, float]]:
    """Return column, share of empty values now and before, the largest change first."""
    shares = [(name, share, before.get((topic, name), share)) for (topic, name), share in now.items() if topic == "nulls"]
    drifted = [(name, share, was) for name, share, was in shares if abs(share - was) > DRIFTED]
    return sorted(drifted, key=lambda drift: (-abs(drift[1] - drift[2]), drift[0]))
