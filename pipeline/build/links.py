"""Links: addresses of each recording on the platforms' own sites, and retired platform ids that still resolve.

The module writes platform_link and external_redirect. A link comes from a record of the recording itself, or from one of these relations:

- A URL relation of a recording.
- A catalog_a release that is given as the same as the recording's release.
- A video of a release that has only one track. With more tracks no source says which one the video shows.

A relation to a platform id that is a record of ours yields to linkage. Links go to the ranges of their recordings; what relations say meets
releases, redirects and records by number, in buckets. Two ids share a number with a chance of 1 in 2^64; then a relation may lose its link.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.array_files import map_array, write_array
from catalog_store.pending_files import write_aside
from catalog_store.platforms import CATALOG_A
from catalog_store.record_keys.numbers import hash_columns, number_record, number_release
from catalog_store.row_shuffle import count_bucket_rows, write_run
from catalog_store.sorted_search import search_many
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, join_tables, write_table
from pipeline.build.recording_index import open_recording_index
from pipeline.build.recording_ranges import find_range, open_range_work, read_sent, write_range
from pipeline.linkage.staged_records import list_record_parts, list_staged_parts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from pipeline.build.recording_ranges import SliceJob
    from pipeline.engine.number_index import NumberIndex
    from pipeline.paths import BuildPaths

ROWS_PER_BUCKET = 1_000_000
"""Source records whose links one bucket holds on average: some 200 MB."""

_RELATED = ("recording", "video")
"""Kinds of targets that a relation of a recording may have."""
_LINK = {"recording_id": pl.Int64(), "source": pl.String(), "external_id": pl.String()}
_OWN = {**_LINK, "slug": pl.String()}
_OWN_NUMBER = {"link": pl.UInt64(), "is_release": pl.Boolean()}
_REDIRECT = {"source": pl.String(), "old_id": pl.String(), "new_id": pl.String()}
_RELEASE_LINK = {"release": pl.UInt64(), "is_video": pl.Boolean(), "source": pl.String(), "external_id": pl.String()}
_LISTING = {"release": pl.UInt64(), "recording_id": pl.Int64()}
_TRACK_COUNT = {"release": pl.UInt64(), "track_count": pl.Int32()}


class _Buckets(NamedTuple):
    """The sent rows, as folders of runs below one folder for spilled data."""

    folder: Path
    buckets: int
    recordings: NumberIndex

    def send(self, name: str, writer: int, rows: pl.DataFrame, number: pl.Expr) -> None:
        """Send rows to the bucket of a number."""
        write_run(self.folder / name, writer, rows, number % self.buckets)

    def read_linked(self) -> npt.NDArray[np.uint64]:
        """Return the numbers of the releases that relations link, in order."""
        linked: npt.NDArray[np.uint64] = map_array(self.folder / "linked.npy")
        return linked


def build_links(paths: BuildPaths) -> dict[str, int]:
    """Write platform_link and external_redirect, and return row counts."""
    records = count_rows(paths.table("recording_member"))
    with open_range_work(paths, "links", records) as work:
        spill = work.folder
        index = open_recording_index(paths, spill / "recordings", work.pool)
        buckets = _Buckets(spill, max(1, -(-records // ROWS_PER_BUCKET)), index)
        linked = work.map_slices("send_relations", partial(_send_relations, buckets), list_staged_parts(paths, "source_link"))
        write_array(spill / "linked.npy", np.unique(np.concatenate([np.zeros(0, np.uint64), *linked])))
        work.map_slices("send_records", partial(_send_records, buckets), list_record_parts(paths))
        work.map_slices("send_tracks", partial(_send_tracks, buckets), list_staged_parts(paths, "source_release_track"))
        work.map_slices("send_track_counts", partial(_send_track_counts, buckets), list_staged_parts(paths, "source_release"))
        work.map_slices("send_redirects", partial(_send_redirects, buckets), list_staged_parts(paths, "source_redirect"))
        numbers = range(buckets.buckets)
        work.run("join_releases", partial(_join_releases, buckets), numbers)
        work.run("follow_redirects", partial(_follow_redirects, buckets), numbers)
        redirects = work.run("settle_relations", partial(_settle_relations, buckets), numbers)
        ranges = {**count_bucket_rows(spill / "own"), **count_bucket_rows(spill / "related")}
        made = work.run("build", partial(_build_range, spill), sorted(ranges))
        join_tables(TABLES["platform_link"], paths.table("platform_link"), made)
    return {
        "platform_links": count_rows(paths.table("platform_link")),
        "external_redirects": write_table(TABLES["external_redirect"], paths.table("external_redirect"), pl.concat(redirects)),
    }


def _send_relations(buckets: _Buckets, job: SliceJob) -> npt.NDArray[np.uint64]:
    """Send the URL relations of recordings and releases, and return the numbers of these releases."""
    columns = ("platform", "entity_kind", "entity_id", "target_platform", "target_id", "target_kind")
    rows = job.rows.read_columns(*columns).rename({"target_platform": "source", "target_id": "external_id"})
    number = hash_columns(("platform", "entity_id"))
    said = rows.filter(pl.col("entity_kind") == "recording", pl.col("target_kind").is_in(_RELATED))
    _send_said(buckets, 2 * job.number, buckets.recordings.join(said, number))
    is_video = pl.col("target_kind") == "video"
    is_same = (pl.col("target_kind") == "release") & (pl.col("source") == CATALOG_A)
    released = rows.filter(pl.col("entity_kind") == "release", is_video | is_same).with_columns(release=number, is_video=is_video)
    buckets.send("release_link", job.number, released.select(*_RELEASE_LINK), pl.col("release"))
    found: npt.NDArray[np.uint64] = released["release"].unique().to_numpy()
    return found


def _send_said(buckets: _Buckets, writer: int, said: pl.DataFrame) -> None:
    buckets.send("said", writer, said.select(*_LINK), _number_link())


def _send_records(buckets: _Buckets, job: SliceJob) -> None:
    """Send the links of source records, and the listings of linked releases that records name."""
    rows = buckets.recordings.join(job.rows.read_columns("platform", "external_id", "link_id", "slug", "release_id"), number_record())
    own = rows.select("recording_id", "slug", source="platform", external_id="link_id").select(*_OWN)
    write_run(buckets.folder / "own", job.number, own, find_range())
    numbers = own.select(link=_number_link(), is_release=pl.col("source") == CATALOG_A)
    buckets.send("own_number", job.number, numbers, pl.col("link"))
    _send_listings(buckets, 2 * job.number, rows.drop_nulls("release_id"))


def _send_tracks(buckets: _Buckets, job: SliceJob) -> None:
    rows = job.rows.read_columns("platform", "external_id", "release_id")
    is_linked = _mark_linked(buckets, rows.select(number_release()).to_series())
    # Slices of both tables are numbered from 0: those of records are the even runs, those of tracks the odd ones.
    _send_listings(buckets, 2 * job.number + 1, buckets.recordings.join(rows.filter(is_linked), number_record()))


def _send_listings(buckets: _Buckets, writer: int, rows: pl.DataFrame) -> None:
    listed = rows.select("recording_id", release=number_release()).select(*_LISTING)
    buckets.send("listing", writer, listed.filter(_mark_linked(buckets, listed["release"])), pl.col("release"))


def _send_track_counts(buckets: _Buckets, job: SliceJob) -> None:
    rows = job.rows.read_columns("platform", "release_id", "track_count").select("track_count", release=number_release())
    buckets.send("track_count", job.number, rows.select(*_TRACK_COUNT).filter(_mark_linked(buckets, rows["release"])), pl.col("release"))


def _send_redirects(buckets: _Buckets, job: SliceJob) -> None:
    """Send each redirect of a recording to its old id, for what relations say, and to its new one, for external_redirect."""
    rows = job.rows.read_columns("platform", "entity_kind", "old_id", "new_id").filter(pl.col("entity_kind") == "recording")
    rows = rows.rename({"platform": "source"}).select(*_REDIRECT)
    for name in ("old_id", "new_id"):
        buckets.send(name, job.number, rows, hash_columns(("source", name)))


def _join_releases(buckets: _Buckets, bucket: int) -> None:
    """Send what the relations of releases say about their recordings."""
    read = partial(_read, buckets, bucket)
    links, listings = read("release_link", _RELEASE_LINK), read("listing", _LISTING).unique()
    alone = listings.group_by("release").agg(pl.col("recording_id").min(), tracks=pl.len()).filter(pl.col("tracks") == 1)
    videos = links.filter("is_video").join(alone, on="release").join(read("track_count", _TRACK_COUNT), on="release", how="left")
    said = [
        links.filter(~pl.col("is_video")).join(listings, on="release").select(*_LINK),
        videos.filter(pl.col("track_count").fill_null(1) <= 1).select(*_LINK),
    ]
    # Slices of relations are the even runs of what is said, these the odd ones.
    _send_said(buckets, 2 * bucket + 1, pl.concat(said))


def _follow_redirects(buckets: _Buckets, bucket: int) -> None:
    """Send what relations say to the ids that are valid now."""
    said, redirects = _read(buckets, bucket, "said", _LINK), _read(buckets, bucket, "old_id", _REDIRECT)
    found = said.join(redirects, left_on=["source", "external_id"], right_on=["source", "old_id"], how="left")
    valid = found.with_columns(external_id=pl.coalesce("new_id", "external_id")).select(*_LINK).unique()
    buckets.send("target", bucket, valid, _number_link())


def _settle_relations(buckets: _Buckets, bucket: int) -> pl.DataFrame:
    """Send what relations say to ranges, but for ids of our records; return the redirects to ids that are linked.

    Linkage says which recording has an id that is a record of ours. catalog_a is excepted, because its ids are releases: one release may
    stand for many recordings.
    """
    targets = _read(buckets, bucket, "target", _LINK).with_columns(link=_number_link())
    own = _read(buckets, bucket, "own_number", _OWN_NUMBER)
    records = own.filter(~pl.col("is_release"))["link"]
    related = targets.filter(~pl.col("link").is_in(records.implode())).select(*_LINK)
    write_run(buckets.folder / "related", bucket, related, find_range())
    redirects = _read(buckets, bucket, "new_id", _REDIRECT).with_columns(link=hash_columns(("source", "new_id")))
    linked = pl.concat([own["link"], targets["link"]])
    return redirects.filter(pl.col("link").is_in(linked.implode())).select(*_REDIRECT)


def _build_range(spill: Path, number: int) -> Path:
    """Write the links of one range of recordings, and return their folder."""
    own = read_sent(spill / "own", number, _OWN).group_by(*_LINK).agg(pl.col("slug").min())
    related = read_sent(spill / "related", number, _LINK).unique().join(own, on=[*_LINK], how="anti")
    folder = spill / "built" / f"{number:06d}"
    rows = pl.concat([own, related.with_columns(slug=pl.lit(None, pl.String))])
    with write_aside(folder) as pending:
        write_range(TABLES["platform_link"], pending, rows.sort(*_LINK))
    return folder


def _read(buckets: _Buckets, bucket: int, name: str, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    return read_sent(buckets.folder / name, bucket, schema)


def _number_link() -> pl.Expr:
    """Return the number of an id on a platform's site."""
    return hash_columns(("source", "external_id"))


def _mark_linked(buckets: _Buckets, releases: pl.Series) -> pl.Series:
    """Mark the releases that relations link."""
    linked, numbers = buckets.read_linked(), releases.to_numpy()
    if not len(linked):
        return pl.repeat(value=False, n=len(numbers), eager=True)
    places = np.minimum(search_many(linked, numbers), len(linked) - 1)
    return pl.Series(linked[places] == numbers)
