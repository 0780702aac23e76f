"""Tests of a fault in any file operation of a pull, followed by every possible next operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.injection import Harness
from tests.faults.power_loss import PowerLoss
from tests.faults.pull_scenarios import Pulling
from tests.faults.system_calls import Operation

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def pulling(template: Path, place: Path) -> Harness:
    return Harness(Pulling(template), place / "pulling")


def test_pull_that_fails_somewhere_leaves_the_old_snapshot_live(pulling: Harness) -> None:
    pulling.run(pulling.sample(4), follow_ups=1).require_none()


def test_pull_onto_a_full_disk_leaves_the_old_snapshot_live(pulling: Harness) -> None:
    written = [call.number for call in pulling.calls if call.operation is Operation.WRITE and call.path.endswith(".part")]
    assert written
    full = [fault for fault in pulling.faults() if fault.kind.name == "ENOSPC from then on" and fault.call.number == written[-1]]
    pulling.run(full, only="pull").require_none()


def test_power_loss_during_a_pull_takes_nothing_that_was_promised(template: Path, place: Path) -> None:
    loss = PowerLoss(Pulling(template), place / "power-pulling")
    loss.run(loss.sample(4), follow_ups=1).require_none()


@pytest.mark.long
def test_every_operation_of_a_pull_may_fail(template: Path, place: Path) -> None:
    harness = Harness(Pulling(template), place / "all-pulling")
    harness.run(harness.cover()).require_none()


@pytest.mark.long
def test_power_loss_anywhere_in_a_pull_takes_nothing_that_was_promised(template: Path, place: Path) -> None:
    loss = PowerLoss(Pulling(template), place / "power-all-pulling")
    loss.run(loss.cover()).require_none()
