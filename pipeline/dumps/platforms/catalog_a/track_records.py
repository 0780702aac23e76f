"""Recordings out of the rows of track lists: which rows are tracks, their numbers, durations, artists and places.

A track has no id of its own: `<release id>-<n>`, n counting the tracks of the release in document order (sub tracks are tracks, index rows
and headings are not). Untitled tracks are rejected but counted, so that their neighbours keep their ids when a title appears.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.fields.duration_notations import parse_duration_ms
from pipeline.dumps.platforms.catalog_a.identifiers import IDENTIFIER_PARTS, NO_TRACKS, assign_isrcs
from pipeline.dumps.platforms.catalog_a.limited_credits import build_track_lists, resolve_limited_extras
from pipeline.dumps.platforms.catalog_a.positions import is_video_position, number_tracks
from pipeline.dumps.platforms.catalog_a.release_credits import (
    add_extras,
    build_artist_lists,
    build_credit_texts,
    read_credited_artists,
    read_extra_artists,
)
from pipeline.dumps.platforms.catalog_a.xml_extraction import list_items
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pipeline.dumps.platforms.catalog_a.batch import Batch

TRACK_VALUES = ("kind", "position", "title", "duration", "artists", "extras")
"""Columns of the stylesheet's track section; `kind` is `index`, `sub` or empty."""

_MEDIUM = r"^(.*?)[-. ]?\d*$"
"""The letters before the number: `LP-A`, `CD`, `B`, `MP3`."""
_ABOVE = ("index", "heading")
FEWEST_REPEATED = 2
"""Tracks that a release lists twice at one length before the second list counts as a repetition. One alone may be a mono mix."""
FIRST_TRACK_OWNER = 1 << 24
"""Credits of tracks and of releases are assembled together: owner numbers of tracks start above those of releases, of which a block has
thousands."""

LIVE_ALBUM = (
    r"(?i)^live (?:at|in|from|on|aus|im|en|à|au)\b|[\[(-] ?live\b|\blive (?:at|from)\b|: live$|\b(?:en|ao|dal) vivo\b|\bin concert\b|"
    r"\bunplugged\b"
)
"""Titles of releases that hold a concert: `Live at Leeds`, `Stop Making Sense (Live)`; not `Live and Let Die`."""


def stage_tracks(rows: pl.DataFrame, releases: pl.DataFrame, credited: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Stage track rows (TRACK_VALUES and `release`, the owner number of their release) in `batch`. Return owner and track_count.

    Rows of releases that are not among `releases` are left out with them. `credited` are the artists of the releases.
    """
    is_live = pl.col("title").str.contains(LIVE_ALBUM).fill_null(value=False)
    keys = releases.select("release_id", "place", "is_single_medium", "is_video_release", is_live_release=is_live, release="owner")
    # The inner join drops the tracks of rejected releases.
    rows = rows.with_row_index("row").join(keys, on="release", how="inner", maintain_order="left")
    batch.read["source_recording"] = rows.height
    tracks = _select_tracks(rows, batch).with_columns(owner=(pl.col("row") + FIRST_TRACK_OWNER).cast(pl.UInt32))
    tracks = _add_artists(tracks, releases, credited, batch)
    tracks = tracks.join(_find_isrcs(tracks, releases, batch), on="owner", how="left", maintain_order="left")
    _stage_recordings(tracks, batch)
    return tracks.group_by(owner="release").agg(track_count=pl.len())


def _select_tracks(rows: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Return the rows that are tracks, with `external_id` and `heading`. Reject headings, index rows and untitled tracks.

    The heading of a sub track is the title of its index row, which names the work. That of any other track is the last heading above it.
    """
    # The dump does not mark headings. A sub track may lack position and duration, and is still a track.
    is_heading = (pl.col("kind") != "sub") & (pl.col("position") == "") & (pl.col("duration") == "")
    what = pl.when(pl.col("kind") == "index").then(pl.lit("index")).when(is_heading).then(pl.lit("heading"))
    rows = rows.with_columns(pl.col("position", "duration").str.strip_chars()).with_columns(what=what)
    title = pl.col("title").str.strip_chars()
    above = {name: pl.when(pl.col("what") == name).then(title).forward_fill().over("release") for name in _ABOVE}
    rows = rows.with_columns(heading=pl.when(pl.col("kind") == "sub").then(above["index"]).otherwise(above["heading"]))
    rows = rows.with_columns(heading=pl.when(pl.col("heading") != "").then("heading"))
    others = rows.filter(pl.col("what").is_not_null())
    batch.reject_rows("source_recording", Reason.NOT_AUDIO, others, "release_id", pl.concat_str("what", "title", separator=": "))
    tracks = rows.filter(pl.col("what").is_null())
    # Numbers are given before untitled tracks leave: they are the ids of the neighbours.
    number = pl.int_range(1, pl.len() + 1).over("release")
    tracks = tracks.with_columns(external_id=pl.concat_str("release_id", pl.lit("-"), number))
    is_untitled = pl.col("title").str.strip_chars() == ""
    untitled = tracks.filter(is_untitled)
    batch.reject_rows("source_recording", Reason.MISSING_TITLE, untitled, "external_id", pl.col("position"))
    return tracks.filter(~is_untitled) if untitled.height else tracks


def _add_artists(tracks: pl.DataFrame, releases: pl.DataFrame, credited: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Add artists and artist_credit (both null for nobody): the track's own artists, else the release's, then guests and remixers."""
    own = read_credited_artists(tracks)
    release_extras = read_extra_artists(releases)
    limited, unknown = resolve_limited_extras(release_extras, tracks)
    unknown = unknown.join(releases.select("owner", "release_id", "place"), on="owner", maintain_order="left")
    batch.reject_values("source_release", Reason.DANGLING_REFERENCE, unknown, "release_id", "extraartists/tracks", pl.col("value"))
    extras = pl.concat([read_extra_artists(tracks).drop("tracks"), limited])
    # A track with a remixer and no artists of its own has those of the release, and then needs a list of its own for the remixer.
    borrowers = tracks.join(extras.select("owner"), on="owner", how="semi", maintain_order="left").join(own, on="owner", how="anti")
    borrowed = borrowers.select("owner", "release").join(credited, left_on="release", right_on="owner", maintain_order="left")
    named = pl.concat([own, borrowed.select(own.columns)])
    lists = pl.concat([build_artist_lists(credited), build_artist_lists(add_extras(named, extras))])
    texts = pl.concat([build_credit_texts(credited), build_credit_texts(own)])
    for owners, columns in ((lists, "artists"), (texts, "artist_credit")):
        has_own = pl.col("owner").is_in(owners["owner"].implode())
        key = pl.when(has_own).then("owner").otherwise("release").alias("key")
        tracks = (
            tracks.drop(columns, strict=False)
            .with_columns(key)
            .join(owners.rename({"owner": "key"}), on="key", how="left", maintain_order="left")
        )
    return tracks


def _find_isrcs(tracks: pl.DataFrame, releases: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Return the codes among the identifiers of the releases, as owner (of the track) and isrcs."""
    keys = releases.select("owner", "release_id", "place", "identifiers")
    codes = list_items(keys, "identifiers", IDENTIFIER_PARTS).filter(pl.col("type") == "ISRC")
    lists = build_track_lists(tracks, codes["owner"])
    pairs: list[tuple[int, str]] = []
    misfits: list[tuple[str, str, str, str]] = []
    for owner, release_id, place, value, description in codes.select("owner", "release_id", "place", "value", "description").iter_rows():
        found, strange = assign_isrcs(value, description, lists.get(owner, NO_TRACKS))
        pairs += found
        misfits += [(release_id, place, reason.value, text) for reason, text in strange]
    frame = pl.DataFrame(misfits, schema=dict.fromkeys(("release_id", "place", "reason", "value"), pl.String), orient="row")
    for reason in (Reason.INVALID_ISRC, Reason.DANGLING_REFERENCE):
        rejected = frame.filter(pl.col("reason") == reason.value)
        batch.reject_values("source_recording", reason, rejected, "release_id", "identifiers/ISRC", pl.col("value"))
    by_track = pl.DataFrame(pairs, schema={"owner": pl.UInt32, "isrc": pl.String}, orient="row").unique()
    return by_track.sort("owner", "isrc").group_by("owner", maintain_order=True).agg(isrcs="isrc")


def _mark_repeats(tracks: pl.DataFrame) -> pl.DataFrame:
    """Add `repeats`: the first track of the release with this title and length, if the release lists its tracks again on another medium.

    An LP with a CD prints one list twice, and so does a release of MP3 and WAV files. Then two titles or more appear again, each at
    the length that it had, in the same order, and never twice under one letter of the position.
    """
    same = ["release", "title", "artist_credit", "duration_ms"]
    twice = tracks.filter(pl.col("duration_ms").is_not_null() & pl.struct(same).is_duplicated())
    medium = pl.col("position").str.extract(_MEDIUM).str.to_lowercase()
    # The second and the third of three media repeat the first, each in its order.
    again = twice.select(
        *same, "row", first_row=pl.col("row").first().over(same), first=pl.col("external_id").first().over(same),
        list=pl.int_range(pl.len()).over(same), is_on_other_media=medium.n_unique().over(same) == pl.len().over(same),
    ).filter("is_on_other_media", pl.col("list") > 0)  # fmt: skip
    is_in_order = (pl.col("first_row").cast(pl.Int64).diff().fill_null(1) > 0).all().over("release", "list")
    again = again.filter((pl.len().over("release", "list") >= FEWEST_REPEATED) & is_in_order)
    return tracks.join(again.select("row", repeats="first"), on="row", how="left", maintain_order="left")


def _stage_recordings(tracks: pl.DataFrame, batch: Batch) -> None:
    tracks = _mark_repeats(number_tracks(tracks.with_columns(duration_ms=parse_duration_ms(pl.col("duration")))))
    unread = tracks.filter(pl.col("duration_ms").is_null() & (pl.col("duration") != ""))
    batch.reject_values("source_recording", Reason.INVALID_DURATION, unread, "external_id", "duration", pl.col("duration"))
    batch.frames["source_recording"] = tracks.select(
        "place",
        "external_id",
        pl.col("release_id").alias("link_id"),
        "title",
        pl.col("artists").fill_null([]),
        "artist_credit",
        pl.col("isrcs").fill_null([]),
        "duration_ms",
        "release_id",
        "disc_number",
        "track_number",
        "heading",
        "repeats",
        is_video=pl.col("is_video_release") | is_video_position(pl.col("position")),
        traits=pl.when("is_live_release").then(pl.lit(["live"])).otherwise(pl.lit([], dtype=pl.List(pl.String))),
    )
    batch.frames["source_release_track"] = tracks.select("place", "release_id", "external_id", "disc_number", "track_number")
