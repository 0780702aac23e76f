"""A search of many numbers in a long array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def search_many(listed: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64]:
    """Return what `np.searchsorted(listed, wanted)` returns, sooner where many numbers are wanted in any order.

    `listed` ascends. Numbers in order find their neighbours in the processor's cache: among 20 million, one takes .15 us with the sort and
    1.4 without, among 300,000 .04 and .19.
    """
    if (wanted[1:] >= wanted[:-1]).all():
        return np.searchsorted(listed, wanted)
    order = np.argsort(wanted)
    places = np.empty(len(wanted), dtype=np.int64)
    places[order] = np.searchsorted(listed, wanted[order])
    return places
