"""Store of delivered records on disk: a folder of Parquet parts per kind, in the order of the dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables.files import render_sql_source
from pipeline.dumps.delivered_records.record_shapes import SHAPES, conform
from pipeline.dumps.staging.record_checks import strip_code

if TYPE_CHECKING:
    from pathlib import Path

ROWS_PER_PART = 100_000
_IDS = ("id", "release_id", "label_id")


class DeliveredStore:
    """Store for frames of the kinds of `record_shapes.SHAPES`. Rows are numbered per kind in order of arrival."""

    def __init__(self, folder: Path) -> None:
        """Create a folder per kind in the scratch folder `folder`."""
        self.folder = folder
        self.rows = dict.fromkeys(SHAPES, 0)
        self.has_references = False
        """True if names of credits and genres, and releases of recordings, must be looked up among the other rows."""
        self._parts = dict.fromkeys(SHAPES, 0)
        self._waiting: dict[str, list[pl.DataFrame]] = {kind: [] for kind in SHAPES}
        for kind in SHAPES:
            (folder / kind).mkdir()

    def add(self, kind: str, frame: pl.DataFrame) -> None:
        """Add rows of one kind and number them in `position`."""
        if frame.is_empty():
            return
        first = self.rows[kind]
        # Ids are normalised before they are joined: `12.0` in one file and `12` in another are the same release.
        ids = [strip_code(pl.col(name)) for name in _IDS if name in frame.columns and frame[name].dtype == pl.String]
        numbered = frame.with_columns(*ids, position=pl.int_range(first, first + pl.len(), dtype=pl.Int64))
        self._waiting[kind].append(conform(numbered, SHAPES[kind]))
        self.rows[kind] += frame.height
        if sum(waiting.height for waiting in self._waiting[kind]) >= ROWS_PER_PART:
            self._write(kind)

    def build_source(self, kind: str) -> str:
        """Return all rows of one kind, in order, as a table expression for DuckDB."""
        self._write(kind)
        # DuckDB refuses to read a folder without files.
        if not self.rows[kind]:
            pl.DataFrame(schema=SHAPES[kind]).write_parquet(self.folder / kind / "part-000000.parquet")
        return render_sql_source(self.folder / kind)

    def _write(self, kind: str) -> None:
        if self._waiting[kind]:
            # lz4, because the files live for minutes: writing must be cheap and the size does not matter.
            pl.concat(self._waiting[kind]).write_parquet(self.folder / kind / f"part-{self._parts[kind]:06d}.parquet", compression="lz4")
            self._parts[kind] += 1
            self._waiting[kind] = []
