"""Sets of small whole numbers in one bit each: ids in use, places of records.

A set over all records of a catalog takes 0.2 bytes a record. Out of scope: what the numbers stand for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from pipeline.linkage.sorted_runs import Numbers

_BITS = 6
"""log2 of the bits of a word."""
_ONE = np.uint64(1)


class NumberSet:
    """A set of numbers from 0 up to a limit."""

    def __init__(self, limit: int) -> None:
        """Make an empty set of numbers below `limit`."""
        self._words: npt.NDArray[np.uint64] = np.zeros((limit >> _BITS) + 1, np.uint64)

    def add(self, numbers: Numbers) -> None:
        """Add numbers; one may occur several times."""
        word, bit = _split(numbers)
        np.bitwise_or.at(self._words, word, bit)

    def find_members(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return whether each number is in the set; one at or above the limit is not."""
        word, bit = _split(numbers)
        last = len(self._words) - 1
        found: npt.NDArray[np.bool_] = (self._words[np.minimum(word, last)] & bit) != 0
        return found & (word <= last)

    def count(self) -> int:
        """Return how many numbers it holds."""
        return int(np.bitwise_count(self._words).sum(dtype=np.int64))

    def write_order(self, file: Path) -> None:
        """Write the set for `NumberOrder`."""
        counts = np.bitwise_count(self._words).astype(np.uint32)
        before = np.cumsum(counts, dtype=np.uint32) - counts
        file.write_bytes(self._words.tobytes() + before.tobytes())


class NumberOrder:
    """A set on disk that counts how many of its numbers are smaller than a given one. The file is mapped, so processes share it."""

    def __init__(self, file: Path) -> None:
        """Map a file of `NumberSet.write_order`."""
        words = file.stat().st_size // 12
        self._words = np.memmap(file, np.uint64, "r", shape=(words,))
        self._before = np.memmap(file, np.uint32, "r", offset=8 * words, shape=(words,))

    def count_smaller(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """Return for each number below the limit how many of the set are smaller."""
        word, bit = _split(numbers)
        # All bits below the number's own.
        within = np.bitwise_count(self._words[word] & (bit - _ONE))
        found: npt.NDArray[np.int64] = self._before[word].astype(np.int64) + within
        return found


def _split(numbers: Numbers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return the word of each number, and its bit there."""
    places = np.asarray(numbers, np.int64)
    return places >> _BITS, _ONE << (places & ((1 << _BITS) - 1)).astype(np.uint64)
