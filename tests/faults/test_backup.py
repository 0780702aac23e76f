"""Tests of a fault in any file operation of a backup or restore, followed by every possible next operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.backup_scenarios import BackingUp, Restoring
from tests.faults.injection import Harness

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [BackingUp, Restoring])
def test_backup_or_restore_that_fails_somewhere_loses_nothing(scenario: type[BackingUp | Restoring], template: Path, place: Path) -> None:
    harness = Harness(scenario(template), place / scenario.__name__)
    harness.run(harness.sample(3), follow_ups=1).require_none()


@pytest.mark.long
@pytest.mark.parametrize("scenario", [BackingUp, Restoring])
def test_every_operation_of_a_backup_or_restore_may_fail(scenario: type[BackingUp | Restoring], template: Path, place: Path) -> None:
    harness = Harness(scenario(template), place / f"all-{scenario.__name__}")
    harness.run(harness.cover()).require_none()
