"""Relationships of records in the relational dump: merged ids, pages on other platforms, and those of unknown kind.

Staged as `source_redirect` and `source_link`. URLs of other sites are not counted as records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_B
from pipeline.dumps.platforms.catalog_b.platform_urls import HOST_HINT, parse_urls
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pipeline.dumps.platforms.catalog_b.relations import Relations

REDIRECTED = ("recording", "release", "artist", "label")
LINKED = ("recording", "release", "artist")
_SERVES = {
    "l_artist_recording": "source_recording",
    "l_recording_recording": "source_recording",
    "l_recording_work": "source_work_recording",
}
"""Tables whose rows count only with a known kind -> the staging table that loses them. A URL shows its kind itself."""


def reject_lost_relationships(relations: Relations) -> None:
    """Add a `field` reject per relationship whose `link`, or the type of it, is missing."""
    relations.run("CREATE VIEW typed_link AS SELECT k.id FROM link k SEMI JOIN link_type t ON k.link_type = t.id")
    for table, entity in _SERVES.items():
        relations.reject_dangling(entity, table, "link", "typed_link")


def stage_redirects(relations: Relations) -> None:
    """Write merged ids. `new_id` of the dump is the row number of the living record, so there are no chains to follow."""
    for kind in REDIRECTED:
        table = f"{kind}_gid_redirect"
        for rows in relations.read_rows(f"""
            SELECT d.line, d.gid AS old_id, r.gid AS new_id, d.new_id::VARCHAR AS value, CASE
                WHEN r.gid IS NULL OR d.gid IS NULL THEN '{Reason.DANGLING_REFERENCE.value}'
                WHEN row_number() OVER (PARTITION BY d.gid ORDER BY r.gid IS NULL, d.line) > 1
                THEN '{Reason.DUPLICATE_ID.value}' END AS reason
            FROM {table} d LEFT JOIN {kind} r ON d.new_id = r.id ORDER BY d.line
        """):
            relations.out.count_read("source_redirect", rows.height)
            kept, out = rows.filter(pl.col("reason").is_null()), rows.filter(pl.col("reason").is_not_null())
            relations.write("source_redirect", table, kept.select("line", "old_id", "new_id", entity_kind=pl.lit(kind)))
            relations.reject_records("source_redirect", table, out.select("line", "value", "reason", record_id="old_id"))


def stage_links(relations: Relations) -> None:
    """Write the ids of recordings, releases and artists on other platforms.

    Relationships that have ended (the page is gone) are left out, and so are URLs of another kind of thing than the record, e.g. the video
    of an interview on an artist: they say nothing about identity. A recording may point to a video.
    """
    relations.run(f"CREATE TABLE platform_url AS SELECT id, url FROM url WHERE regexp_matches(url, '{HOST_HINT}')")
    for kind in LINKED:
        table = f"l_{kind}_url"
        relations.reject_dangling("source_link", table, "entity0", kind)
        relations.reject_dangling("source_link", table, "entity1", "url")
        for rows in relations.read_rows(f"""
            SELECT DISTINCT ON (r.line, u.url) r.line, r.gid AS entity_id, u.url
            FROM {table} l JOIN {kind} r ON l.entity0 = r.id JOIN platform_url u ON l.entity1 = u.id LEFT JOIN link k ON l.link = k.id
            WHERE NOT coalesce(k.ended, false)
            ORDER BY r.line, u.url
        """):
            relations.write("source_link", kind, _build_links(rows, kind))


def _build_links(rows: pl.DataFrame, kind: str) -> pl.DataFrame:
    kinds = [kind, "video"] if kind == "recording" else [kind]
    return (
        rows.hstack(parse_urls(rows["url"]))
        .with_columns(entity_kind=pl.lit(kind))
        # A link to the platform itself is not a cross-link.
        .filter(pl.col("target_kind").is_in(kinds) & (pl.col("target_platform") != CATALOG_B))
        .select("line", "entity_kind", "entity_id", "target_platform", "target_id", "target_kind", "url")
    )
