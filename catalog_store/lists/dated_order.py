"""An open order of all tracks or all releases: ids by rank, dates as ranges of ranks, and the rank after a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalog_store.array_files import map_array

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


class DatedOrder:
    """The ids by rank. Ties within a stamp are ordered by `unheard` where there is one, then by id."""

    def __init__(self, folder: Path, kind: str) -> None:
        """Open the order of a `kind`: track or release."""
        self.ids = map_array(folder / f"{kind}_ids.npy")
        # Negated so that it ascends, as np.searchsorted needs. There are a few ten thousand dates.
        self._ages = -map_array(folder / f"{kind}_stamps.npy").astype(np.int64)
        self._starts = map_array(folder / f"{kind}_starts.npy").astype(np.int64)
        self.unheard = map_array(folder / "release_unheard.npy") if kind == "release" else None

    def __len__(self) -> int:
        return len(self.ids)

    def read_stamp(self, rank: int) -> int:
        """Return the stamp of a rank."""
        return -int(self._ages[np.searchsorted(self._starts, rank, side="right") - 1])

    def read_unheard(self, rank: int) -> int:
        """Return `unheard` of a rank; 0 in an order without it."""
        return 0 if self.unheard is None else int(self.unheard[rank])

    def find_since(self, stamp: int) -> int:
        """Return the first rank whose stamp is `stamp` or earlier."""
        return int(self._starts[np.searchsorted(self._ages, -stamp)])

    def find_before(self, stamp: int) -> int:
        """Return the first rank whose stamp is earlier than `stamp`."""
        return int(self._starts[np.searchsorted(self._ages, -stamp, side="right")])

    def find_behind(self, stamp: int, unheard: int, identifier: int) -> int:
        """Return the first rank after a place, whether or not the place is taken. Each part is any whole number from 0."""
        start, end = self.find_since(stamp), self.find_before(stamp)
        if self.unheard is not None:
            tied = self.unheard[start:end]
            start, end = (start + int(np.searchsorted(tied, _clip_to_type(unheard, tied), side=side)) for side in ("left", "right"))
        return start + int(np.searchsorted(self.ids[start:end], _clip_to_type(identifier, self.ids), side="right"))


def _clip_to_type(value: int, among: NDArray[np.unsignedinteger]) -> np.unsignedinteger:
    """Return the value in the array's own type, clipped to its largest. A search by another type converts the array and is slow."""
    return among.dtype.type(min(value, int(np.iinfo(among.dtype).max)))
