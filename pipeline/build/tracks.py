"""The nested `track`: a recording with its releases, artists and genres, put together per range of ids.

The module chooses no values; every nested value is in a flat table already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import parts, scan_table, write_table
from pipeline.build.release_dates import order_key_sql
from pipeline.build.workbench import Workbench, open_workbench, regroup_frames
from pipeline.engine.duckdb_session import stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.paths import BuildPaths

IDS_PER_RANGE = 250_000
"""Recordings nested at a time; with their releases they take some 300 MB."""

_RELEASE_FIELDS = (
    "release_id",
    "title",
    "artist_id",
    "artist_name",
    "artist_credited_as",
    "label_id",
    "label_name",
    "release_date",
    "release_date_precision",
)
_ARTIST_FIELDS = ("artist_id", "name", "credited_as", "is_primary", "is_remixer")

# The order is that of display: a partial date sorts behind the full dates of its period, because it may mean any day of it.
_RELEASES = f"""
SELECT x.recording_id, {", ".join(f"r.{field}" for field in _RELEASE_FIELDS)}
FROM recording_release x JOIN release r USING (release_id)
ORDER BY x.recording_id, {order_key_sql("r.release_date", "r.release_date_precision")} NULLS LAST, r.release_id
"""

_GENRES = """
SELECT g.recording_id, g.position, n.main_name, CASE WHEN n.type = 'subgenre' THEN n.name END AS subgenre
FROM recording_genre g JOIN genre n USING (genre_id) ORDER BY g.recording_id, g.position
"""


def build_tracks(paths: BuildPaths) -> dict[str, int]:
    """Write track and return its row count."""
    with open_workbench(paths, "tracks") as bench:
        scratch = paths.root / "work" / "spill" / "tracks"
        releases = _write_ranges(bench, _RELEASES, scratch / "releases")
        genres = _write_ranges(bench, _GENRES, scratch / "genres")
        frames = _iterate_tracks(paths, releases, genres)
        return {"tracks": write_table(TABLES["track"], paths.table("track"), frames)}


def _write_ranges(bench: Workbench, sql: str, folder: Path) -> list[Path]:
    """Write the result, sorted by recording, in files of IDS_PER_RANGE rows, and return the files."""
    # Each file covers a narrow range of ids, so Parquet's statistics let a range of tracks skip all other files.
    folder.mkdir(parents=True)
    files = []
    for number, frame in enumerate(regroup_frames(stream(bench.connection, sql), IDS_PER_RANGE)):
        files.append(folder / f"{number:05d}.parquet")
        frame.write_parquet(files[-1], compression="lz4")  # the files are read soon and then removed: speed counts more than size
    if not files:
        # scan_parquet needs a file to learn the columns.
        files.append(folder / "empty.parquet")
        bench.read_frame(f"SELECT * FROM ({sql}) LIMIT 0").write_parquet(files[0])
    return files


def _iterate_tracks(paths: BuildPaths, releases: list[Path], genres: list[Path]) -> Iterator[pl.DataFrame]:
    """Yield tracks in id order, a frame per IDS_PER_RANGE recordings."""
    # Polars nests range by range. DuckDB's `list(struct)` over everything takes seven times the time and holds it all in memory.
    for part in parts(paths.table("recording")):
        recordings = pl.read_parquet(part)
        for start in range(0, recordings.height, IDS_PER_RANGE):
            block = recordings.slice(start, IDS_PER_RANGE)
            inside = pl.col("recording_id").is_between(block["recording_id"][0], block["recording_id"][-1])
            artists = scan_table(TABLES["recording_artist"], paths.table("recording_artist")).filter(inside).collect()
            yield nest(block, pl.scan_parquet(releases).filter(inside).collect(), artists, pl.scan_parquet(genres).filter(inside).collect())


def nest(recordings: pl.DataFrame, releases: pl.DataFrame, artists: pl.DataFrame, genres: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `track`, in the order of `recordings`.

    Args:
        recordings: rows of `recording`, sorted by id.
        releases: recording_id and the fields of a release, in display order.
        artists: rows of `recording_artist`, in display order.
        genres: recording_id, position, main_name, subgenre (null for a main), in order of trust.
    """
    # The queries above sorted the rows for display. Without `maintain_order` Polars groups and joins in any order.
    per_release = releases.group_by("recording_id", maintain_order=True).agg(releases=pl.struct(_RELEASE_FIELDS))
    per_artist = artists.group_by("recording_id", maintain_order=True).agg(artists=pl.struct(_ARTIST_FIELDS))
    per_genre = genres.group_by("recording_id", maintain_order=True).agg(
        genres=pl.col("main_name").unique(maintain_order=True), subgenres=pl.col("subgenre").drop_nulls().unique(maintain_order=True)
    )
    track = recordings
    for nested in (per_release, per_artist, per_genre):
        track = track.join(nested, on="recording_id", how="left", maintain_order="left")
    return track.select(
        "recording_id",
        "title",
        pl.col("releases").fill_null([]),
        pl.col("artists").fill_null([]),
        "isrc",
        "duration_seconds",
        pl.col("genres").fill_null([]),
        pl.col("subgenres").fill_null([]),
        "release_date",
        "release_date_precision",
        "popularity",
    )
