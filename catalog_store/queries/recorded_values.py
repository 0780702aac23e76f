"""The values that each platform gave one recording, as it delivered them. Like `evidence.py`, it reads Parquet: for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import polars as pl

from catalog_store.queries.evidence import cut_date
from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table

if TYPE_CHECKING:
    from pathlib import Path

_TABLE = TABLES["recording_source"]


class SourceValues(msgspec.Struct, frozen=True):
    """The values of a source record. `release_date` has the known parts only; the genres are those of the record, then of its release."""

    platform: str
    external_id: str
    title: str
    version: str | None
    artist_credit: str | None
    isrcs: list[str]
    duration_ms: int | None
    release_date: str | None
    release_id: str | None
    release_title: str | None
    label_name: str | None
    genres: list[str]


def read_source_values(tables: Path, recording_id: int) -> list[SourceValues]:
    """Return the values of all source records of a recording, in order of platform and id; none in a snapshot of an earlier release."""
    folder = tables / _TABLE.name
    if not folder.is_dir():
        return []
    rows = scan_table(_TABLE, folder).filter(pl.col("recording_id") == recording_id).sort("platform", "external_id").collect()
    return [_build(row) for row in rows.iter_rows(named=True)]


def _build(row: dict[str, object]) -> SourceValues:
    values = {name: row[name] for name in SourceValues.__struct_fields__}
    values["release_date"] = cut_date(row["release_date"], row["release_date_precision"])  # type: ignore[arg-type]
    values["genres"] = list(dict.fromkeys([*row["genres"], *row["release_genres"]]))  # type: ignore[misc]
    return msgspec.convert(values, SourceValues)
