"""Tracks that aired, by number, and the columns that a form makes of them, made once: streams and reports play the same ones again.

For one thread, that which makes reports (sending.py). What must not live here: what a track is called (current.py).
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt


class Named(NamedTuple):
    """A recording as reports name it."""

    track_id: int
    isrc: str | None
    title: str
    artist: str


class Tracks:
    """Grows; a track keeps its number."""

    def __init__(self) -> None:
        """None."""
        self._named: list[Named] = []
        self._columns: dict[Callable[[Named], object], Any] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._named)

    def __getitem__(self, number: int) -> Named:
        """One of them."""
        return self._named[number]

    def add(self, track: Named) -> int:
        """Its number."""
        self._named.append(track)
        return len(self._named) - 1

    def column(self, numbers: npt.NDArray[np.int64], value_of: Callable[[Named], object], kind: pa.DataType) -> Any:  # noqa: ANN401 - an array
        """`value_of` the tracks with those numbers: a function of a module, called once for each track, whose values are of that kind."""
        made = self._columns.get(value_of, pa.array([], kind))
        if len(made) < len(self._named):
            more = pa.array(list(map(value_of, self._named[len(made) :])), kind)
            made = self._columns[value_of] = pa.concat_arrays([made, more])
        return made.take(numbers)


track_id, isrc, title, artist = (attrgetter(name) for name in Named._fields)
