"""Made-up fingerprints: random walks over bits that change as often as those of music, and copies with a few bits changed.

They come from no audio; tests that need audio decode real files. Out of scope: the owner of a fingerprint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

MOST_ITEMS = 948
"""Submitters fingerprint the first 120 seconds."""
FEWEST_ITEMS = 24
MOST_CUT = 8
"""Items, a second, that a copy may lack at its beginning: encoders and editors cut silence off."""


def draw_items(rng: np.random.Generator, count: int) -> npt.NDArray[np.uint32]:
    """Return items of `count` recordings, shape (count, MOST_ITEMS): four bits in 32 change between items, as in music."""
    words = rng.integers(0, 2**32, (3, count, MOST_ITEMS), dtype=np.uint32)
    # Three random words joined by AND: a bit is set with a chance of 1 in 8, so four of 32 change.
    steps = words[0] & words[1] & words[2]
    steps[:, :1] = words[0][:, :1]
    found: npt.NDArray[np.uint32] = np.bitwise_xor.accumulate(steps, axis=1)
    return found


def copy_items(items: npt.NDArray[np.uint32], rng: np.random.Generator) -> npt.NDArray[np.uint32]:
    """Return another copy of the same recording: one bit in 64 differs."""
    # Six random words: 1 in 64.
    flips: npt.NDArray[np.uint32] = np.bitwise_and.reduce(rng.integers(0, 2**32, (6, len(items)), dtype=np.uint32), axis=0)
    return items ^ flips


def count_items(seconds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of items of audio of this many seconds, of the first 120 at most."""
    counts: npt.NDArray[np.int64] = np.clip((seconds * 11_025 - 4_096) // 1_365 - 18, FEWEST_ITEMS, MOST_ITEMS)
    return counts
