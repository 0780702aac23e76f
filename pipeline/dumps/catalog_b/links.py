"""URL relationships of the relational dump -> `source_link`. URLs of sites that are no platform of ours are not counted as anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_B
from pipeline.dumps.catalog_b.urls import HOST_HINT, parse_urls

if TYPE_CHECKING:
    from pipeline.dumps.catalog_b.relations import Relations

LINKED = ("recording", "release", "artist")


def stage_links(relations: Relations) -> None:
    """Write what recordings, releases and artists are called elsewhere.

    Relationships that have ended (the page is gone) are left out, and so are URLs of another kind of thing than the record, e.g. the video
    of an interview on an artist: they say nothing about identity. A recording may point to a video.
    """
    relations.run(f"CREATE TABLE platform_url AS SELECT id, url FROM url WHERE regexp_matches(url, '{HOST_HINT}')")
    for kind in LINKED:
        table = f"l_{kind}_url"
        relations.reject_dangling("source_link", table, "entity0", kind)
        relations.reject_dangling("source_link", table, "entity1", "url")
        for rows in relations.rows(f"""
            SELECT DISTINCT ON (r.line, u.url) r.line, r.gid AS entity_id, u.url
            FROM {table} l JOIN {kind} r ON l.entity0 = r.id JOIN platform_url u ON l.entity1 = u.id LEFT JOIN link k ON l.link = k.id
            WHERE NOT coalesce(k.ended, false)
            ORDER BY r.line, u.url
        """):
            relations.write("source_link", kind, _links(rows, kind))


def _links(rows: pl.DataFrame, kind: str) -> pl.DataFrame:
    kinds = [kind, "video"] if kind == "recording" else [kind]
    return (
        rows.hstack(parse_urls(rows["url"]))
        .with_columns(entity_kind=pl.lit(kind))
        .filter(pl.col("target_kind").is_in(kinds) & (pl.col("target_platform") != CATALOG_B))
        .select("line", "entity_kind", "entity_id", "target_platform", "target_id", "target_kind", "url")
    )
