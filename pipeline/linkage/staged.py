"""What linkage reads of staging, a bounded slice at a time: records, the names that stand on them, content hashes.

The one place of linkage that opens staging tables. What must not live here: what a title or a name means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import parts, row_count, scan_table
from pipeline.dumps.content_hash import LINKED_COLUMNS, with_content_hash
from pipeline.linkage.normalise import names_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.paths import BuildPaths

ROWS_PER_SLICE = 250_000
"""Source rows read at a time: some 200 MB at the widest point of normalising."""


class Slice(NamedTuple):
    """Some rows of one part of `source_recording`."""

    part: Path
    start: int
    rows: int

    def read(self) -> pl.DataFrame:
        """LINKED_COLUMNS and content_hash."""
        return with_content_hash(self.columns(*LINKED_COLUMNS, "content_hash"))

    def columns(self, *names: str) -> pl.DataFrame:
        """Some columns of the table."""
        return pl.scan_parquet(self.part).select(names).slice(self.start, self.rows).collect()


def record_parts(paths: BuildPaths) -> list[Path]:
    """Every part of `source_recording`, in the fixed order of platforms."""
    return [part for folder in paths.staged("source_recording", CATALOG_PLATFORMS) for part in parts(folder)]


def record_count(paths: BuildPaths) -> int:
    """Staged records of all platforms."""
    return sum(row_count(folder) for folder in paths.staged("source_recording", CATALOG_PLATFORMS))


def slices(paths: BuildPaths) -> Iterator[Slice]:
    """All staged records, cut into slices."""
    for part in record_parts(paths):
        rows: int = pl.scan_parquet(part).select(pl.len()).collect().item()
        for start in range(0, rows, ROWS_PER_SLICE):
            yield Slice(part, start, min(ROWS_PER_SLICE, rows - start))


def content_hashes(paths: BuildPaths) -> pl.Series:
    """The content hash of every staged record."""
    found = [pl.Series("content_hash", [], dtype=pl.Int64)]
    found += [_columns_of(part, "content_hash")["content_hash"] for part in record_parts(paths)]
    return pl.concat(found)


def records_with(paths: BuildPaths, hashes: pl.Series) -> pl.DataFrame:
    """LINKED_COLUMNS and content_hash of the staged records that have one of these content hashes."""
    wanted = pl.col("content_hash").is_in(hashes.unique().implode())
    found = [_no_records()]
    for part in record_parts(paths) if len(hashes) else []:
        rows = pl.scan_parquet(part).select(*LINKED_COLUMNS, "content_hash").filter(wanted | pl.col("content_hash").is_null()).collect()
        found.append(with_content_hash(rows).filter(wanted))
    return pl.concat(found)


def _columns_of(part: Path, *columns: str) -> pl.DataFrame:
    """Some columns and content_hash; rows that were staged without one cost a look at all they hold."""
    rows = pl.read_parquet(part, columns=[*dict.fromkeys((*columns, "content_hash"))])
    return _records_of(part).select(rows.columns) if rows["content_hash"].null_count() else rows


def _records_of(part: Path) -> pl.DataFrame:
    return with_content_hash(pl.read_parquet(part, columns=[*LINKED_COLUMNS, "content_hash"]))


def artist_names(paths: BuildPaths) -> pl.DataFrame:
    """Rows of table `artist_name`: the name under which a platform keeps each of its artists."""
    folders = paths.staged("source_artist", CATALOG_PLATFORMS)
    columns = TABLES["artist_name"].column_names
    found = [scan_table(TABLES["source_artist"], folder).select(columns).collect() for folder in folders]
    return pl.concat([TABLES["artist_name"].empty(), *found]).sort(TABLES["artist_name"].order)


def names_and_records(paths: BuildPaths, hashes: pl.Series, artists: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Names on all staged records, and the records (as `records_with`) of these content hashes or credited to one of these artists.

    Both in one pass, because reading the credits is what costs. `artists`: platform, artist_id.
    """
    names, records = [_no_names()], [_no_records()]
    ids = {platform: rows["artist_id"] for (platform,), rows in artists.partition_by("platform", as_dict=True).items()}
    wanted = hashes.unique().implode()
    for piece in slices(paths):
        rows = piece.read()
        names.append(names_of(rows))
        chosen = rows["content_hash"].is_in(wanted)
        renamed = ids.get(rows["platform"][0])
        if renamed is not None:
            chosen |= _crediting(rows, "artist_id", renamed)
        records.append(rows.filter(chosen))
    return pl.concat(names).unique(), pl.concat(records)


def records_crediting(paths: BuildPaths, names: pl.Series) -> pl.DataFrame:
    """The staged records (as `records_with`) that credit one of these names."""
    found = [_no_records()]
    for part in record_parts(paths) if len(names) else []:
        rows = _records_of(part)
        shown = rows.select((pl.col("artists").list.len() == 0) & pl.col("artist_credit").is_in(names.implode())).to_series()
        found.append(rows.filter(_crediting(rows, "name", names) | shown.fill_null(value=False)))
    return pl.concat(found)


def _crediting(records: pl.DataFrame, field: str, values: pl.Series) -> pl.Series:
    """Which of the rows list an artist with one of these values."""
    lengths = records["artists"].list.len().to_numpy()
    hits = records["artists"].explode(empty_as_null=False).drop_nulls().struct.field(field).is_in(values.implode())
    found = np.zeros(len(lengths), dtype=bool)
    found[np.repeat(np.arange(len(lengths)), lengths)[hits.fill_null(value=False).to_numpy()]] = True
    return pl.Series(found)


def _no_names() -> pl.DataFrame:
    return pl.DataFrame(schema={"name": pl.String, "has_id": pl.Boolean})


def _no_records() -> pl.DataFrame:
    return TABLES["source_recording"].empty().select(*LINKED_COLUMNS, "content_hash")
