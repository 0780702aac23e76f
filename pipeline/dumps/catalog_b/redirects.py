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
            SELECT d.line, d.gid AS old_id, r.gid AS new_id, d.new_id AS row
            FROM {table} d LEFT JOIN {kind} r ON d.new_id = r.id ORDER BY d.line
        """):
            relations.out.read("source_redirect", rows.height)
            known = rows.filter(pl.col("new_id").is_not_null() & pl.col("old_id").is_not_null())
            relations.out.write("source_redirect", known.select("old_id", "new_id", entity_kind=pl.lit(kind)))
            lost = rows.filter(pl.col("new_id").is_null() | pl.col("old_id").is_null())
            relations.reject_records(
                "source_redirect",
                table,
                lost.select(
                    "line", record_id="old_id", value=pl.col("row").cast(pl.String), reason=pl.lit(Reason.DANGLING_REFERENCE.value)
                ),
            )
