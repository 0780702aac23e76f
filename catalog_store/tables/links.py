"""The links of recordings to platforms, and the ids that replaced others."""

from __future__ import annotations

from catalog_store.platforms import LINK_SOURCES
from catalog_store.tables.spec import INT64, TEXT, Column, Table

PLATFORM_LINK = Table(
    "platform_link",
    "catalog",
    "A recording on a platform's site; several recordings may have one external id (catalog_a: a release id).",
    (
        Column("recording_id", INT64, "The recording.", references="recording.recording_id"),
        Column("source", TEXT, "Platform key, or video_a.", values=LINK_SOURCES),
        Column("external_id", TEXT, "Id on that platform; catalog_a: the release id."),
        Column("slug", TEXT, "The platform's URL slug.", nullable=True),
    ),
    primary_key=("recording_id", "source", "external_id"),
)

EXTERNAL_REDIRECT = Table(
    "external_redirect",
    "catalog",
    "Recording ids that a platform merged into others. They let an old id still resolve.",
    (
        Column("source", TEXT, "Platform key.", values=LINK_SOURCES),
        Column("old_id", TEXT, "The retired id."),
        Column("new_id", TEXT, "The id that replaced it."),
    ),
    primary_key=("source", "old_id"),
)

REDIRECT = Table(
    "redirect",
    "catalog",
    "Our ids that were merged into others or retired.",
    (
        Column("kind", TEXT, "The kind of entity that the id names.", values=("recording", "artist", "release", "label")),
        Column("old_id", INT64, "The retired id.", minimum=1),
        Column(
            "new_id",
            INT64,
            "The survivor, chains followed; null when the entity left the catalog.",
            True,
            minimum=1,
            later_references="{kind}.{kind}_id",
        ),
    ),
    primary_key=("kind", "old_id"),
)

LINK_TABLES = (PLATFORM_LINK, EXTERNAL_REDIRECT, REDIRECT)
