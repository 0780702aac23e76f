"""A report as CSV (RFC 4180): a heading, then one line for every airing, stream by stream, ordered by start.

The columns are those of as_parquet.py. Texts that a spreadsheet would run as a formula are neutralised. How often a track was played is how
many lines it has.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from catalog_api.airplay.columns import rows
from catalog_store.formula_cells import neutralise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from catalog_api.airplay.sheets import Sheet
    from catalog_api.airplay.tracks import Named

COLUMNS = ("stream_id", "stream_name", "track_id", "isrc", "title", "artist", "played_at", "duration_seconds")
_compute: Any = pc
"""Its stubs know less than it does."""


def as_csv(sheets: Iterable[Sheet]) -> Iterator[bytes | memoryview]:
    """The table. An ISRC that is not known is empty."""
    yield _line(COLUMNS) + b"\r\n"
    for sheet in sheets:
        of_stream = _line((sheet.stream.stream_id, sheet.stream.name, ""))
        of_tracks = sheet.tracks.column(sheet.numbers, _of_track, pa.binary())
        yield rows(sheet, _compute.binary_join_element_wise(of_stream, of_tracks, b""), lambda seconds: b",%d\r\n" % seconds)


def _of_track(track: Named) -> bytes:
    return _line((*track, ""))


def _line(values: Iterable[object]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="").writerow([neutralise(value) if isinstance(value, str) else value for value in values])
    return text.getvalue().encode()
