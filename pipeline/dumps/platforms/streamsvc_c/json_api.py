"""JSON:API resources as delivered rows. Names of artists and genres and places on albums are references, filled in later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.delivered_records.record_shapes import GENRES
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.duration_notations import parse_duration_ms

if TYPE_CHECKING:
    from pipeline.dumps.delivered_records.record_store import DeliveredStore

_NO_TEXT = pl.lit(None, dtype=pl.String)
_OLD_FULL_POPULARITY = 100


def add(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add tracks, videos, albums and artists.

    Parts, of which the first full one counts: resources of a document (the same artist is included in document after document) and
    bare references, which have no attributes.
    """
    store.has_references = True
    # Without the columns of the other layouts, which each filter would copy.
    rows = rows.select("source_file", "place", "id", "type", "attributes", "relationships")
    kind = pl.col("type")
    for name, select in (
        ("recording", _map_recordings),
        ("release", _map_releases),
        ("placement", _map_placements),
        ("artist", _map_artists),
    ):
        kinds = {"recording": ["tracks", "videos"], "artist": ["artists"]}.get(name, ["albums"])
        store.add(name, select(rows.filter(kind.is_in(kinds))))


def parse_popularity(value: pl.Expr) -> pl.Expr:
    """Return text as a share of 0 to 1. Older answers count up to 100."""
    number = value.cast(pl.Float64, strict=False)
    return pl.when(number > 1).then(number / _OLD_FULL_POPULARITY).otherwise(number)


def _map_recordings(rows: pl.DataFrame) -> pl.DataFrame:
    duration = _get_attribute("duration")
    return rows.select(
        *_select_common(),
        version=_get_attribute("version"),
        kind=pl.when(pl.col("type") == "videos").then(pl.lit("video")),
        artists=_build_artist_references(),
        isrc=_get_attribute("isrc"),
        duration=duration,
        duration_ms=parse_duration_ms(duration, "s"),
        release_id=_get_references("albums").list.first().struct.field("id"),
        is_explicit=_get_attribute("explicit").replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean),
        popularity=_get_attribute("popularity"),
        popularity_share=parse_popularity(_get_attribute("popularity")),
        genres=_build_genre_references(),
    )


def _map_releases(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        *_select_common(),
        version=_get_attribute("version"),
        artists=_build_artist_references(),
        upc=_get_attribute("barcodeId"),
        release_date=_get_attribute("releaseDate"),
        release_type=pl.coalesce(_get_attribute("albumType"), _get_attribute("type")),
        track_count=_get_attribute("numberOfItems"),
        genres=_build_genre_references(),
    )


def _map_placements(rows: pl.DataFrame) -> pl.DataFrame:
    items = rows.select(release_id="id", item=_get_references("items")).explode("item").filter(pl.col("item").is_not_null())
    item = pl.col("item").struct
    # Albums list videos among their items.
    return items.filter(item.field("type") == "tracks").select(
        "release_id",
        id=item.field("id"),
        disc_number=item.field("meta").struct.field("volumeNumber"),
        track_number=item.field("meta").struct.field("trackNumber"),
    )


def _map_artists(rows: pl.DataFrame) -> pl.DataFrame:
    popularity = _get_attribute("popularity")
    return rows.select(
        *_select_common(title=_get_attribute("name")),
        popularity=popularity,
        popularity_share=parse_popularity(popularity),
    )


def _select_common(title: pl.Expr | None = None) -> list[pl.Expr]:
    # A place with a record number means that the resource came inside a document.
    is_part = (pl.col("attributes").is_null() & pl.col("relationships").is_null()) | pl.col("place").str.contains("record", literal=True)
    title = _get_attribute("title") if title is None else title
    return [pl.col("source_file"), pl.col("place"), pl.col("id"), title.alias("title"), is_part.alias("is_part")]


def _get_attribute(name: str) -> pl.Expr:
    return pl.col("attributes").struct.field(name)


def _get_references(name: str) -> pl.Expr:
    return pl.col("relationships").struct.field(name).struct.field("data")


def _build_artist_references() -> pl.Expr:
    credit = pl.struct(artist_id=pl.element().struct.field("id"), name=_NO_TEXT, role=pl.lit("primary"))
    return _get_references("artists").list.eval(credit).cast(CREDITS)


def _build_genre_references() -> pl.Expr:
    genre = pl.struct(genre=_NO_TEXT, genre_id=pl.element().struct.field("id"), parent=_NO_TEXT)
    return _get_references("genres").list.eval(genre).cast(GENRES)
