"""Source records sent to ranges of recording ids, so that each range is built alone in bounded memory.

Two indexes of numbers come first: the recording of each source record, and the date of each source release. With them each slice of a
staging table finds the range of its rows by itself, so every text is sent once. Out of scope: which value of a field is chosen.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.record_keys.numbers import hash_columns, number_record, number_release
from catalog_store.row_shuffle import count_bucket_rows, read_bucket, write_run
from catalog_store.tables import TABLES
from catalog_store.tables.atoms import read_gone_atoms
from catalog_store.tables.files import count_rows, list_parts, scan_table
from pipeline.build.recording_index import open_recording_index
from pipeline.build.recording_ranges import find_range, read_sent
from pipeline.build.release_dates import build_stamp_expr
from pipeline.engine.number_index import NumberIndex, count_index_parts
from pipeline.linkage.audio_channels import remove_channels
from pipeline.linkage.staged_records import list_record_parts, list_staged_parts

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.build.recording_ranges import RangeWork, SliceJob
    from pipeline.paths import BuildPaths

CODES_PER_PART = TABLES["recording_isrc"].rows_per_part

_RECORD = ("platform", "external_id")
_RELEASE = ("platform", "release_id")
_TEXTS = ("title", "version", "artist_credit", "isrcs", "duration_ms", "is_video", "popularity")
_DATE = ("release_date", "release_date_precision")
_NO_STAMP = -1
"""Stands for an unknown date in the index of releases."""


class RecordingBuckets(NamedTuple):
    """The sent rows, as folders of runs below one folder for spilled data."""

    folder: Path
    recordings: NumberIndex
    releases: NumberIndex
    """`stamp` and `is_official` by `number_release`."""
    last_day: str

    def fill(self, paths: BuildPaths, work: RangeWork) -> None:
        """Send the source records, their releases and their atoms, and the owners of codes."""
        work.map_slices("index_releases", self._index_releases, list_staged_parts(paths, "source_release"))
        work.run("seal_releases", self.releases.seal, range(self.releases.parts))
        self.releases.remove_entries()
        work.map_slices("send_records", self._send_records, list_record_parts(paths))
        work.map_slices("send_tracks", self._send_tracks, list_staged_parts(paths, "source_release_track"))
        pairs = zip(list_parts(paths.table("atom_member")), list_parts(paths.table("atom")), strict=True)
        work.run("send_atoms", partial(self._send_atoms, read_gone_atoms(paths.table)), enumerate(pairs))
        work.map_slices("send_owners", self._send_owners, list_parts(paths.table("isrc_owner")))

    def list_buckets(self) -> list[int]:
        """Return the numbers of the ranges that have recordings, in order."""
        return list(count_bucket_rows(self.folder / "member"))

    def read_members(self, bucket: int) -> pl.DataFrame:
        """Return the source records of one range, with their number, `record`, their atom and the normal forms of its names."""
        members = read_bucket(self.folder / "member", bucket)
        # A left join leaves the columns of the left side in place; an inner join gathers all their texts, at five times the cost.
        joined = members.join(read_bucket(self.folder / "atom", bucket), on="record", how="left", maintain_order="left")
        if lost := joined["atom_id"].null_count():
            raise ValueError(f"{lost} source records lack their atom: link again")
        return joined

    def read_listings(self, bucket: int) -> pl.DataFrame:
        """Return recording_id, record, platform, release_id, stamp, is_official: a row for each time that a release lists a record."""
        return read_sent(self.folder / "listing", bucket, _LISTING)

    def read_owners(self, bucket: int) -> pl.DataFrame:
        """Return isrc, recording_id, platform_count and `place`, the row in `isrc_owner`, of the codes of one range."""
        return read_sent(self.folder / "owner", bucket, _OWNER)

    def send_shown_codes(self, bucket: int, places: pl.DataFrame) -> None:
        """Send the places in `isrc_owner` of the codes that one range shows."""
        write_run(self.folder / "shown", bucket, places, pl.col("place") // CODES_PER_PART)

    def read_codes(self, paths: BuildPaths, part: int) -> pl.DataFrame:
        """Return the rows of one part of `recording_isrc`: owners of codes, with the mark of those that are shown."""
        start = part * CODES_PER_PART
        rows = scan_table(TABLES["isrc_owner"], paths.table("isrc_owner")).slice(start, CODES_PER_PART).drop("record_count").collect()
        is_shown = np.zeros(rows.height, dtype=bool)
        is_shown[read_sent(self.folder / "shown", part, {"place": pl.UInt32()})["place"].to_numpy() - start] = True
        return rows.with_columns(is_representative=pl.Series(is_shown))

    def _index_releases(self, job: SliceJob) -> None:
        rows = job.rows.read_columns(*_RELEASE, *_DATE, "is_official")
        rows = rows.with_columns(stamp=build_stamp_expr(self.last_day).fill_null(_NO_STAMP))
        self.releases.add(job.number, rows.select(number_release()).to_series(), rows)

    def _send_records(self, job: SliceJob) -> None:
        rows = job.rows.read_columns(*_RECORD, *_TEXTS, *_DATE, "artists", "release_id")
        artists = pl.col("artists").list
        rows = rows.with_columns(
            stamp=build_stamp_expr(self.last_day),
            artist_count=artists.len(),
            has_names_only=(artists.len() == 0) | artists.eval(pl.element().struct.field("artist_id").is_null()).list.any(),
        ).drop("artists", *_DATE)
        rows = self.recordings.join(rows, number_record())
        write_run(self.folder / "member", job.number, rows.drop("release_id"), find_range())
        listed = rows.select("recording_id", "record", *_RELEASE).drop_nulls("release_id")
        self._send_listings(job.number, listed)

    def _send_tracks(self, job: SliceJob) -> None:
        tracks = self.recordings.join(job.rows.read_columns(*_RECORD, "release_id"), number_record())
        # Records are numbered from 0 as well: their slices are the even runs, those of tracks the odd ones.
        self._send_listings(job.number, tracks, is_track=True)

    def _send_listings(self, number: int, listed: pl.DataFrame, *, is_track: bool = False) -> None:
        found = self.releases.join(listed, number_release()).with_columns(
            pl.col("stamp").replace(_NO_STAMP, None).cast(pl.Int32), pl.col("is_official").cast(pl.Boolean)
        )
        write_run(self.folder / "listing", 2 * number + is_track, found.select(*_LISTING), find_range())

    def _send_atoms(self, gone: pl.Series, job: tuple[int, tuple[Path, Path]]) -> None:
        """Send the atoms of one part. The parts of both tables are written in pairs: a record is in the one, its atom in the other."""
        number, (member_part, atom_part) = job
        members = pl.read_parquet(member_part, columns=[*_RECORD, "atom_id"])
        if len(gone):
            members = members.filter(~pl.col("atom_id").is_in(gone.implode()))
        # Title keys are only compared within a recording, so a number stands for the text.
        atoms = pl.read_parquet(atom_part, columns=["atom_id", "variant", "title_key"])
        atoms = atoms.with_columns(remove_channels(pl.col("variant")), title_key=hash_columns(["title_key"]))
        members = self.recordings.join(members, number_record()).drop(_RECORD)
        joined = members.join(atoms, on="atom_id", how="left", maintain_order="left")
        if lost := joined["variant"].null_count():
            raise ValueError(f"{member_part} names {lost} records of atoms that {atom_part} lacks: link again")
        write_run(self.folder / "atom", number, joined.drop("recording_id"), joined.select(find_range()).to_series())

    def _send_owners(self, job: SliceJob) -> None:
        owners = job.rows.read_columns("isrc", "recording_id", "platform_count").with_row_index("place", job.before)
        write_run(self.folder / "owner", job.number, owners.select(*_OWNER), find_range())


_LISTING = {
    "recording_id": pl.Int64(),
    "record": pl.Int64(),
    "platform": pl.String(),
    "release_id": pl.String(),
    "stamp": pl.Int32(),
    "is_official": pl.Boolean(),
}
_OWNER = {"isrc": pl.String(), "recording_id": pl.Int64(), "platform_count": pl.Int32(), "place": pl.UInt32()}
"""Columns of runs that need not exist: a world may have no release and no code."""


def open_buckets(paths: BuildPaths, work: RangeWork, last_day: str) -> RecordingBuckets:
    """Return buckets in the folder of the stage, for dates up to `last_day` (see `find_last_believable_day`)."""
    releases = sum(count_rows(release) for release in paths.staged("source_release"))
    return RecordingBuckets(
        work.folder,
        open_recording_index(paths, work.folder / "recordings", work.pool),
        NumberIndex(work.folder / "releases", ("stamp", "is_official"), count_index_parts(releases)),
        last_day,
    )


def count_code_parts(paths: BuildPaths) -> int:
    """Return the number of parts of `recording_isrc`."""
    return -(-count_rows(paths.table("isrc_owner")) // CODES_PER_PART)
