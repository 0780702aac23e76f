"""Ids of the relational dump that were merged into others -> `source_redirect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.rejects import Reason

if TYPE_CHECKING:
    from pipeline.dumps.catalog_b.relations import Relations

REDIRECTED = ("recording", "release", "artist", "label")


def stage_redirects(relations: Relations) -> None:
    """Write merged ids; `new_id` of the dump is a row number of the record that lives, so there are no chains to follow."""
    for kind in REDIRECTED:
        table = f"{kind}_gid_redirect"
        for rows in relations.rows(f"""
            SELECT d.line, d.gid AS old_id, r.gid AS new_id, d.new_id::VARCHAR AS value, CASE
                WHEN r.gid IS NULL OR d.gid IS NULL THEN '{Reason.DANGLING_REFERENCE.value}'
                WHEN row_number() OVER (PARTITION BY d.gid ORDER BY r.gid IS NULL, d.line) > 1
                THEN '{Reason.DUPLICATE_ID.value}' END AS reason
            FROM {table} d LEFT JOIN {kind} r ON d.new_id = r.id ORDER BY d.line
        """):
            relations.out.read("source_redirect", rows.height)
            kept, out = rows.filter(pl.col("reason").is_null()), rows.filter(pl.col("reason").is_not_null())
            relations.write("source_redirect", table, kept.select("line", "old_id", "new_id", entity_kind=pl.lit(kind)))
            relations.reject_records("source_redirect", table, out.select("line", "value", "reason", record_id="old_id"))
