"""The formats of a report (JSON, CSV, Parquet) and which of them a caller accepts (RFC 9110, section 12.5.1).

All formats have the same rows: one for every airing, stream by stream, ordered by start. CSV follows RFC 4180; texts that a spreadsheet
would run as a formula are neutralised. Parquet has a row group a stream. JSON is `AirplayReport` of wire/stream_types.py.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catalog_api.airplay.stream_sheets import join_rows, join_texts
from catalog_api.airplay.track_names import artist, isrc, title, track_id
from catalog_api.answers import JSON
from catalog_api.metering import format_timestamp
from catalog_api.wire.stream_types import ReportGap
from catalog_store.formula_cells import neutralise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from account_store.streams.history import Gap
    from catalog_api.airplay.stream_sheets import Sheet, Window
    from catalog_api.airplay.track_names import TrackName

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
JSON_TYPE = "application/json"
FORMATS = {JSON_TYPE: "json", CSV: "csv", PARQUET: "parquet"}
"""By media type, the file name extension; the first is the default."""
CONTENT_TYPES = {JSON_TYPE: JSON, CSV: f"{CSV}; charset=utf-8; header=present", PARQUET: PARQUET}


def choose_format(accept: str, offered: Sequence[str]) -> str | None:
    """Return the media type among `offered` that the Accept header prefers, the earlier of equals; None when it accepts none."""
    ranges = [_parse_range(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]
    # The most specific range decides, whatever its weight (RFC 9110, 12.5.1).
    weighted = [(max(_find_weights(one, ranges), key=lambda found: found[0], default=(0, 0.0))[1], one) for one in offered]
    # `max` returns the first of equals.
    best = max(weighted, key=lambda found: found[0])
    return best[1] if best[0] > 0 else None


def _parse_range(part: str) -> tuple[str, float]:
    media_type, *options = (piece.strip().lower() for piece in part.split(";"))
    weights = [option.partition("=")[2].strip() for option in options if option.partition("=")[0].strip() == "q"]
    try:
        return media_type, min(max(float(weights[0]), 0.0), 1.0) if weights else 1.0
    except ValueError:
        # A weight that is not a number accepts nothing.
        return media_type, 0.0


def _find_weights(offered: str, ranges: Sequence[tuple[str, float]]) -> list[tuple[int, float]]:
    """Return (specificity, weight) of every range that includes the type."""
    kinds = [offered, offered.partition("/")[0] + "/*", "*/*"]
    return [(len(kinds) - kinds.index(media_type), quality) for media_type, quality in ranges if media_type in kinds]


COLUMNS = ("stream_id", "stream_name", "track_id", "isrc", "title", "artist", "played_at", "duration_seconds")
_compute: Any = pc
"""pyarrow's stubs lack some of its functions."""


def write_csv(sheets: Iterable[Sheet]) -> Iterator[bytes | memoryview]:
    """Write the table in pieces. An unknown ISRC is empty."""
    yield _write_line(COLUMNS) + b"\r\n"
    for sheet in sheets:
        stream_cells = _write_line((sheet.stream.stream_id, sheet.stream.name, ""))
        # The text of a track is made once for all its airings, streams and reports.
        track_cells = sheet.tracks.build_column(sheet.numbers, _write_track_cells, pa.binary())
        yield join_rows(sheet, _compute.binary_join_element_wise(stream_cells, track_cells, b""), lambda seconds: b",%d\r\n" % seconds)


def _write_track_cells(track: TrackName) -> bytes:
    return _write_line((*track, ""))


def _write_line(values: Iterable[object]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="").writerow([neutralise(value) if isinstance(value, str) else value for value in values])
    return text.getvalue().encode()


_encode = msgspec.json.encode


def write_json(window: Window, sheets: Iterable[Sheet]) -> Iterator[bytes | memoryview]:
    """Write the document in pieces."""
    head = {"from": window.first, "until": window.last, "timezone": window.zone.key, "scope": "account"}
    # Without its closing brace, because the streams are its last member.
    yield b'{"report":%s,"streams":[' % _encode(head)[:-1]
    for number, sheet in enumerate(sheets):
        named = _encode({"id": sheet.stream.stream_id, "name": sheet.stream.name})[:-1]
        yield b'%s%s,"summary":[%s],"detail":[' % (b"," * bool(number), named, bytes(_write_summary(sheet)))
        yield join_rows(sheet, sheet.tracks.build_column(sheet.numbers, _write_detail_start, pa.binary()), _write_row_end, without_last=1)
        yield b'],"gaps":%s}' % _encode([_build_gap(gap) for gap in sheet.gaps])
    yield b"]}}"


def _write_summary(sheet: Sheet) -> memoryview:
    counts = pa.array(sheet.play_counts).cast(pa.string()).cast(pa.binary())
    return join_texts(sheet.tracks.build_column(sheet.numbers, _write_summary_start, pa.binary()), counts, b"},", without_last=1)


def _write_summary_start(track: TrackName) -> bytes:
    """Return the beginning of a row of the summary."""
    return b'%s,"title":%s,"artist":%s,"play_count":' % (_write_codes(track), _encode(track.title), _encode(track.artist))


def _write_detail_start(track: TrackName) -> bytes:
    """Return the beginning of a row of the detail."""
    return b'%s,"played_at":"' % _write_codes(track)


def _write_codes(track: TrackName) -> bytes:
    return b'{"track_id":%d,"isrc":%s' % (track.track_id, _encode(track.isrc))


def _write_row_end(seconds: int) -> bytes:
    return b'","duration_seconds":%d},' % seconds


def _build_gap(gap: Gap) -> ReportGap:
    return ReportGap(
        format_timestamp(gap.started_at), None if gap.ended_at is None else format_timestamp(gap.ended_at), gap.cause, gap.detail
    )


_TEXT = pa.dictionary(pa.int32(), pa.string())
"""Dictionary-encoded, as the file stores it; the type in the file is string."""
_TYPES: tuple[pa.DataType, ...] = (_TEXT, _TEXT, pa.int64(), _TEXT, _TEXT, _TEXT, pa.timestamp("ms", "UTC"), pa.int32())
_SCHEMA = pa.schema(list(zip(COLUMNS, _TYPES, strict=True)))
_WRITTEN = [name for name in COLUMNS if name != "played_at"]
"""Columns with dictionaries; times are delta-encoded."""
_MEASURED = ["track_id", "played_at", "duration_seconds"]
"""Columns with minimum and maximum; for texts those took half the time of writing."""


def write_parquet(sheets: Iterable[Sheet]) -> Iterator[bytes]:
    """Write the file in pieces."""
    # The writer never seeks back: Parquet has its index at the end.
    sink: Any = _Pieces()
    encoding = {"use_dictionary": _WRITTEN, "column_encoding": {"played_at": "DELTA_BINARY_PACKED"}}
    options: dict[str, Any] = {**encoding, "write_statistics": _MEASURED, "store_schema": False}
    with pq.ParquetWriter(sink, _SCHEMA, compression="zstd", **options) as writer:
        for sheet in sheets:
            writer.write_table(_build_table(sheet))
            yield sink.take_written()
    yield sink.take_written()


class _Pieces(io.RawIOBase):
    """A file that is written sequentially and handed on in pieces."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, piece: Any) -> int:  # noqa: ANN401 - anything that holds bytes
        self._pieces.append(bytes(piece))
        self._size += len(self._pieces[-1])
        return len(self._pieces[-1])

    def take_written(self) -> bytes:
        """Return what was written since the last call."""
        content = b"".join(self._pieces)
        self._pieces.clear()
        return content


def _build_table(sheet: Sheet) -> pa.Table:
    # One dictionary entry for all rows of the stream.
    stream_columns = [_repeat_text(value, len(sheet.track_of)) for value in (sheet.stream.stream_id, sheet.stream.name)]
    track_columns = [
        _take_texts(sheet.tracks.build_column(sheet.numbers, text_of, pa.string()), sheet.track_of) for text_of in (isrc, title, artist)
    ]
    track_ids = sheet.tracks.build_column(sheet.numbers, track_id, pa.int64()).take(sheet.track_of)
    # The format has milliseconds, not seconds.
    moments = pa.array(sheet.started_unix * 1000).cast(_TYPES[6])
    return pa.Table.from_arrays([*stream_columns, track_ids, *track_columns, moments, pa.array(sheet.seconds, _TYPES[7])], schema=_SCHEMA)


def _repeat_text(text: str, count: int) -> Any:  # noqa: ANN401 - an array of texts
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [text])


def _take_texts(texts: Any, places: npt.NDArray[np.int64]) -> Any:  # noqa: ANN401 - arrays of texts
    """Return `texts[places]` with each text once: two tracks may have the same title."""
    encoded = texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(places), encoded.dictionary)
