"""A report as Parquet: one row for every airing, a row group a stream, ordered by start; the columns of as_csv.py."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catalog_api.airplay.as_csv import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from catalog_api.airplay.sheets import Sheet

_TYPES: tuple[pa.DataType, ...] = (
    pa.string(),
    pa.string(),
    pa.int64(),
    pa.string(),
    pa.string(),
    pa.string(),
    pa.timestamp("ms", "UTC"),
    pa.int32(),
)
_compute: Any = pc
"""Its stubs know less than it does."""
SCHEMA = pa.schema(list(zip(COLUMNS, _TYPES, strict=True)))


def as_parquet(sheets: Iterable[Sheet]) -> Iterator[bytes]:
    """The file, in pieces."""
    sink = _Pieces()
    with pq.ParquetWriter(cast("IO[bytes]", sink), SCHEMA, compression="zstd") as writer:
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
    tracks = [pa.array(values, kind) for values, kind in zip(_by_column(sheet), _TYPES[2:6], strict=True)]
    columns: list[Any] = [pa.repeat(pa.scalar(value), len(sheet.track_of)) for value in (sheet.stream.stream_id, sheet.stream.name)]
    columns += [_compute.take(values, sheet.track_of) for values in tracks]
    columns += [pa.array(sheet.started_unix * 1000).cast(_TYPES[6]), pa.array(sheet.seconds, _TYPES[7])]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _by_column(sheet: Sheet) -> list[list[object]]:
    columns = zip(*sheet.tracks, strict=True) if sheet.tracks else ([], [], [], [])
    return [list(column) for column in columns]
