"""Cross-fades of 3 to 8 s between two known tracks, and the moment at which the next track becomes audible.

It is audible once it is at most 12 dB quieter than the track that fades out, over 0.4 s. A track with a quiet beginning is audible later
than it begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.recognition_damage import RATE
from benchmarks.streams_script import Show
from benchmarks.streams_truth import Aired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from benchmarks.streams_script import World

MOST_LATE = 3.0
"""Seconds after it became audible."""
_SHORTEST, _LONGEST = 3.0, 8.0
_BEFORE, _AFTER = 50.0, 45.0
"""Seconds of the tracks besides the fade."""
_AUDIBLE = 10 ** (-12 / 20)
_WINDOW = round(0.4 * RATE)


@dataclass
class Fade(Show):
    """`audible`: the second at which the second track is."""

    audible: float


def draw_fades(world: World, count: int, seed: int) -> Iterator[Fade]:
    """Yield fades between random tracks of the world."""
    draw = np.random.default_rng([seed, 7])
    for _ in range(count):
        first, second = (int(number) for number in draw.choice(list(world.known), 2, replace=False))
        yield _mix(world, first, second, draw.uniform(_SHORTEST, _LONGEST))


def _mix(world: World, first: int, second: int, seconds: float) -> Fade:
    count, before = round(seconds * RATE), round(_BEFORE * RATE)
    old = world.known[first][: before + count].astype(np.float64)
    new = world.known[second][: count + round(_AFTER * RATE)].astype(np.float64)
    rising = np.sin(np.linspace(0, np.pi / 2, count))
    going, coming = old[before:] * rising[::-1], new[:count] * rising
    mixed = np.concatenate([old[:before], going + coming, new[count:]])
    starts = range(0, count - _WINDOW, _WINDOW // 4)
    heard = (at for at in starts if _measure(coming[at : at + _WINDOW]) > _AUDIBLE * _measure(going[at : at + _WINDOW]))
    audible = _BEFORE + next(heard, count) / RATE
    truth = [Aired(first, 0, _BEFORE + seconds), Aired(second, _BEFORE, len(new) / RATE)]
    return Fade(np.clip(mixed, -32768, 32767).astype(np.int16), truth, audible)


def _measure(sound: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.square(sound).mean())) + 1e-9
