"""A made-up music world with known truth that writes all dumps in the platforms' own forms, at any size."""

from __future__ import annotations

from pipeline.simulate.settings import PlatformRates, SimulationSettings
from pipeline.simulate.world import write_world

__all__ = ["PlatformRates", "SimulationSettings", "write_world"]
