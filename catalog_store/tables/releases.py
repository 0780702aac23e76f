"""Releases and labels: the products on which recordings came out."""

from __future__ import annotations

from catalog_store.tables.spec import BOOL, DATE, FLOAT, INT32, INT64, TEXT, Column, Table
from catalog_store.tables.staging import DATE_PRECISIONS, GTIN_PATTERN, RELEASE_TYPES

RELEASE = Table(
    "release",
    "catalog",
    "One row per release, merged over platforms.",
    (
        Column("release_id", INT64, "Stable id.", minimum=1),
        Column("title", TEXT, "Title as displayed."),
        Column("artist_id", INT64, "First release artist.", references="artist.artist_id"),
        Column("artist_name", TEXT, "The artist's name: the same on every release."),
        Column("artist_credited_as", TEXT, "Name by which the release credits the artist, if it differs.", nullable=True),
        Column("label_id", INT64, "Label; null when unknown or self-released without one.", True, references="label.label_id"),
        Column("label_name", TEXT, "Its name.", nullable=True),
        Column("catalog_number", TEXT, "Catalogue number.", nullable=True),
        Column("gtin", TEXT, "Barcode as GTIN-14.", True, pattern=GTIN_PATTERN),
        Column("release_date", DATE, "Date; unknown parts are 1.", True),
        Column("release_date_precision", TEXT, "The known part of the date.", True, values=DATE_PRECISIONS),
        Column("release_type", TEXT, "Kind of release.", True, values=RELEASE_TYPES),
        Column("is_compilation", BOOL, "Various-artists or hits compilation."),
        Column("track_count", INT32, "Recordings of the catalog on it.", minimum=1),
        Column("popularity", FLOAT, "0..1: that of its most popular recording.", minimum=0, maximum=1),
        Column("platform_count", INT32, "Platforms that have it.", minimum=1),
    ),
    primary_key=("release_id",),
)

RELEASE_SOURCE = Table(
    "release_source",
    "catalog",
    "The release that each platform release became.",
    (
        Column("platform", TEXT, "Platform key."),
        Column("external_id", TEXT, "The platform's release id."),
        Column("release_id", INT64, "The release.", references="release.release_id"),
    ),
    primary_key=("platform", "external_id"),
)

LABEL = Table(
    "label",
    "catalog",
    "One row per label.",
    (
        Column("label_id", INT64, "Stable id.", minimum=1),
        Column("name", TEXT, "Display name."),
        Column("release_count", INT32, "Releases on it.", minimum=0),
    ),
    primary_key=("label_id",),
)

LABEL_SOURCE = Table(
    "label_source",
    "catalog",
    "The label that each platform label became.",
    (
        Column("platform", TEXT, "Platform key."),
        Column("external_id", TEXT, "The platform's label id, or `name:<key>` where it gives only a name."),
        Column("label_id", INT64, "The label.", references="label.label_id"),
    ),
    primary_key=("platform", "external_id"),
)

RELEASE_TABLES = (RELEASE, RELEASE_SOURCE, LABEL, LABEL_SOURCE)
