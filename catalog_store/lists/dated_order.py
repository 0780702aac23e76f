"""An open order of all tracks or all releases: ids by rank, dates as ranges of ranks, and the rank after a place."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Self

import numpy as np

from catalog_store.array_files import map_array
from catalog_store.layered_order import ABSENT, IN_BASE, PLACE_BITS, split_ranks
from catalog_store.lists.list_format import DELTA_FOLDER
from catalog_store.lists.rank_list import NO_NUMBERS, NO_RANKS, RankList

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


_PAGE_OF_BASE = np.full(128, ABSENT).tobytes()
"""The lower halves of the ranks of a page, all of the base."""


class Layer:
    """The items of base or delta by number. Ties within a stamp are ordered by `unheard` where there is one, then by id."""

    def __init__(
        self,
        ids: NDArray[np.unsignedinteger],
        stamps: NDArray[np.uint32],
        starts: NDArray[np.uint32],
        unheard: NDArray[np.uint32] | None = None,
    ) -> None:
        """Take the arrays that list_format.py specifies."""
        self.ids, self.unheard = ids, unheard
        # Negated so that they ascend, as bisection needs. There are a few ten thousand dates. A bisection of a memory view takes half the
        # time of np.searchsorted.
        self._ages = (-stamps.astype(np.int64)).data
        self._starts = starts.data

    @classmethod
    def open(cls, folder: Path, kind: str) -> Self:
        """Open the layer in its folder."""
        unheard = map_array(folder / "release_unheard.npy") if kind == "release" else None
        ids, stamps, starts = (map_array(folder / f"{kind}_{name}.npy") for name in ("ids", "stamps", "starts"))
        return cls(ids, stamps, starts, unheard)

    def check(self) -> None:
        """Raise ValueError where the arrays do not belong together."""
        if not len(self._starts) == len(self._ages) + 1 or self._starts[-1] != len(self.ids):
            raise ValueError(
                f"{len(self.ids)} ids in order, but {len(self._ages)} dates with {len(self._starts)} bounds up to {self._starts[-1]}"
            )

    def read_stamp(self, number: int) -> int:
        """Return the stamp of a number."""
        return -self._ages[bisect_right(self._starts, number) - 1]

    def find_since(self, stamp: int) -> int:
        """Return the first number whose stamp is `stamp` or earlier."""
        return self._starts[bisect_left(self._ages, -stamp)]

    def find_before(self, stamp: int) -> int:
        """Return the first number whose stamp is earlier than `stamp`."""
        return self._starts[bisect_right(self._ages, -stamp)]

    def find_behind(self, stamp: int, unheard: int, identifier: int) -> int:
        """Return the first number after a place, whether or not the place is taken."""
        start, end = self.find_since(stamp), self.find_before(stamp)
        if self.unheard is not None:
            tied = self.unheard[start:end]
            start, end = (start + int(np.searchsorted(tied, _clip_to_type(unheard, tied), side=side)) for side in ("left", "right"))
        return start + int(np.searchsorted(self.ids[start:end], _clip_to_type(identifier, self.ids), side="right"))


class DatedOrder:
    """The ids by rank (list_format.py)."""

    def __init__(self, folder: Path, kind: str, *, is_layered: bool = True) -> None:
        """Open the order of a `kind`: track or release. An order that is not layered has no delta."""
        self.base = Layer.open(folder, kind)
        delta = folder / DELTA_FOLDER
        self.delta = Layer.open(delta, kind) if is_layered else Layer(NO_NUMBERS, NO_NUMBERS, np.zeros(1, dtype=np.uint32), NO_NUMBERS)
        self.dead = map_array(delta / f"{kind}_dead.npy") if is_layered else NO_NUMBERS
        self.ranks = map_array(delta / f"{kind}_ranks.npy") if is_layered else NO_RANKS
        self._has_delta = len(self.ranks) > 0
        self.end = _cut(len(self.base.ids), len(self.delta.ids))
        """A rank above all others."""
        self.undated = self.find_since(0)
        """A rank that all without a date reach, and no others."""
        self.everything = RankList(range(len(self.base.ids)), self.dead, self.ranks)

    def read_ids(self, ranks: NDArray[np.uint64]) -> NDArray[np.unsignedinteger]:
        """Return the id of each rank that exists."""
        numbers, in_delta = split_ranks(ranks)
        # Clipped, because the place of an item of the delta may be the end of the base.
        base = self.base.ids
        found: NDArray[np.unsignedinteger] = base.take(numbers, mode="clip") if len(base) else np.zeros(len(numbers), dtype=base.dtype)
        # Most pages hold no item of the delta, and bytes show it in a quarter of the time of `any`.
        if self._has_delta and not _PAGE_OF_BASE.startswith(in_delta.tobytes()):
            is_new = in_delta != ABSENT
            found = found.astype(np.result_type(self.base.ids, self.delta.ids), copy=False)
            found[is_new] = self.delta.ids[in_delta[is_new]]
        return found

    def read_all_ids(self, listed: RankList) -> NDArray[np.unsignedinteger]:
        """Return the ids of a list in any order. That takes no merge of base and delta."""
        found = self.base.ids[listed.read_base()]
        return np.concatenate([found, self.read_ids(listed.added)]) if len(listed.added) else found

    def read_stamp(self, rank: int) -> int:
        """Return the stamp of a rank."""
        layer, number = self._locate(rank)
        return layer.read_stamp(number)

    def read_unheard(self, rank: int) -> int:
        """Return `unheard` of a rank; 0 in an order without it."""
        layer, number = self._locate(rank)
        return 0 if layer.unheard is None else int(layer.unheard[number])

    def find_since(self, stamp: int) -> int:
        """Return a rank that all dated `stamp` or earlier reach, and no others."""
        return _cut(self.base.find_since(stamp), self.delta.find_since(stamp) if self._has_delta else 0)

    def find_before(self, stamp: int) -> int:
        """Return a rank that all dated earlier than `stamp` reach, and no others."""
        return _cut(self.base.find_before(stamp), self.delta.find_before(stamp) if self._has_delta else 0)

    def find_behind(self, stamp: int, unheard: int, identifier: int) -> int:
        """Return a rank that all after a place reach, and no others, whether or not the place is taken. Each part is from 0."""
        return _cut(
            self.base.find_behind(stamp, unheard, identifier), self.delta.find_behind(stamp, unheard, identifier) if self._has_delta else 0
        )

    def _locate(self, rank: int) -> tuple[Layer, int]:
        number = rank & IN_BASE
        return (self.base, rank >> PLACE_BITS) if number == IN_BASE else (self.delta, number)


def _cut(base: int, delta: int) -> int:
    """Return the rank that items of the base from one number on reach, and items of the delta from another on."""
    # Items of the delta from there on have this place or a later one, because both numbers cut one order in two.
    return base << PLACE_BITS | delta


def _clip_to_type(value: int, among: NDArray[np.unsignedinteger]) -> np.unsignedinteger:
    """Return the value in the array's own type, clipped to its largest. A search by another type converts the array and is slow."""
    return among.dtype.type(min(value, int(np.iinfo(among.dtype).max)))
