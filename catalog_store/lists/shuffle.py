"""A random order that needs no memory: one permutation per seed of all numbers below 2^bits, computed in both directions.

`find_places` returns the position of each number, `find_numbers` the number at each position. A few numbers are shuffled by sorting their
positions. Many are shuffled by walking the positions and keeping the numbers that belong. The order depends only on seed and bits, so every
build gives the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED_BITS = 48
MOST_BITS = 63
_ROUNDS = 3
_MULTIPLIER = 0xD6E8FEB86659FD93
_SPREAD = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


class Shuffle:
    """The permutation of a seed. Each round adds a key, multiplies by an odd number and folds the high half onto the low one."""

    def __init__(self, seed: int, bits: int) -> None:
        """Derive the round keys. `bits` is 0 to MOST_BITS."""
        self.size = 1 << bits
        self._mask = np.uint64(self.size - 1)
        self._fold = np.uint64((bits + 1) // 2)
        keys = [((seed + 1) * _SPREAD * (2 * turn + 3) & _WORD) >> (64 - bits) for turn in range(_ROUNDS)]
        self._keys = [np.uint64(key) for key in keys]
        # An odd factor has an inverse modulo 2^bits, so the permutation can be computed backwards.
        odd = (_MULTIPLIER ^ (seed << 1)) & (self.size - 1) | 1
        self._odd, self._inverse = np.uint64(odd), np.uint64(pow(odd, -1, self.size))

    def find_places(self, numbers: NDArray[np.unsignedinteger]) -> NDArray[np.uint64]:
        """Return the positions of numbers below 2^bits."""
        mixed: NDArray[np.uint64] = numbers.astype(np.uint64)
        for key in self._keys:
            mixed += key
            mixed *= self._odd
            mixed &= self._mask
            # A shift of at least half the bits is its own inverse, which `find_numbers` uses.
            mixed ^= mixed >> self._fold
        return mixed

    def find_numbers(self, places: NDArray[np.unsignedinteger]) -> NDArray[np.uint64]:
        """Return the numbers at the positions."""
        mixed: NDArray[np.uint64] = places.astype(np.uint64)
        for key in reversed(self._keys):
            mixed ^= mixed >> self._fold
            mixed *= self._inverse
            mixed -= key
            mixed &= self._mask
        return mixed
