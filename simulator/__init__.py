"""A made-up music world with known truth that writes all dumps in the platforms' own forms, at any size."""

from __future__ import annotations

from simulator.settings import PlatformRates, SimulationSettings
from simulator.world import write_world

__all__ = ["PlatformRates", "SimulationSettings", "write_world"]
