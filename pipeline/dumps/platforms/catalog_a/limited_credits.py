"""Guests and remixers that a release names for some of its tracks (`Remix`, tracks `A1 to A3, B2`) -> credits of these tracks.

Without a list of tracks such a credit may belong to any of them, so it counts only where the release has just one track.
Row by row in Python: 5 releases in 100 have such credits.
"""

from __future__ import annotations

import polars as pl

from pipeline.dumps.platforms.catalog_a.identifiers import TrackList
from pipeline.dumps.platforms.catalog_a.positions import resolve_positions
from pipeline.dumps.platforms.catalog_a.release_credits import CREDITED

UNKNOWN_POSITION = {"owner": pl.UInt32, "value": pl.String}


def build_track_lists(tracks: pl.DataFrame, releases: pl.Series) -> dict[int, TrackList]:
    """Return the track list of each of these `releases`, by number; `tracks` has owner, release, position, title."""
    wanted = tracks.filter(pl.col("release").is_in(releases.unique().implode()))
    lists = wanted.group_by("release", maintain_order=True).agg("owner", "position", "title")
    return {release: TrackList(*columns) for release, *columns in lists.iter_rows()}


def resolve_limited_extras(extras: pl.DataFrame, tracks: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return credits of single tracks (CREDITED), and the positions that no track has (UNKNOWN_POSITION).

    `extras` are credits of releases: CREDITED with `tracks`, the release being the owner.
    """
    lists = build_track_lists(tracks, extras["owner"])
    rows: list[tuple[int, str | None, str, str]] = []
    unknown: list[tuple[int, str]] = []
    for release, artist_id, name, role, named in extras.select(*CREDITED, "tracks").iter_rows():
        track_list = lists.get(release)
        if track_list is None:
            continue
        if named:
            owners, strange = resolve_positions(named, track_list.index_by_position())
            unknown += [(release, position) for position in strange]
        else:
            # A remixer of a release of ten tracks may have mixed one or all. A wrong credit would separate recordings that are one.
            owners = list(track_list.rows) if len(track_list.rows) == 1 else []
        rows += [(owner, artist_id, name, role) for owner in owners]
    return (
        pl.DataFrame(rows, schema=CREDITED, orient="row"),
        pl.DataFrame(unknown, schema=UNKNOWN_POSITION, orient="row"),
    )
