"""The open lists: arrays mapped into memory and shared by all processes, with intersection and membership tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from catalog_store.array_files import map_array, map_numbers
from catalog_store.format_versions import require_readable
from catalog_store.lists.dated_order import DatedOrder
from catalog_store.lists.list_format import FORMAT_FILE, LISTS, NO_RANK, READ_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Ranks = NDArray[np.uint32]

_FIRST_STEP = 256
_STEP_GROWTH = 4
_LONGEST_STEP = 65_536


class ListIndex:
    """The lists of one snapshot."""

    def __init__(self, folder: Path) -> None:
        """Open the files that list_format.py specifies in `folder`; SnapshotInvalidError when they have another format."""
        version = json.loads((folder / FORMAT_FILE).read_text())["format_version"]
        require_readable(folder, "list", version, READ_VERSIONS)
        self.tracks = DatedOrder(folder, "track")
        self.releases = DatedOrder(folder, "release")
        self._track_ranks = map_array(folder / "track_ranks.npy")
        self._lists = {name: map_array(folder / f"{name}.npy") for name in LISTS}
        self._starts = {name: map_numbers(folder / f"{name}_starts.npy") for name in LISTS}

    @property
    def largest_id(self) -> int:
        """The largest recording id."""
        return len(self._track_ranks) - 1

    def read_ranks(self, name: str, owner: int) -> Ranks:
        """Return the list of an artist, label or genre that exists."""
        starts = self._starts[name]
        ranks: Ranks = self._lists[name][starts[owner] : starts[owner + 1]]
        return ranks

    def find_track_ranks(self, recording_ids: NDArray[np.uint64]) -> Ranks:
        """Return the ranks of recording ids, NO_RANK where there is none."""
        ranks = np.full(len(recording_ids), NO_RANK, dtype=np.uint32)
        known = recording_ids < np.uint64(len(self._track_ranks))
        ranks[known] = self._track_ranks[recording_ids[known]]
        return ranks


def slice_ranks(ranks: Ranks, start: int, end: int) -> Ranks:
    """Return the part of a list from rank `start` up to `end`."""
    first, last = np.searchsorted(ranks, np.array([start, end], dtype=np.uint32))
    return ranks[first:last]


def find_members(ranks: Ranks, candidates: Ranks) -> NDArray[np.bool_]:
    """Return which candidates are on the list."""
    if not len(ranks):
        return np.zeros(len(candidates), dtype=np.bool_)
    at = np.searchsorted(ranks, candidates)
    # After the last rank there is nothing to compare. The first rank is smaller, so the comparison fails as it should.
    at[at == len(ranks)] = 0
    found: NDArray[np.bool_] = ranks[at] == candidates
    return found


def intersect_lists(lists: Sequence[Ranks], count: int) -> Ranks:
    """Return the first `count` ranks that are on all lists. The shortest is read in growing steps, the others are searched."""
    # Cost follows the shortest list, because the others are only searched.
    shortest, *others = sorted(lists, key=len)
    found: list[Ranks] = []
    at, look = 0, max(count, _FIRST_STEP)
    if not others:
        return shortest[:count]
    while at < len(shortest) and count > 0:
        common = shortest[at : at + look]
        for other in others:
            common = common[find_members(slice_ranks(other, int(common[0]), int(common[-1]) + 1), common)] if len(common) else common
        found.append(common[:count])
        count -= len(found[-1])
        # Steps grow, so a dense intersection reads little and a sparse one needs few rounds.
        at, look = at + look, min(look * _STEP_GROWTH, _LONGEST_STEP)
    return np.concatenate(found) if found else shortest[:0]
