"""Tables of source values: staging rows beside the recordings that they became, and all rejects.

Records, their tracks and their genres go to the ranges of their recordings. A range asks for the releases of its records by number; buckets
of releases answer. The module chooses nothing; provenance.py says which source gave a field. Two ids share a number with a chance of 1 in
2^64; then a record may show the values of another release.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.pending_files import write_aside
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import hash_columns, number_record, number_release
from catalog_store.row_shuffle import count_bucket_rows, read_bucket, write_run
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, join_tables
from pipeline.build.recording_index import open_recording_index
from pipeline.build.recording_ranges import find_range, open_range_work, read_sent, write_range
from pipeline.build.workbench import open_workbench
from pipeline.linkage.staged_records import list_record_parts, list_staged_parts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.build.recording_ranges import SliceJob
    from pipeline.engine.number_index import NumberIndex
    from pipeline.paths import BuildPaths

RELEASES_PER_BUCKET = 250_000
"""Source releases whose texts one bucket holds on average: with the records that ask for them some 150 MB."""

_VALUES = TABLES["recording_source"]
_RECORD_FIELDS = ("platform", "external_id", "title", "version", "artist_credit", "artists", "isrcs", "duration_ms")
_DATE = ("release_date", "release_date_precision")
_NAMED = {"recording_id": pl.Int64(), "record": pl.Int64(), "release": pl.UInt64()}
_TRACK = {"record": pl.Int64(), "platform": pl.String(), "release_id": pl.String()}
_GENRE = {"record": pl.Int64(), "position": pl.Int16(), "genre": pl.String()}
_RELEASE_GENRE = {"release": pl.UInt64(), "position": pl.Int16(), "genre": pl.String()}
_RELEASE_FIELDS = {"release_title": pl.String(), "label_name": pl.String(), "date": pl.Date(), "date_precision": pl.String()}
_RELEASE = {"release": pl.UInt64(), **_RELEASE_FIELDS}
_ANSWER = {"record": pl.Int64(), **_RELEASE_FIELDS, "release_genres": pl.List(pl.String())}


class _Buckets(NamedTuple):
    """The sent rows, as folders of runs below one folder for spilled data."""

    folder: Path
    releases: int
    """Buckets of releases."""
    recordings: NumberIndex

    def send_to_ranges(self, name: str, writer: int, rows: pl.DataFrame, columns: Iterable[str]) -> None:
        """Send these columns of rows to the ranges of their `recording_id`."""
        write_run(self.folder / name, writer, rows.select(*columns), rows.select(find_range()).to_series())

    def send_to_releases(self, name: str, writer: int, rows: pl.DataFrame) -> None:
        """Send rows to the bucket of their `release`."""
        write_run(self.folder / name, writer, rows, pl.col("release") % self.releases)


def build_source_values(paths: BuildPaths) -> dict[str, int]:
    """Write recording_source and source_reject, and return row counts."""
    with open_range_work(paths, "source_values", count_rows(paths.table("recording_member"))) as work:
        spill = work.folder
        releases = count_rows(*paths.staged("source_release"))
        index = open_recording_index(paths, spill / "recordings", work.pool)
        buckets = _Buckets(spill, max(1, -(-releases // RELEASES_PER_BUCKET)), index)
        unnamed = set[str]().union(*work.map_slices("send_records", partial(_send_records, buckets), list_record_parts(paths)))
        tracks = list_staged_parts(paths, "source_release_track", tuple(name for name in CATALOG_PLATFORMS if name in unnamed))
        work.map_slices("send_tracks", partial(_send_tracks, buckets), tracks)
        work.map_slices("send_releases", partial(_send_releases, buckets), list_staged_parts(paths, "source_release"))
        work.map_slices("send_genres", partial(_send_genres, buckets), list_staged_parts(paths, "source_genre"))
        ranges = list(count_bucket_rows(spill / "record"))
        work.run("ask_releases", partial(_ask_releases, buckets), ranges)
        work.checkpoints.remove_shuffle("named")
        work.run("answer", partial(_answer, buckets), range(buckets.releases))
        for name in ("asked", "release", "release_genre"):
            work.checkpoints.remove_shuffle(name)
        made = work.run("build", partial(_build_range, spill), ranges)
        join_tables(_VALUES, paths.table("recording_source"), made)
        # Before the ranges go: a kill in between would repeat them.
        with open_workbench(paths, "source_rejects") as bench:
            rejects = bench.write("source_reject", "SELECT * FROM reject")
    return {"source_values": count_rows(paths.table("recording_source")), "rejects": rejects}


def _send_records(buckets: _Buckets, job: SliceJob) -> set[str]:
    """Send records, and return the platforms that name no release in a record."""
    rows = buckets.recordings.join(job.rows.read_columns(*_RECORD_FIELDS, *_DATE, "release_id"), number_record())
    buckets.send_to_ranges("record", job.number, rows, rows.columns)
    is_unnamed = pl.col("release_id").is_null()
    named = rows.with_columns(release=pl.when(~is_unnamed).then(number_release()))
    buckets.send_to_ranges("named", job.number, named, _NAMED)
    return {*rows.filter(is_unnamed)["platform"].unique()}


def _send_tracks(buckets: _Buckets, job: SliceJob) -> None:
    rows = buckets.recordings.join(job.rows.read_columns("platform", "external_id", "release_id"), number_record())
    buckets.send_to_ranges("track", job.number, rows, _TRACK)


def _send_releases(buckets: _Buckets, job: SliceJob) -> None:
    rows = job.rows.read_columns("platform", "release_id", "title", "label_name", *_DATE)
    renamed = {"title": "release_title", "release_date": "date", "release_date_precision": "date_precision"}
    buckets.send_to_releases("release", job.number, rows.with_columns(release=number_release()).rename(renamed).select(*_RELEASE))


def _send_genres(buckets: _Buckets, job: SliceJob) -> None:
    rows = job.rows.read_columns("platform", "entity_kind", "entity_id", "position", "genre")
    number = hash_columns(("platform", "entity_id"))
    of_recordings = buckets.recordings.join(rows.filter(pl.col("entity_kind") == "recording"), number)
    buckets.send_to_ranges("genre", job.number, of_recordings, _GENRE)
    of_releases = rows.filter(pl.col("entity_kind") == "release").select("position", "genre", release=number)
    buckets.send_to_releases("release_genre", job.number, of_releases.select(*_RELEASE_GENRE))


def _ask_releases(buckets: _Buckets, number: int) -> None:
    """Ask for the releases of the records in one range."""
    named = read_bucket(buckets.folder / "named", number)
    listed = _read_listed(buckets.folder, number, named.filter(pl.col("release").is_null()))
    first = listed.select("record", first=number_release())
    asked = named.join(first, on="record", how="left").with_columns(release=pl.coalesce("release", "first"))
    buckets.send_to_releases("asked", number, asked.select(*_NAMED).drop_nulls("release"))


def _read_listed(spill: Path, number: int, unnamed: pl.DataFrame) -> pl.DataFrame:
    """Return record, platform, release_id: for those of `unnamed` that a release lists, the first id of these releases."""
    tracks = read_sent(spill / "track", number, _TRACK).join(unnamed.select("record"), on="record", how="semi")
    return tracks.group_by("record", "platform").agg(pl.col("release_id").min())


def _answer(buckets: _Buckets, bucket: int) -> None:
    """Send the values of the releases of one bucket to the records that ask for them."""
    asked = read_sent(buckets.folder / "asked", bucket, _NAMED)
    genres = _list_genres(read_sent(buckets.folder / "release_genre", bucket, _RELEASE_GENRE), "release", "release_genres")
    answers = asked.join(read_sent(buckets.folder / "release", bucket, _RELEASE), on="release", how="left")
    buckets.send_to_ranges("answer", bucket, answers.join(genres, on="release", how="left"), ("recording_id", *_ANSWER))


def _list_genres(rows: pl.DataFrame, owner: str, name: str) -> pl.DataFrame:
    """Return `owner` and `name`, the list of its genres in the platform's order."""
    return rows.sort(owner, "position", "genre").group_by(owner, maintain_order=True).agg(pl.col("genre").alias(name))


def _build_range(spill: Path, number: int) -> Path:
    """Write the values of one range of recordings, and return their folder."""
    records = read_bucket(spill / "record", number)
    listed = _read_listed(spill, number, records.filter(pl.col("release_id").is_null())).select("record", listed="release_id")
    answers = read_sent(spill / "answer", number, _ANSWER).select(*_ANSWER)
    genres = _list_genres(read_sent(spill / "genre", number, _GENRE), "record", "genres")
    # The smaller number is the smaller (platform, external id).
    rows = records.sort("recording_id", "record")
    for added in (listed, answers, genres):
        rows = rows.join(added, on="record", how="left", maintain_order="left")
    has_own = pl.col("release_date").is_not_null()
    entity = pl.when(has_own).then(pl.lit("recording")).when(pl.col("date").is_not_null()).then(pl.lit("release"))
    # Each expression reads the columns as they were before.
    rows = rows.with_columns(
        release_date=pl.coalesce("release_date", "date"),
        release_date_precision=pl.when(has_own).then("release_date_precision").otherwise("date_precision"),
        release_date_entity=entity,
        release_id=pl.coalesce("release_id", "listed"),
        genres=pl.col("genres").fill_null([]),
        release_genres=pl.col("release_genres").fill_null([]),
    )
    folder = spill / "built" / f"{number:06d}"
    with write_aside(folder) as pending:
        write_range(_VALUES, pending, rows.select(_VALUES.column_names))
    return folder
