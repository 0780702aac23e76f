"""The nested `track`: a recording with its releases, artists and genres, put together per range of ids.

The module chooses no values; every nested value is in a flat table already. Releases are sent to the ranges of their recordings; the other
tables are in the order of recordings.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.pending_files import write_aside
from catalog_store.row_shuffle import count_bucket_rows, read_bucket, write_run
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, join_tables, list_parts, read_table, scan_table
from pipeline.build.recording_ranges import (
    find_range,
    list_range_parts,
    open_range_work,
    read_range,
    read_sent,
    write_range,
)
from pipeline.build.release_dates import build_order_key_expr

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.build.recording_ranges import SliceJob
    from pipeline.paths import BuildPaths

RELEASES_PER_BUCKET = 100_000
"""Releases whose texts are sent at a time; with a million listed recordings they take some 300 MB."""

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
_SENT = {
    "recording_id": pl.Int64(),
    **{name: TABLES["release"].polars_schema[name] for name in _RELEASE_FIELDS},
    "order_key": pl.Int32(),
}
_TABLES = ("recording", "recording_artist", "recording_genre")


class _Range(NamedTuple):
    """A range and the parts of _TABLES that hold it."""

    number: int
    parts: dict[str, list[Path]]


def build_tracks(paths: BuildPaths) -> dict[str, int]:
    """Write track and return its row count."""
    with open_range_work(paths, "tracks", count_rows(paths.table("recording_release"))) as work:
        spill = work.folder
        work.map_slices("send_listings", partial(_send_listings, spill), list_parts(paths.table("recording_release")))
        work.run("send_releases", partial(_send_releases, paths, spill), count_bucket_rows(spill / "listing"))
        found = {name: list_range_parts(paths.table(name)) for name in _TABLES}
        ranges = [_Range(number, {name: found[name].get(number, []) for name in _TABLES}) for number in found["recording"]]
        made = work.run("build", partial(_build_range, paths, spill), ranges)
        join_tables(TABLES["track"], paths.table("track"), [folder for folder in made if folder])
    return {"tracks": count_rows(paths.table("track"))}


def _send_listings(spill: Path, job: SliceJob) -> None:
    """Send the recordings of each release to the bucket of the release."""
    listings = job.rows.read_columns("recording_id", "release_id")
    write_run(spill / "listing", job.number, listings, pl.col("release_id") // RELEASES_PER_BUCKET)


def _send_releases(paths: BuildPaths, spill: Path, bucket: int) -> None:
    """Send each release of a bucket to the ranges of its recordings."""
    first = bucket * RELEASES_PER_BUCKET
    inside = pl.col("release_id").is_between(first, first + RELEASES_PER_BUCKET, closed="left")
    releases = (
        scan_table(TABLES["release"], paths.table("release")).filter(inside).select(*_RELEASE_FIELDS, order_key=build_order_key_expr())
    )
    listed = read_bucket(spill / "listing", bucket).join(releases.collect(), on="release_id").select(*_SENT)
    write_run(spill / "release", bucket, listed, find_range())


def _build_range(paths: BuildPaths, spill: Path, place: _Range) -> Path | None:
    """Write the tracks of one range, and return their folder; None when it has no recording."""
    recordings, artists, genres = (read_range(TABLES[name], place.parts[name], place.number) for name in _TABLES)
    if recordings.is_empty():
        return None
    releases = read_sent(spill / "release", place.number, _SENT).sort("recording_id", "order_key", "release_id", nulls_last=True)
    folder = spill / "built" / f"{place.number:06d}"
    with write_aside(folder) as pending:
        write_range(TABLES["track"], pending, nest(recordings, releases, artists, _name_genres(paths, genres)))
    return folder


def _name_genres(paths: BuildPaths, genres: pl.DataFrame) -> pl.DataFrame:
    """Return recording_id, main_name, subgenre (null for a main), in the order of `genres`."""
    nodes = read_table(TABLES["genre"], paths.table("genre")).select(
        "genre_id", "main_name", subgenre=pl.when(pl.col("type") == "subgenre").then("name")
    )
    ordered = genres.select("recording_id", "position", "genre_id").sort("recording_id", "position")
    return ordered.join(nodes, on="genre_id", how="left", maintain_order="left")


def nest(recordings: pl.DataFrame, releases: pl.DataFrame, artists: pl.DataFrame, genres: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `track`, in the order of `recordings`.

    Args:
        recordings: rows of `recording`, sorted by id.
        releases: recording_id and the fields of a release, in display order.
        artists: rows of `recording_artist`, in display order.
        genres: recording_id, main_name, subgenre (null for a main), in order of trust.
    """
    # Rows are in the order of display. Without `maintain_order` Polars groups and joins in any order.
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
