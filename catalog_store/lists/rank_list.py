"""One ascending list of ranks, read a few at a time: numbers of the base, less those removed, and ranks that were added.

A list of ten million is never read as a whole: a page takes its first ranks, and another list is searched for them. list_format.py defines
numbers and ranks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np

from catalog_store.layered_order import ABSENT, PLACE_BITS, rank_base, split_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ranks = NDArray[np.uint64]
    Numbers = NDArray[np.uint32]

NO_NUMBERS, NO_RANKS = np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint64)
_FIRST_STEP = 256
_STEP_GROWTH = 4
_LONGEST_STEP = 65_536


class RankList:
    """The list. `removed` is part of `base`; none of `added` is. All of them ascend."""

    __slots__ = ("added", "base", "removed")

    def __init__(self, base: Numbers | range, removed: Numbers = NO_NUMBERS, added: Ranks = NO_RANKS) -> None:
        """Take a list of the base, or a range of its numbers, and what the delta changes in it."""
        self.base, self.removed, self.added = base, removed, added

    def __len__(self) -> int:
        """Return the number of ranks."""
        return len(self.base) - len(self.removed) + len(self.added)

    def slice(self, start: int, end: int) -> RankList:
        """Return the ranks from `start` up to `end`."""
        # A rank of the base has all lower bits set, so it reaches `start` if its number reaches the place of `start`.
        first, last = start >> PLACE_BITS, end >> PLACE_BITS
        if isinstance(self.base, range):
            base: Numbers | range = self.base[max(0, first - self.base.start) : max(0, last - self.base.start)]
        else:
            base = _slice_array(self.base, first, last)
        removed = _slice_array(self.removed, first, last) if len(self.removed) else self.removed
        added = _slice_array(self.added, start, end) if len(self.added) else self.added
        return RankList(base, removed, added)

    def read(self, count: int) -> Ranks:
        """Return the first `count` ranks."""
        ranks = rank_base(self._read_base(count))
        if not len(self.added) or (0 < count == len(ranks) and ranks[-1] < self.added[0]):
            return ranks
        # A stable sort merges two ascending runs in one pass.
        return np.sort(np.concatenate([ranks, self.added[:count]]), kind="stable")[:count]

    def _read_base(self, count: int) -> Numbers:
        """Return the first `count` numbers of the base that were not removed."""
        # Each round adds the removed ones that the last one found among the first.
        reach, gone = count, 0
        while True:
            first = self.base[:reach]
            numbers = np.arange(first.start, first.stop, dtype=np.uint32) if isinstance(first, range) else first
            # Most pages end before the first one that is removed.
            if not len(self.removed) or not len(first) or first[-1] < self.removed[0]:
                return numbers
            gone = bisect_right(self.removed.data, first[-1])
            if reach >= min(count + gone, len(self.base)):
                stays = np.ones(len(numbers), dtype=np.bool_)
                # All removed ones are on the list, and few are.
                stays[np.searchsorted(numbers, self.removed[:gone])] = False
                return numbers[stays][:count]
            reach = count + gone

    def read_base(self) -> Numbers:
        """Return all numbers of the base that were not removed."""
        return self._read_base(len(self.base))

    def find_members(self, candidates: Ranks) -> NDArray[np.bool_]:
        """Return which candidates are on the list."""
        numbers, in_delta = split_ranks(candidates)
        if isinstance(self.base, range):
            found = (numbers >= self.base.start) & (numbers < self.base.stop)
        else:
            found = find_members(self.base, numbers)
        found &= in_delta == ABSENT
        if len(self.removed):
            found &= ~find_members(self.removed, numbers)
        if len(self.added):
            found |= find_members(self.added, candidates)
        return found


def unite_lists(lists: Sequence[RankList]) -> RankList:
    """Return the ranks that are on any of the lists. Several are read whole."""
    if len(lists) == 1:
        return lists[0]
    return RankList(NO_NUMBERS, added=np.unique(np.concatenate([NO_RANKS, *(each.read(len(each)) for each in lists)])))


def intersect_lists(lists: Sequence[RankList], count: int) -> Ranks:
    """Return the first `count` ranks that are on all lists. The shortest is read in growing steps, the others are searched."""
    # Cost follows the shortest list, because the others are only searched.
    shortest, *others = sorted(lists, key=len)
    if not others:
        return shortest.read(count)
    found: list[Ranks] = [NO_RANKS]
    look = max(count, _FIRST_STEP)
    while len(shortest) and count > 0:
        common = shortest.read(look)
        shortest = shortest.slice(int(common[-1]) + 1, int(ABSENT) << PLACE_BITS)
        for other in others:
            common = common[other.slice(int(common[0]), int(common[-1]) + 1).find_members(common)] if len(common) else common
        found.append(common[:count])
        count -= len(found[-1])
        # Steps grow, so a dense intersection reads little and a sparse one needs few rounds.
        look = min(look * _STEP_GROWTH, _LONGEST_STEP)
    return np.concatenate(found)


def find_members(listed: NDArray[np.unsignedinteger], candidates: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
    """Return which candidates are in an ascending array of their type."""
    if not len(listed):
        return np.zeros(len(candidates), dtype=np.bool_)
    at = np.searchsorted(listed, candidates)
    # After the last one there is nothing to compare. The first one is smaller, so the comparison fails as it should.
    at[at == len(listed)] = 0
    found: NDArray[np.bool_] = listed[at] == candidates
    return found


def _slice_array(array: NDArray[np.unsignedinteger], start: int, end: int) -> NDArray[np.unsignedinteger]:
    # Two bisections of a memory view take a third of the time of np.searchsorted, which makes an array of its arguments.
    numbers = array.data
    first = bisect_left(numbers, start)
    return array[first : bisect_left(numbers, end, first)]
