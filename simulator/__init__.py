"""A simulated music world of any size with known truth, written as dumps in the platforms' own forms."""

from __future__ import annotations

from simulator.settings import PlatformRates, SimulationSettings
from simulator.world import write_world

__all__ = ["PlatformRates", "SimulationSettings", "write_world"]
