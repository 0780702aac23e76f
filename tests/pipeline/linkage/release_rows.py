"""Rows of `source_release` and `source_release_track` for tests of release positions."""

from __future__ import annotations

import polars as pl

from catalog_store.tables import TABLES

GTIN = "04006381333931"


def releases(*rows: tuple[str, str, str | None]) -> pl.DataFrame:
    """Return rows of `source_release` out of (platform, release id, barcode)."""
    made = [
        {
            "platform": platform,
            "release_id": release,
            "title": f"Album of {platform}",
            "artists": [],
            "gtin": gtin,
            "is_compilation": False,
            "is_official": True,
        }
        for platform, release, gtin in rows
    ]
    return pl.DataFrame(made, schema=TABLES["source_release"].polars_schema)


def tracks(*rows: tuple[str, str, str, int | None, int | None]) -> pl.DataFrame:
    """Return rows of `source_release_track` out of (platform, release id, record, disc, track)."""
    columns = ("platform", "release_id", "external_id", "disc_number", "track_number")
    made = [dict(zip(columns, row, strict=True)) for row in rows]
    return pl.DataFrame(made, schema=TABLES["source_release_track"].polars_schema)
