"""A report as Parquet: one row for every airing, a row group a stream, ordered by start; the columns of as_csv.py."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from catalog_api.airplay.as_csv import COLUMNS
from catalog_api.airplay.tracks import artist, isrc, title, track_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from catalog_api.airplay.sheets import Sheet

_TEXT = pa.dictionary(pa.int32(), pa.string())
"""As it is handed over: each text once, which is how the file holds it. The file's own type is a string's."""
_TYPES: tuple[pa.DataType, ...] = (_TEXT, _TEXT, pa.int64(), _TEXT, _TEXT, _TEXT, pa.timestamp("ms", "UTC"), pa.int32())
_SCHEMA = pa.schema(list(zip(COLUMNS, _TYPES, strict=True)))
_WRITTEN = [name for name in COLUMNS if name != "played_at"]
"""With dictionaries; moments are written as differences."""
_MEASURED = ["track_id", "played_at", "duration_seconds"]
"""Least and greatest value are noted: for texts that took half the time of writing."""


def as_parquet(sheets: Iterable[Sheet]) -> Iterator[bytes]:
    """The file, in pieces."""
    sink: Any = _Pieces()
    encoding = {"use_dictionary": _WRITTEN, "column_encoding": {"played_at": "DELTA_BINARY_PACKED"}}
    options: dict[str, Any] = {**encoding, "write_statistics": _MEASURED, "store_schema": False}
    with pq.ParquetWriter(sink, _SCHEMA, compression="zstd", **options) as writer:
        for sheet in sheets:
            writer.write_table(_table(sheet))
            yield sink.taken()
    yield sink.taken()


class _Pieces(io.RawIOBase):
    """A file that is written from its beginning to its end, and handed on meanwhile."""

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

    def taken(self) -> bytes:
        """What was written since the last time."""
        content = b"".join(self._pieces)
        self._pieces.clear()
        return content


def _table(sheet: Sheet) -> pa.Table:
    of_stream = [_repeated(value, len(sheet.track_of)) for value in (sheet.stream.stream_id, sheet.stream.name)]
    of_tracks = [_taken(sheet.tracks.column(sheet.numbers, text_of, pa.string()), sheet.track_of) for text_of in (isrc, title, artist)]
    track_ids = sheet.tracks.column(sheet.numbers, track_id, pa.int64()).take(sheet.track_of)
    moments = pa.array(sheet.started_unix * 1000).cast(_TYPES[6])
    return pa.Table.from_arrays([*of_stream, track_ids, *of_tracks, moments, pa.array(sheet.seconds, _TYPES[7])], schema=_SCHEMA)


def _repeated(text: str, count: int) -> Any:  # noqa: ANN401 - an array of texts
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [text])


def _taken(texts: Any, places: npt.NDArray[np.int64]) -> Any:  # noqa: ANN401 - arrays of texts
    """`texts[places]`, each text once: two tracks may have the same title."""
    encoded = texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(places), encoded.dictionary)
