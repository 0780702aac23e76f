"""Costs and main figures of the last published builds, a file in the work folder, for the comparison in the report.

The file is a convenience: without it a report has nothing to compare with. Out of scope: the measuring of costs
(engine/usage.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

KEPT_BUILDS = 60


class StepCost(msgspec.Struct, frozen=True):
    """The cost of one step of a build; `pipeline.engine.usage.Usage` explains the figures."""

    step: str
    seconds: float
    cpu_seconds: float
    worker_cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    worker_peak_memory_bytes: int = 0
    spill_bytes: int = 0
    written_bytes: int = 0


COST_NAMES = tuple(name for name in StepCost.__struct_fields__ if name != "step")
"""Names of the figures, in the metadata of an asset and in the answer of a command."""


class BuildCost(msgspec.Struct, frozen=True):
    """The cost of a published build, by step in the order in which they ran."""

    snapshot_id: str
    recordings: int
    steps: tuple[StepCost, ...]
    figures: dict[str, float] = {}
    """Figures of the build by label, for the charts of the report; empty in builds older than this member."""

    @property
    def total(self) -> StepCost:
        """The sum of times and written bytes, and the largest of the other figures."""
        return sum_costs(self.snapshot_id, self.steps)


def sum_costs(name: str, costs: Iterable[StepCost]) -> StepCost:
    """Return the cost of steps that ran one after the other, as a cost named `name`."""
    rows = list(costs)
    most = {figure: max((getattr(cost, figure) for cost in rows), default=0) for figure in COST_NAMES if figure.endswith("_bytes")}
    sums = {figure: sum(getattr(cost, figure) for cost in rows) for figure in COST_NAMES if figure.endswith("seconds")}
    return StepCost(name, **{**most, **sums, "written_bytes": sum(cost.written_bytes for cost in rows)})


def read_build_costs(file: Path) -> list[BuildCost]:
    """Return the kept builds, the last one first; none when the file is missing or cannot be understood."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[BuildCost])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return []


def add_build_cost(file: Path, cost: BuildCost) -> None:
    """Put a build before the kept ones and drop the oldest. The file is replaced as a whole."""
    kept = [cost, *read_build_costs(file)][:KEPT_BUILDS]
    file.parent.mkdir(parents=True, exist_ok=True)
    pending = file.with_suffix(".pending")
    pending.write_bytes(msgspec.json.encode(kept))
    pending.replace(file)


def find_step_costs(builds: Sequence[BuildCost]) -> dict[str, StepCost]:
    """Return the cost of each step in the last build that ran it."""
    return {cost.step: cost for build in reversed(builds) for cost in build.steps}
