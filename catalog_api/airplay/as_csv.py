"""A report as CSV (RFC 4180): a heading, then one line for every airing, stream by stream, ordered by start.

The columns are those of as_parquet.py. How often a track was played is how many lines it has.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from catalog_api.airplay.columns import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from catalog_api.airplay.sheets import Sheet

COLUMNS = ("stream_id", "stream_name", "track_id", "isrc", "title", "artist", "played_at", "duration_seconds")


def as_csv(sheets: Iterable[Sheet]) -> Iterator[bytes | memoryview]:
    """The table. An ISRC that is not known is empty."""
    yield _line(COLUMNS) + b"\r\n"
    for sheet in sheets:
        one = sheet.stream
        heads = [_line((one.stream_id, one.name, track.track_id, track.isrc, track.title, track.artist, "")) for track in sheet.tracks]
        yield rows(sheet, heads, lambda seconds: b",%d\r\n" % seconds)


def _line(values: Iterable[object]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue().encode()
