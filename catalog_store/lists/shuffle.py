"""A random order that needs no memory: per seed one permutation of all numbers below 2^bits, computed forth and back.

`forth` tells where a number stands in the order, `back` which number stands there. So few numbers are shuffled by sorting their places,
and many by walking the places and keeping the numbers that belong. The order depends on seed and bits alone: it is the same in every build.
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
    """The permutation of a seed. Each round: add a key, multiply by an odd number, fold the high half onto the low one."""

    def __init__(self, seed: int, bits: int) -> None:
        """`bits` is 0 to MOST_BITS."""
        self.size = 1 << bits
        self._mask = np.uint64(self.size - 1)
        self._fold = np.uint64((bits + 1) // 2)
        keys = [((seed + 1) * _SPREAD * (2 * turn + 3) & _WORD) >> (64 - bits) for turn in range(_ROUNDS)]
        self._keys = [np.uint64(key) for key in keys]
        odd = (_MULTIPLIER ^ (seed << 1)) & (self.size - 1) | 1
        self._odd, self._inverse = np.uint64(odd), np.uint64(pow(odd, -1, self.size))

    def forth(self, numbers: NDArray[np.unsignedinteger]) -> NDArray[np.uint64]:
        """Places of numbers below 2^bits."""
        mixed: NDArray[np.uint64] = numbers.astype(np.uint64)
        for key in self._keys:
            mixed += key
            mixed *= self._odd
            mixed &= self._mask
            # A shift of at least half the bits undoes itself.
            mixed ^= mixed >> self._fold
        return mixed

    def back(self, places: NDArray[np.unsignedinteger]) -> NDArray[np.uint64]:
        """The numbers at the places."""
        mixed: NDArray[np.uint64] = places.astype(np.uint64)
        for key in reversed(self._keys):
            mixed ^= mixed >> self._fold
            mixed *= self._inverse
            mixed -= key
            mixed &= self._mask
        return mixed
