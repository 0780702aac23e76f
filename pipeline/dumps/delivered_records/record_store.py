"""Delivered records on disk, one folder of Parquet parts per kind, in the order of the dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables.files import sql_source
from pipeline.dumps.delivered_records.record_shapes import SHAPES, conformed
from pipeline.dumps.staging.record_checks import bare_code

if TYPE_CHECKING:
    from pathlib import Path

ROWS_PER_PART = 100_000
_IDS = ("id", "release_id", "label_id")


class DeliveredStore:
    """Takes frames of the kinds of `shape.SHAPES`; rows are numbered per kind, in the order in which they come."""

    def __init__(self, folder: Path) -> None:
        """`folder` is a scratch folder; the store makes one folder per kind in it."""
        self.folder = folder
        self.rows = dict.fromkeys(SHAPES, 0)
        self.has_references = False
        """Whether credits may lack names, genres names and recordings releases, to be looked up among the other rows."""
        self._parts = dict.fromkeys(SHAPES, 0)
        self._waiting: dict[str, list[pl.DataFrame]] = {kind: [] for kind in SHAPES}
        for kind in SHAPES:
            (folder / kind).mkdir()

    def add(self, kind: str, frame: pl.DataFrame) -> None:
        """Add rows of one kind; `position` is given here."""
        if frame.is_empty():
            return
        first = self.rows[kind]
        ids = [bare_code(pl.col(name)) for name in _IDS if name in frame.columns and frame[name].dtype == pl.String]
        numbered = frame.with_columns(*ids, position=pl.int_range(first, first + pl.len(), dtype=pl.Int64))
        self._waiting[kind].append(conformed(numbered, SHAPES[kind]))
        self.rows[kind] += frame.height
        if sum(waiting.height for waiting in self._waiting[kind]) >= ROWS_PER_PART:
            self._write(kind)

    def source(self, kind: str) -> str:
        """All rows of one kind as something to select from in DuckDB, in order."""
        self._write(kind)
        if not self.rows[kind]:
            pl.DataFrame(schema=SHAPES[kind]).write_parquet(self.folder / kind / "part-000000.parquet")
        return sql_source(self.folder / kind)

    def _write(self, kind: str) -> None:
        if self._waiting[kind]:
            pl.concat(self._waiting[kind]).write_parquet(self.folder / kind / f"part-{self._parts[kind]:06d}.parquet", compression="lz4")
            self._parts[kind] += 1
            self._waiting[kind] = []
