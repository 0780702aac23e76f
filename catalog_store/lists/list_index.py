"""The open lists: arrays mapped into memory and shared by all processes."""

from __future__ import annotations

import json
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

from catalog_store.array_files import map_array
from catalog_store.format_versions import require_readable
from catalog_store.layered_order import ABSENT, rank_base
from catalog_store.lists.dated_order import DatedOrder
from catalog_store.lists.list_format import DELTA_FOLDER, FORMAT_FILE, LISTS, NO_RANK, READ_VERSIONS, UNLAYERED_VERSION
from catalog_store.lists.rank_list import NO_NUMBERS, NO_RANKS, RankList, find_members

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.lists.rank_list import Ranks

_NO_ENTRIES = np.zeros(1, dtype=np.uint32)


class ListIndex:
    """The lists of one snapshot."""

    def __init__(self, folder: Path) -> None:
        """Open the files that list_format.py specifies in `folder`; SnapshotInvalidError when they have another format."""
        version = json.loads((folder / FORMAT_FILE).read_text())["format_version"]
        require_readable(folder, "list", version, READ_VERSIONS)
        is_layered = version > UNLAYERED_VERSION
        self.tracks = DatedOrder(folder, "track", is_layered=is_layered)
        self.releases = DatedOrder(folder, "release", is_layered=is_layered)
        self.track_numbers = map_array(folder / ("track_numbers.npy" if is_layered else "track_ranks.npy"))
        self.known_ids, self.known_ranks = (
            map_array(folder / DELTA_FOLDER / f"track_known_{name}.npy") if is_layered else none
            for name, none in (("ids", NO_NUMBERS), ("ranks", NO_RANKS))
        )
        self.lists = {name: OwnedLists(folder, name, is_layered=is_layered) for name in LISTS}

    @property
    def largest_id(self) -> int:
        """The largest recording id."""
        return max(len(self.track_numbers) - 1, int(self.known_ids[-1]) if len(self.known_ids) else 0)

    def read_list(self, name: str, owner: int) -> RankList:
        """Return the list of an artist, label or genre that exists."""
        return self.lists[name].read(owner)

    def find_track_ranks(self, recording_ids: NDArray[np.uint64]) -> Ranks:
        """Return the ranks of recording ids, NO_RANK where there is none."""
        ranks = np.full(len(recording_ids), NO_RANK, dtype=np.uint64)
        known = np.flatnonzero(recording_ids < np.uint64(len(self.track_numbers)))
        numbers = self.track_numbers[recording_ids[known]]
        is_living = (numbers != ABSENT) & ~find_members(self.tracks.dead, numbers)
        ranks[known[is_living]] = rank_base(numbers[is_living])
        if len(self.known_ids):
            at = np.minimum(np.searchsorted(self.known_ids, recording_ids), len(self.known_ids) - 1)
            is_new = self.known_ids[at] == recording_ids
            ranks[is_new] = self.known_ranks[at[is_new]]
        return ranks


class OwnedLists:
    """The lists of all owners of a kind."""

    def __init__(self, folder: Path, name: str, *, is_layered: bool) -> None:
        """Open the arrays that list_format.py specifies."""
        delta = folder / DELTA_FOLDER
        self.base, self._base_starts = map_array(folder / f"{name}.npy"), map_array(folder / f"{name}_starts.npy")
        none: dict[str, NDArray[Any]] = {"added": NO_RANKS, "added_starts": _NO_ENTRIES, "removed_starts": _NO_ENTRIES}

        def map_delta(end: str) -> NDArray[Any]:
            return map_array(delta / f"{name}_{end}.npy") if is_layered else none.get(end, NO_NUMBERS)

        self.added, self.removed, self._owners = map_delta("added"), map_delta("removed"), map_delta("owners")
        self._added_starts, self._removed_starts = map_delta("added_starts"), map_delta("removed_starts")
        # Memory views, because reading one number of a NumPy array takes three times as long.
        self._starts, self._owned = self._base_starts.data, self._owners.data

    def check(self) -> None:
        """Raise ValueError where the arrays do not belong together."""
        for starts, listed in ((self._base_starts, self.base), (self._added_starts, self.added), (self._removed_starts, self.removed)):
            if int(starts[-1]) != len(listed):
                raise ValueError(f"{len(listed)} entries of lists, and the last list ends at {starts[-1]}")
        if not len(self._added_starts) == len(self._removed_starts) == len(self._owners) + 1:
            raise ValueError(f"{len(self._owners)} lists differ, with {len(self._added_starts)} and {len(self._removed_starts)} bounds")

    def read(self, owner: int) -> RankList:
        """Return the list of an owner."""
        # Owners may be newer than the base.
        base = self.base[self._starts[owner] : self._starts[owner + 1]] if owner + 1 < len(self._starts) else self.base[:0]
        at = bisect_left(self._owned, owner)
        if at == len(self._owned) or self._owned[at] != owner:
            return RankList(base)
        removed = self.removed[self._removed_starts[at] : self._removed_starts[at + 1]]
        return RankList(base, removed, self.added[self._added_starts[at] : self._added_starts[at + 1]])
