"""Tests of a fault in any file operation of landing, pruning or staging a dump, followed by the next landing and staging."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.dump_scenarios import Landing, LandingPruned, LinkedLanding, Staging
from tests.faults.injection import Harness, Scenario

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("scenario", "count"), [(Landing, 6), (LinkedLanding, 4), (LandingPruned, 4), (Staging, 1)])
def test_dump_survives_a_fault_somewhere(scenario: type[Scenario], count: int, place: Path) -> None:
    harness = Harness(scenario(), place / scenario.__name__)
    harness.run(harness.sample(count)).require_none()


@pytest.mark.slow
def test_tables_put_aside_come_back_when_their_place_is_empty(place: Path) -> None:
    harness = Harness(Staging(), place / "put-aside")
    swapped = [
        fault for fault in harness.faults() if fault.call.path.endswith("/store_a.pending") and fault.call.other.endswith("/store_a")
    ]
    harness.run(fault for fault in swapped if fault.kind.name in ("kill", "EIO")).require_none()


def test_notes_without_their_dump_are_removed(place: Path) -> None:
    harness = Harness(Landing(), place / "notes")
    notes = [fault for fault in harness.faults() if ".landed.json" in fault.call.other and fault.kind.name in ("kill", "EIO")]
    assert notes
    harness.run(notes).require_none()


@pytest.mark.long
@pytest.mark.parametrize("scenario", [Landing, LinkedLanding, LandingPruned, Staging])
def test_every_operation_on_a_dump_may_fail(scenario: type[Scenario], place: Path) -> None:
    harness = Harness(scenario(), place / f"all-{scenario.__name__}")
    harness.run(harness.cover()).require_none()
