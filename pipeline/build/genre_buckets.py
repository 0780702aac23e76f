"""Genre strings brought to the ranges of the recordings that they concern.

Strings hang on records, releases and artists of the platforms. The strings of an entity and the recordings that it concerns meet by its
number; what they say goes to the ranges of recordings. Two entities share a number with a chance of 1 in 2^64; then the recordings of the
one would hear the strings of the other, too. Out of scope: what a string means, and whom to believe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.pending_files import name_pending
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import hash_columns, number_record
from catalog_store.row_shuffle import count_bucket_rows, write_run
from catalog_store.tables.files import count_rows
from pipeline.build.genre_strings import ENTITY_STRING, VOTED
from pipeline.build.recording_index import open_recording_index
from pipeline.build.recording_ranges import find_range, read_sent
from pipeline.build.workbench import QuerySteps
from pipeline.engine.duckdb_session import open_duckdb
from pipeline.linkage.staged_records import list_record_parts, list_staged_parts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.build.recording_ranges import RangeWork, SliceJob
    from pipeline.engine.number_index import NumberIndex
    from pipeline.paths import BuildPaths

ROWS_PER_BUCKET = 1_000_000
"""Places of entities that one bucket holds on average: some 200 MB with what they hear."""
LEVELS = ("recording", "release", "artist")
"""Kinds of entities, the most direct first. Their places are the levels."""
_CODES = {platform: code for code, platform in enumerate(CATALOG_PLATFORMS)}

_GENRE = {"entity": pl.UInt64(), "string_id": pl.Int64(), "position": pl.Int16(), "votes": pl.Int32()}
_PLACE = {"entity": pl.UInt64(), "recording_id": pl.Int64(), "platform": pl.UInt8(), "level": pl.UInt8()}
_KNOWN = {"recording_id": pl.Int64(), "platform": pl.UInt8()}
_SAID = {"recording_id": pl.Int64(), "platform": pl.UInt8(), "level": pl.UInt8(), "string_id": pl.Int64(), "position": pl.Int16()}

# A release that lists a recording twice says its genre once. An artist whom a record credits twice counts twice.
_RELEASE = LEVELS.index("release")
_SAID_HERE = f"""
SELECT p.recording_id, p.platform, p.level, e.string_id, e.position
FROM (SELECT * FROM place WHERE level <> {_RELEASE} UNION ALL SELECT DISTINCT * FROM place WHERE level = {_RELEASE}) p
JOIN entity_string e USING (entity)
"""


class GenreBuckets(NamedTuple):
    """The sent rows, as folders of runs below one folder for spilled data."""

    folder: Path
    buckets: int
    recordings: NumberIndex
    kinds: frozenset[tuple[str, str]]
    """Platforms and kinds of entities that have a genre string at all."""

    def fill(self, paths: BuildPaths, work: RangeWork) -> None:
        """Send all strings. The steps `string` and `string_tag` are in the folder (see `write_step`)."""
        work.map_slices("send_strings", self._send_strings, list_staged_parts(paths, "source_genre"))
        work.map_slices("send_records", self._send_records, list_record_parts(paths))
        work.map_slices("send_tracks", self._send_tracks, list_staged_parts(paths, "source_release_track"))
        work.run("join_entities", self._join_entities, count_bucket_rows(self.folder / "place"))

    def list_ranges(self) -> list[int]:
        """Return the ranges that have recordings, in order."""
        return list(count_bucket_rows(self.folder / "known"))

    def read_known(self, number: int) -> pl.DataFrame:
        """Return recording_id, platform of each source record of a range."""
        return _name_platforms(read_sent(self.folder / "known", number, _KNOWN))

    def read_said(self, number: int) -> pl.DataFrame:
        """Return recording_id, platform, level, string_id, position: each string that an entity says about a recording of a range."""
        return _name_platforms(read_sent(self.folder / "said", number, _SAID))

    def write_step(self, name: str, rows: pl.DataFrame) -> None:
        """Lay a small frame down for all processes."""
        rows.write_parquet(self.folder / f"{name}.parquet", compression="lz4")

    def read_step(self, name: str) -> pl.DataFrame:
        """Return a frame that was laid down."""
        return pl.read_parquet(self.folder / f"{name}.parquet")

    def _send_strings(self, job: SliceJob) -> None:
        key = ["platform", "parent", "genre"]
        rows = job.rows.read_columns(*key, "entity_kind", "entity_id", "position", "votes").with_columns(pl.col("parent").fill_null(""))
        rows = rows.join(self.read_step("string"), on=key, how="left", maintain_order="left")
        rows = rows.with_columns(entity=hash_columns(("platform", "entity_kind", "entity_id")))
        write_run(self.folder / "genre", job.number, rows.select(*_GENRE), pl.col("entity") % self.buckets)

    def _send_records(self, job: SliceJob) -> None:
        rows = self.recordings.join(job.rows.read_columns("platform", "external_id", "release_id", "artists"), number_record())
        coded = rows.with_columns(code=_find_codes())
        write_run(self.folder / "known", job.number, coded.select("recording_id", platform="code"), find_range())
        artists = coded.select("recording_id", "platform", "code", "artists").explode("artists", empty_as_null=False).unnest("artists")
        found = [
            self._find_places(coded, "external_id", "recording"),
            self._find_places(coded.drop_nulls("release_id"), "release_id", "release"),
            self._find_places(artists.filter(pl.col("role") == "primary").drop_nulls("artist_id"), "artist_id", "artist"),
        ]
        write_run(self.folder / "place", 2 * job.number, pl.concat(found), pl.col("entity") % self.buckets)

    def _send_tracks(self, job: SliceJob) -> None:
        rows = self.recordings.join(job.rows.read_columns("platform", "external_id", "release_id"), number_record())
        found = self._find_places(rows.with_columns(code=_find_codes()), "release_id", "release")
        # Slices of both tables are numbered from 0: those of records are the even runs, those of tracks the odd ones.
        write_run(self.folder / "place", 2 * job.number + 1, found, pl.col("entity") % self.buckets)

    def _find_places(self, rows: pl.DataFrame, entity: str, kind: str) -> pl.DataFrame:
        """Return the entities of a kind with the recordings that they concern, of platforms that give this kind a genre."""
        heard = pl.Series([platform for platform, of_kind in self.kinds if of_kind == kind], dtype=pl.String)
        return rows.filter(pl.col("platform").is_in(heard.implode())).select(
            entity=hash_columns(("platform", pl.lit(kind), entity)),
            recording_id="recording_id",
            platform="code",
            level=pl.lit(LEVELS.index(kind), pl.UInt8),
        )

    def _join_entities(self, bucket: int) -> None:
        """Send what the entities of a bucket say to the ranges of the recordings that they concern."""
        with open_duckdb(name_pending(self.folder / f"duckdb-{bucket:06d}")) as connection:
            steps = QuerySteps(connection)
            steps.show("string", self.read_step("string"))
            steps.show("string_tag", self.read_step("string_tag"))
            steps.show("entity_genre", read_sent(self.folder / "genre", bucket, _GENRE))
            steps.show("place", read_sent(self.folder / "place", bucket, _PLACE))
            steps.keep("voted", VOTED)
            steps.keep("entity_string", ENTITY_STRING)
            write_run(self.folder / "said", bucket, steps.read_frame(_SAID_HERE), find_range())


def open_genre_buckets(paths: BuildPaths, work: RangeWork, kinds: Iterable[tuple[str, str]]) -> GenreBuckets:
    """Return buckets in the folder of the stage. `kinds`: platforms and kinds of entities that have a genre string."""
    tables = [*paths.staged("source_recording", CATALOG_PLATFORMS), *paths.staged("source_release_track")]
    # A record is a place itself and stands for some artists.
    places = 3 * sum(count_rows(table) for table in tables)
    index = open_recording_index(paths, work.folder / "recordings", work.pool)
    return GenreBuckets(work.folder, max(1, -(-places // ROWS_PER_BUCKET)), index, frozenset(kinds))


def _find_codes() -> pl.Expr:
    return pl.col("platform").replace_strict(_CODES, return_dtype=pl.UInt8)


def _name_platforms(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col("platform").replace_strict(dict(enumerate(CATALOG_PLATFORMS)), return_dtype=pl.String))
