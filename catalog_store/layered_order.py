"""Orders of a base and a delta: how all items relate to those of a base, and the ranks that sort the items of both layers.

A *number* is a position in one layer. The *place* of an item of the delta is how many of the base come before it. A *rank* sorts items of
both layers and is a uint64: of the base, the number above PLACE_BITS bits that are all set; of the delta, the place above the number.
catalog_store/search and catalog_store/lists keep such orders.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from catalog_store.array_files import read_in_blocks, release_pages
from catalog_store.ranked_ids import number_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLACE_BITS = 32
"""Bits of a rank below the place."""
IN_BASE = (1 << PLACE_BITS) - 1
"""These bits of a rank of the base."""
ABSENT = np.uint32(0xFFFF_FFFF)
"""No number."""
ITEMS_PER_BLOCK = 1_000_000
"""Items of a base that are compared at once: some 40 MB."""
_HALF, _WHOLE = np.dtype("<u4"), np.dtype("<u8")


class Difference(NamedTuple):
    """The relation of all items, in their order, to those of a base."""

    base_numbers: NDArray[np.uint32]
    """The number in the base of each item, ABSENT where it is new or differs."""
    dead: NDArray[np.bool_]
    """The items of the base that no longer count."""

    @property
    def is_new(self) -> NDArray[np.bool_]:
        """Whether each item is in the delta."""
        is_new: NDArray[np.bool_] = self.base_numbers == ABSENT
        return is_new

    @property
    def delta_numbers(self) -> NDArray[np.uint32]:
        """The number in the delta of each item, or ABSENT."""
        return np.where(self.is_new, np.cumsum(self.is_new, dtype=np.uint32) - np.uint32(1), ABSENT)

    @property
    def places(self) -> NDArray[np.uint32]:
        """The place of each item of the delta."""
        # Behind the last item of the base that ranks before it and still counts.
        after = np.maximum.accumulate(np.where(self.is_new, np.uint32(0), self.base_numbers + np.uint32(1)))
        places: NDArray[np.uint32] = after[self.is_new].astype(np.uint32)
        return places

    def move(self, moved: NDArray[np.bool_]) -> Difference:
        """Return the relation with more items of the base, marked in `moved`, in the delta."""
        stays = ~self.is_new
        stays[stays] = ~moved[self.base_numbers[stays]]
        return Difference(np.where(stays, self.base_numbers, ABSENT), self.dead | moved)


def compare_orders(
    ids: NDArray[np.unsignedinteger],
    keys: NDArray[np.unsignedinteger],
    base_ids: NDArray[np.unsignedinteger],
    base_keys: NDArray[np.unsignedinteger],
) -> Difference:
    """Compare items with those of a base. An item is the same if its key is. Items with equal keys have one order in both.

    Memory: 8 bytes an item and a block of the base, which may be mapped.
    """
    if not len(ids):
        return Difference(np.empty(0, dtype=np.uint32), np.ones(len(base_ids), dtype=np.bool_))
    numbers, dead = number_ids(ids), np.empty(len(base_ids), dtype=np.bool_)
    base_numbers = np.full(len(ids), ABSENT, dtype=np.uint32)
    for first, before in zip(count(0, ITEMS_PER_BLOCK), read_in_blocks(base_ids, ITEMS_PER_BLOCK), strict=False):
        now = numbers[np.minimum(before, len(numbers) - 1)]
        is_same = (ids[now] == before) & (keys[now] == base_keys[first : first + ITEMS_PER_BLOCK])
        base_numbers[now[is_same]] = first + np.flatnonzero(is_same)
        dead[first : first + ITEMS_PER_BLOCK] = ~is_same
        release_pages(base_keys)
    return Difference(base_numbers, dead)


def rank_base(numbers: NDArray[np.unsignedinteger]) -> NDArray[np.uint64]:
    """Return the ranks of items of the base."""
    # The halves of little-endian numbers are written in place: half the time of a shift and an addition of short arrays.
    halves = np.empty(2 * len(numbers), dtype=_HALF)
    halves.fill(ABSENT)
    halves[1::2] = numbers
    return halves.view(_WHOLE)


def rank_delta(places: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return the ranks of all items of a delta."""
    return (places.astype(np.uint64) << np.uint64(PLACE_BITS)) | np.arange(len(places), dtype=np.uint64)


def split_ranks(ranks: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the upper half of each rank, a place or a number of the base, and the lower half, a number of the delta or ABSENT."""
    halves = ranks.view(_HALF)
    return halves[1::2], halves[::2]
