"""Reads of staging tables, a bounded slice at a time: records, names, content hashes, barcodes, tracks.

Besides it only staged_fingerprints.py and atom_fingerprints.py open staging tables. Out of scope: the meaning of a title or a
name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.frame_texts import copy_texts
from catalog_store.platforms import CATALOG_PLATFORMS, INPUTS
from catalog_store.record_keys.content_hash import LINKED_COLUMNS, add_content_hash
from catalog_store.record_keys.new_records import read_new_records
from catalog_store.record_keys.place_numbers import read_place_numbers
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_part_rows, count_rows, list_parts, scan_table
from pipeline.linkage.alias_owners import list_aliases
from pipeline.linkage.release_evidence import RELEASE_COLUMNS
from pipeline.linkage.release_positions import PLATFORM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pipeline.paths import BuildPaths

ROWS_PER_SLICE = 250_000
"""Source rows read at a time: some 200 MB at the widest point of normalising."""
ARTISTS_PER_PIECE = 4 * TABLES["artist_name"].rows_per_group
"""Names of artists read at a time, 40 MB: whole row groups, because a group that two pieces share is decoded twice."""


class Slice(NamedTuple):
    """Rows of one part of a table."""

    part: Path
    start: int
    rows: int

    def read(self) -> pl.DataFrame:
        """Return LINKED_COLUMNS and content_hash of staged records."""
        return add_content_hash(self.read_columns(*LINKED_COLUMNS, "content_hash"))

    def read_columns(self, *names: str) -> pl.DataFrame:
        """Return these columns of the table."""
        return pl.scan_parquet(self.part).select(names).slice(self.start, self.rows).collect()


def list_staged_parts(paths: BuildPaths, table: str, platforms: tuple[str, ...] = INPUTS) -> list[Path]:
    """Return every part of a staging table, in the fixed order of platforms."""
    return [part for folder in paths.staged(table, platforms) for part in list_parts(folder)]


def list_record_parts(paths: BuildPaths) -> list[Path]:
    """Return every part of `source_recording`."""
    return list_staged_parts(paths, "source_recording", CATALOG_PLATFORMS)


def count_records(paths: BuildPaths) -> int:
    """Return the number of staged records of all platforms."""
    return sum(count_rows(folder) for folder in paths.staged("source_recording", CATALOG_PLATFORMS))


def cut_slices(paths: BuildPaths) -> Iterator[Slice]:
    """Yield all staged records in slices."""
    return cut_parts(list_record_parts(paths))


def cut_parts(table_parts: Iterable[Path], most: int | None = None) -> Iterator[Slice]:
    """Yield all rows of these parts in slices of at most `most` rows (None: ROWS_PER_SLICE)."""
    most = most or ROWS_PER_SLICE
    for part in table_parts:
        rows = count_part_rows(part)
        for start in range(0, rows, most):
            yield Slice(part, start, min(most, rows - start))


def read_content_hashes(paths: BuildPaths) -> Iterator[pl.DataFrame]:
    """Yield the content hash of every staged record, part by part; at least one piece, which may be empty."""
    yield pl.DataFrame(schema={"content_hash": pl.Int64})
    for part in list_record_parts(paths):
        yield _read_hashes(part).to_frame()


def read_records_with(paths: BuildPaths, hashes: pl.Series) -> pl.DataFrame:
    """Return LINKED_COLUMNS and content_hash of the staged records that have one of these content hashes.

    Nearly all records are read, half of the time for nested credits, unless staging wrote all of these to a file of their own
    (new_records.py).
    """
    # Staging writes rows with a new hash to a file of their own: on most nights that is all that is needed.
    separate = [read_new_records(paths.staging(platform)) for platform in CATALOG_PLATFORMS]
    found = [_build_empty_records(), *(rows.filter(_is_one_of(hashes)) for rows in separate if rows is not None)]
    # The file of a platform may be missing or torn (its staging died); only then the parts themselves are searched.
    rest = hashes.filter(~hashes.is_in(pl.concat([rows["content_hash"] for rows in found]).implode()))
    for part in list_record_parts(paths) if len(rest) else []:
        rows = (
            pl.scan_parquet(part)
            .select(*LINKED_COLUMNS, "content_hash")
            # A row without a hash could be any of them, so it is hashed before it is filtered.
            .filter(_is_one_of(rest) | pl.col("content_hash").is_null())
            .collect()
        )
        found.append(copy_texts(add_content_hash(rows).filter(_is_one_of(rest))))
    return pl.concat(found)


def _is_one_of(hashes: pl.Series) -> pl.Expr:
    return pl.col("content_hash").is_in(hashes.unique().implode())


def _read_hashes(part: Path) -> pl.Series:
    """Return the hashes of a part; rows that were staged without one are read whole."""
    hashes = pl.read_parquet(part, columns=["content_hash"])["content_hash"]
    if hashes.null_count():
        hashes = add_content_hash(pl.read_parquet(part, columns=[*LINKED_COLUMNS, "content_hash"]))["content_hash"]
    return hashes


def scan_artist_names(paths: BuildPaths, platforms: tuple[str, ...] = CATALOG_PLATFORMS) -> pl.LazyFrame:
    """Return the rows of table `artist_name`, unread and unsorted: the name under which a platform keeps each of its artists."""
    folders = paths.staged("source_artist", platforms)
    found = [scan_table(TABLES["source_artist"], folder).select(TABLES["artist_name"].column_names) for folder in folders]
    return pl.concat([TABLES["artist_name"].build_empty().lazy(), *found])


def list_artist_parts(paths: BuildPaths) -> list[Path]:
    """Return every part of `source_artist`."""
    return list_staged_parts(paths, "source_artist", CATALOG_PLATFORMS)


def read_artist_pieces(parts: Iterable[Path]) -> Iterator[pl.DataFrame]:
    """Yield rows of table `artist_name` from its parts or those of `source_artist`; at least one piece, which may be empty."""
    yield TABLES["artist_name"].build_empty()
    for piece in cut_parts(parts, ARTISTS_PER_PIECE):
        yield piece.read_columns(*TABLES["artist_name"].column_names)


def read_aliases(paths: BuildPaths) -> pl.DataFrame:
    """Return the other names that platforms list with their artists, as `alias_owners.list_aliases` does."""
    folders = paths.staged("source_artist", CATALOG_PLATFORMS)
    columns = ("platform", "artist_id", "name", "sort_name", "aliases", "is_placeholder")
    has_other = (pl.col("aliases").list.len() > 0) | (pl.col("sort_name") != pl.col("name"))
    found = [scan_table(TABLES["source_artist"], folder).select(columns).filter(has_other).collect() for folder in folders]
    return list_aliases(pl.concat([TABLES["source_artist"].build_empty().select(columns), *found]))


def find_records_crediting(paths: BuildPaths, names: pl.Series, most: int) -> pl.DataFrame:
    """Return platform, external_id of the first `most` staged records that credit one of these names, as text or by artist id."""
    known = scan_artist_names(paths).filter(pl.col("name").is_in(names.implode())).collect()
    found = TABLES["source_recording"].build_empty().select("platform", "external_id")
    for records in cut_slices(paths):
        rows = records.read_columns("platform", "external_id", "artists", "artist_credit")
        # Two platforms may use one artist id for different artists.
        ids = known.filter(pl.col("platform").is_in(rows["platform"].unique().implode()))["artist_id"].implode()
        credit = pl.element().struct
        is_credited = pl.col("artists").list.eval(credit.field("name").is_in(names.implode()) | credit.field("artist_id").is_in(ids))
        has_credit = is_credited.list.any() | pl.col("artist_credit").is_in(names.implode())
        found = pl.concat([found, rows.filter(has_credit).select(found.columns)]).head(most)
        if found.height == most:
            break
    return found


def read_barcodes(paths: BuildPaths) -> Iterator[pl.DataFrame]:
    """Yield release, gtin, platform of all releases with a barcode, for `release_positions.find_positions`."""
    # The file of numbers does not name its platform; the folder does.
    for platform in CATALOG_PLATFORMS:
        for folder in paths.staged("source_release", (platform,)):
            yield from (rows.with_columns(platform=pl.lit(platform, PLATFORM)) for rows in read_place_numbers(folder.parent, folder.name))


def read_tracks(paths: BuildPaths) -> Iterator[pl.DataFrame]:
    """Yield release, record, spot of all tracks, for `release_positions.find_positions`."""
    for folder in paths.staged("source_release_track", CATALOG_PLATFORMS):
        yield from read_place_numbers(folder.parent, folder.name)


def read_releases(paths: BuildPaths) -> Iterator[pl.DataFrame]:
    """Yield `release_evidence.RELEASE_COLUMNS` of all releases, part by part."""
    for folder in paths.staged("source_release", CATALOG_PLATFORMS):
        for part in list_parts(folder):
            yield pl.read_parquet(part, columns=RELEASE_COLUMNS)


def count_tracks(paths: BuildPaths) -> int:
    """Return the number of staged tracks of all platforms."""
    return sum(count_rows(folder) for folder in paths.staged("source_release_track", CATALOG_PLATFORMS))


def _build_empty_records() -> pl.DataFrame:
    return TABLES["source_recording"].build_empty().select(*LINKED_COLUMNS, "content_hash")
