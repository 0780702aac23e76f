"""Rows of text out of columns, for whole streams at once: a loop over millions of airings would take seconds.

A row is: the text of its track, the moment it began, the text of its length. What must not live here: what those texts are.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from catalog_api.airplay.sheets import Sheet

_compute: Any = pc
"""Its stubs know less than it does."""
_DAY_SECONDS = 86_400
_DAY_WIDTH, _CLOCK_WIDTH = len("2026-11-21T"), len("17:05:00Z")
_WIDTH = _DAY_WIDTH + _CLOCK_WIDTH


def rows(sheet: Sheet, of_track: Any, of_length: Callable[[int], bytes], *, without_last: int = 0) -> memoryview:  # noqa: ANN401 - an array of texts
    """All rows of a sheet, one behind the other: `of_track[j]` of track j, the moment (RFC 3339, UTC), `of_length(seconds)`.

    `without_last` so many bytes: what stands between rows need not stand behind the last.
    """
    if not len(sheet.track_of):
        return memoryview(b"")
    lengths, place = distinct(sheet.seconds)
    tails = pa.array([of_length(seconds) for seconds in lengths.tolist()], pa.binary())
    return joined(of_track.take(sheet.track_of), _moments(sheet.started_unix), tails.take(place), without_last=without_last)


def joined(*parts: Any, without_last: int = 0) -> memoryview:  # noqa: ANN401 - arrays of texts, or one text for all rows
    """The texts of each row, row behind row, without so many bytes at the end."""
    whole: Any = _compute.binary_join_element_wise(*parts, b"")
    # What an array of texts holds is the texts, one behind the other. They are sent from there: copying months of them takes .2 s.
    _, offsets, texts = whole.buffers()
    ends = np.frombuffer(offsets, np.int32, len(whole) + 1, 4 * whole.offset)
    return memoryview(texts)[ends[0] : max(ends[0], ends[-1] - without_last)]


def distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """The values that there are, in no order, and for each place which of them stands there: `np.unique` without its sorting."""
    encoded: Any = pa.array(values).dictionary_encode()
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy()


def _moments(unix: npt.NDArray[np.int64]) -> Any:  # noqa: ANN401 - an array of texts
    """`unix` ascends."""
    days = np.arange(unix[0] // _DAY_SECONDS, unix[-1] // _DAY_SECONDS + 1)
    day_of = unix // _DAY_SECONDS - days[0]
    names = np.char.add(days.astype("datetime64[D]").astype(f"S{_DAY_WIDTH - 1}"), b"T")
    texts = np.empty((len(unix), _WIDTH), np.uint8)
    texts[:, :_DAY_WIDTH] = np.take(names.view(np.uint8).reshape(-1, _DAY_WIDTH), day_of, axis=0)
    texts[:, _DAY_WIDTH:] = np.take(_clock(), unix % _DAY_SECONDS, axis=0)
    offsets = np.arange(len(unix) + 1, dtype=np.int32) * _WIDTH
    return pa.Array.from_buffers(pa.binary(), len(unix), [None, pa.py_buffer(offsets.data), pa.py_buffer(texts.data)])


@cache
def _clock() -> npt.NDArray[np.uint8]:
    """Every second of a day, `17:05:00Z`, a row each."""
    texts = b"".join(b"%02d:%02d:%02dZ" % (second // 3600, second // 60 % 60, second % 60) for second in range(_DAY_SECONDS))
    return np.frombuffer(texts, np.uint8).reshape(-1, _CLOCK_WIDTH)
