"""Tests of a fault in any file operation of publish, rollback, prune or a follower, followed by every possible next operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.catalog_scenarios import CatalogScenario, Following, Pruning, Publishing, RollingBack
from tests.faults.injection import Harness
from tests.faults.system_calls import Operation

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def publishing(template: Path, place: Path) -> Harness:
    return Harness(Publishing(template), place / "publishing")


@pytest.fixture(scope="module")
def following(template: Path, place: Path) -> Harness:
    return Harness(Following(template), place / "following")


@pytest.mark.slow
def test_rollback_to_a_snapshot_whose_publish_was_killed_makes_it_as_good_as_any(publishing: Harness) -> None:
    named = next(call for call in publishing.calls if call.operation is Operation.RENAME and call.other.endswith("/snapshots/third"))
    killed = [fault for fault in publishing.faults() if fault.kind.name == "kill" and fault.call.number > named.number]
    assert killed
    publishing.run(killed, only="rollback to third").require_none()


@pytest.mark.slow
def test_server_serves_the_next_snapshot_after_a_line_of_its_log_was_lost(following: Harness) -> None:
    written = [call.number for call in following.calls if call.operation is Operation.WRITE and call.path.endswith(".server.log")]
    assert len(written) >= 2
    kinds = ("ENOSPC", "ENOSPC from then on")
    following.run(fault for fault in following.faults() if fault.kind.name in kinds and fault.call.number in written).require_none()


@pytest.mark.slow
def test_publish_that_fails_somewhere_leaves_a_sound_catalog(publishing: Harness) -> None:
    publishing.run(publishing.sample(3), follow_ups=1).require_none()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [RollingBack, Pruning])
def test_rollback_or_prune_that_fails_somewhere_leaves_a_sound_catalog(
    scenario: type[CatalogScenario], template: Path, place: Path
) -> None:
    harness = Harness(scenario(template), place / scenario.__name__)
    harness.run(harness.sample(4), follow_ups=1).require_none()


@pytest.mark.slow
def test_server_that_meets_a_fault_serves_the_next_snapshot(following: Harness) -> None:
    following.run(following.sample(2)).require_none()


@pytest.mark.long
@pytest.mark.parametrize("scenario", [Publishing, RollingBack, Pruning, Following])
def test_every_operation_may_fail(scenario: type[CatalogScenario], template: Path, place: Path) -> None:
    harness = Harness(scenario(template), place / f"all-{scenario.__name__}")
    harness.run(harness.cover()).require_none()
