"""Version 3 tracks and releases (camel case, HTML entities), site-search tracks and bare track lists as delivered rows."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.delivered_records.record_shapes import GENRES
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.duration_notations import parse_duration_ms
from pipeline.dumps.fields.lists import concat_lists
from pipeline.dumps.platforms.store_a.version_4 import read_release_type, split_catalog_number
from pipeline.dumps.staging.record_checks import nullify_blank

if TYPE_CHECKING:
    from pipeline.dumps.delivered_records.record_store import DeliveredStore

_NO_TEXT = pl.lit(None, dtype=pl.String)


def unescape_html(value: pl.Expr) -> pl.Expr:
    """Return texts with HTML entities replaced by their characters. Only texts with an ampersand are touched."""
    # `map_elements` calls Python for each text, so only texts with an ampersand take that way.
    return pl.when(value.str.contains("&", literal=True)).then(value.map_elements(html.unescape, return_dtype=pl.String)).otherwise(value)


def add_tracks(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add version 3 tracks, and the release that each names as a part."""
    duration = pl.coalesce(nullify_blank("lengthMs"), nullify_blank("length"))
    store.add(
        "recording",
        rows.select(
            "source_file",
            "place",
            "id",
            "slug",
            title=unescape_html(pl.col("name")),
            version=unescape_html(pl.col("mixName")),
            artists=_read_credits(rows["artists"]),
            duration=duration,
            duration_ms=parse_duration_ms(duration, "ms"),
            release_id=pl.col("release").struct.field("id"),
            release_date=pl.coalesce(nullify_blank("releaseDate"), nullify_blank("publishDate")),
            track_number="trackNumber",
            genres=_read_genres(rows),
        ),
    )
    release, label = pl.col("release").struct, pl.col("label").struct
    parts = rows.filter(release.field("id").is_not_null()).select(
        "source_file",
        "place",
        id=release.field("id"),
        title=unescape_html(release.field("name")),
        slug=release.field("slug"),
        label_id=label.field("id"),
        label_name=unescape_html(label.field("name")),
        release_date=pl.coalesce(nullify_blank("releaseDate"), nullify_blank("publishDate")),
        is_part=pl.lit(value=True),
    )
    store.add("release", parts.unique("id", keep="first", maintain_order=True))


def add_releases(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add version 3 releases."""
    label = pl.col("label").struct
    rows = rows.rename({"catalogNumber": "catalog_number"})
    store.add(
        "release",
        rows.select(
            "source_file",
            "place",
            *split_catalog_number(_NO_TEXT),
            "id",
            "slug",
            title=unescape_html(pl.col("name")),
            artists=_read_credits(rows["artists"]),
            label_id=label.field("id"),
            label_name=unescape_html(label.field("name")),
            release_date=pl.coalesce(nullify_blank("releaseDate"), nullify_blank("publishDate")),
            release_type=read_release_type(pl.col("category").str.to_lowercase()),
            genres=_read_genres(rows),
        ),
    )


def add_search_results(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add tracks of the site's search."""
    artist, genre = pl.element().struct, pl.element().struct
    role = pl.when(artist.field("artist_type_name").str.to_lowercase() == "remixer").then(pl.lit("remixer")).otherwise(pl.lit("primary"))
    credit = pl.struct(artist_id=artist.field("artist_id"), name=artist.field("artist_name"), role=role)
    named = pl.struct(genre=genre.field("genre_name"), genre_id=genre.field("genre_id"), parent=_NO_TEXT)
    release = pl.col("release").struct
    store.add(
        "recording",
        rows.select(
            "source_file",
            "place",
            "isrc",
            id="track_id",
            title="track_name",
            version="mix_name",
            artists=pl.col("artists").list.eval(credit).cast(CREDITS),
            duration="length",
            duration_ms=parse_duration_ms(pl.col("length"), "ms"),
            release_id=release.field("release_id"),
            genres=pl.col("genre").list.eval(named).cast(GENRES),
        ),
    )
    parts = rows.filter(release.field("release_name").is_not_null()).select(
        "source_file", "place", id=release.field("release_id"), title=release.field("release_name"), is_part=pl.lit(value=True)
    )
    store.add("release", parts.unique("id", keep="first", maintain_order=True))


def add_track_list(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add tracks of a list with names only. They have no id and become rejects."""
    listed = concat_lists(_build_credits("artists", "primary"), _build_credits("remixers", "remixer"), CREDITS)
    store.add(
        "recording",
        rows.select(
            "source_file",
            "place",
            "id",
            title="name",
            version="mix",
            artists=listed,
            duration="duration_ms",
            duration_ms=parse_duration_ms(pl.col("duration_ms"), "ms"),
            release_date="published_date",
        ),
    )


def _build_credits(column: str, role: str) -> pl.Expr:
    credit = pl.struct(artist_id=_NO_TEXT, name=pl.element(), role=pl.lit(role))
    return pl.col(column).list.eval(credit).cast(CREDITS).fill_null(pl.lit([], dtype=CREDITS))


def _read_credits(artists: pl.Series) -> pl.Series:
    lists = [
        [
            {
                "artist_id": artist["id"],
                "name": html.unescape(artist["name"] or ""),
                "role": "remixer" if artist["type"] == "remixer" else "primary",
            }
            for artist in row or []
            if artist
        ]
        for row in artists.to_list()
    ]
    return pl.Series(lists, dtype=CREDITS)


def _read_genres(rows: pl.DataFrame) -> pl.Series:
    """Return the genres, then the sub-genres below the first of them."""
    lists = []
    for genres, below in rows.select("genres", "subGenres").iter_rows():
        parent = html.unescape(genres[0]["name"] or "") if genres else None
        named = [(genre, None) for genre in genres or []] + [(genre, parent) for genre in below or []]
        lists.append(
            [{"genre": html.unescape(genre["name"] or ""), "genre_id": genre["id"], "parent": above} for genre, above in named if genre]
        )
    return pl.Series(lists, dtype=GENRES)
