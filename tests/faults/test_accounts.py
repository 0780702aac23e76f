"""Tests of a fault in any file operation of the account store on SQLite, followed by all requests once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.account_scenarios import Charging
from tests.faults.injection import Harness

if TYPE_CHECKING:
    from pathlib import Path


def test_credits_are_exact_after_a_fault_somewhere(place: Path) -> None:
    harness = Harness(Charging(), place / "charging")
    harness.run(harness.sample(6)).require_none()


@pytest.mark.long
def test_credits_are_exact_after_any_failure(place: Path) -> None:
    harness = Harness(Charging(), place / "all-charging")
    harness.run(harness.cover()).require_none()
