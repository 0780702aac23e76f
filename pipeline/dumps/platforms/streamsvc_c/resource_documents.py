"""The documents of the platform's first public API (`{"resource": {...}}`) as delivered rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.duration_notations import parse_duration_ms

if TYPE_CHECKING:
    from pipeline.dumps.delivered_records.record_store import DeliveredStore


def add(rows: pl.DataFrame, store: DeliveredStore) -> None:
    """Add tracks, videos and albums, and the album that a track names as a part."""
    records = rows.select("source_file", "place", "resource").unnest("resource")
    # Documents without `artifactType` are albums if they have a barcode.
    is_album = pl.coalesce(pl.col("artifactType").str.to_lowercase() == "album", pl.col("artifactType").is_null() & _has_value("barcodeId"))
    tracks = records.filter(~is_album)
    store.add("recording", _map_recordings(tracks))
    store.add("release", _map_releases(records.filter(is_album)))
    album = pl.col("album").struct
    parts = tracks.select("source_file", "place", id=album.field("id"), title=album.field("title"), is_part=pl.lit(value=True))
    store.add("release", parts.drop_nulls("id").unique("id", keep="first", maintain_order=True))


def _map_recordings(rows: pl.DataFrame) -> pl.DataFrame:
    kind = pl.col("artifactType").str.to_lowercase()
    content = pl.col("properties").struct.field("content")
    return rows.select(
        "source_file",
        "place",
        "id",
        "title",
        "version",
        "isrc",
        "duration",
        kind=pl.when(kind != "track").then(kind),
        artists=_read_credits(),
        duration_ms=parse_duration_ms(pl.col("duration"), "s"),
        release_id=pl.col("album").struct.field("id"),
        disc_number="volumeNumber",
        track_number="trackNumber",
        is_explicit=content.list.contains("explicit"),
    )


def _map_releases(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        "source_file",
        "place",
        "id",
        "title",
        "version",
        artists=_read_credits(),
        upc="barcodeId",
        release_date="releaseDate",
        release_type="type",
        track_count="numberOfTracks",
    )


def _read_credits() -> pl.Expr:
    credit = pl.element().struct
    role = pl.when(credit.field("main") == "false").then(pl.lit("featured")).otherwise(pl.lit("primary"))
    return pl.col("artists").list.eval(pl.struct(artist_id=credit.field("id"), name=credit.field("name"), role=role)).cast(CREDITS)


def _has_value(column: str) -> pl.Expr:
    return pl.col(column).is_not_null()
