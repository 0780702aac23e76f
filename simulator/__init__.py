"""A simulated music world of any size with known truth, written as dumps in the platforms' own forms."""

from __future__ import annotations

from simulator.regimes import draw_harsh_settings
from simulator.settings import PlatformRates, SimulationSettings
from simulator.world import write_world

__all__ = ["PlatformRates", "SimulationSettings", "draw_harsh_settings", "write_world"]
