"""Fingerprints for tests: items that change as slowly as those of music, and damaged copies of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ITEMS = 400


def music(seed: int, items: int = ITEMS) -> NDArray[np.uint32]:
    """Return a recording's items: every bit holds for eight items on average."""
    draw = np.random.default_rng(seed)
    flips = draw.random((items, 32)) < 1 / 8
    flips[0] = draw.random(32) < 0.5
    bits = np.cumsum(flips, axis=0) % 2
    return (bits.astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)


def damaged(items: NDArray[np.uint32], share: float, seed: int) -> NDArray[np.uint32]:
    """Return the items, each bit flipped with that probability."""
    flips = np.random.default_rng(seed).random((len(items), 32)) < share
    return items ^ (flips.astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)
