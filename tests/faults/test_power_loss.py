"""Tests of a power cut after any call of an operation: unsynced changes are lost, kept or kept in part.

Not on PostgreSQL: its server writes its files by itself, in processes that are not ours, and promises what it answers by its own log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.account_scenarios import Charging
from tests.faults.catalog_scenarios import CatalogScenario, Pruning, Publishing, RollingBack
from tests.faults.dump_scenarios import Landing, LandingPruned, LinkedLanding, Staging
from tests.faults.power_loss import PowerLoss

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.injection import Scenario


def _scenario(kind: type[Scenario], template: Path) -> Scenario:
    return kind(template) if issubclass(kind, CatalogScenario) else kind()


@pytest.mark.parametrize(
    ("kind", "cuts", "follow_ups"),
    [(Publishing, 3, 1), (RollingBack, 4, 1), (Pruning, 8, 1), (Landing, 60, 6), (LinkedLanding, 40, 4), (LandingPruned, 40, 4),
     (Staging, 4, 1), (Charging, 24, 24),
     *(pytest.param(*case, marks=pytest.mark.slow) for case in ((Publishing, 6, 1), (Staging, 16, 2)))],
)  # fmt: skip
def test_power_loss_somewhere_takes_nothing_that_was_promised(
    kind: type[Scenario], cuts: int, follow_ups: int, template: Path, place: Path
) -> None:
    loss = PowerLoss(_scenario(kind, template), place / f"power-{kind.__name__}-{cuts}")
    loss.run(loss.sample(cuts), follow_ups=follow_ups).require_none()


@pytest.mark.long
@pytest.mark.parametrize("kind", [Publishing, RollingBack, Pruning, Landing, LinkedLanding, LandingPruned, Staging, Charging])
def test_power_loss_anywhere_takes_nothing_that_was_promised(kind: type[Scenario], template: Path, place: Path) -> None:
    loss = PowerLoss(_scenario(kind, template), place / f"power-all-{kind.__name__}")
    loss.run(loss.cover()).require_none()
