"""Other titles of recordings and works (`recording_alias`, `work_alias`), staged as `source_title`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables.staging import TITLED_KINDS
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pipeline.dumps.platforms.catalog_b.relations import Relations

ENTITY = "source_title"


def stage_titles(relations: Relations) -> None:
    """Write every other title of a staged recording or work, one row per locale."""
    for kind in TITLED_KINDS:
        table = f"{kind}_alias"
        for rows in relations.read_rows(f"""
            SELECT a.line, x.gid AS entity_id, a.name AS title, nullif(trim(a.locale), '') AS locale,
                coalesce(x.gid, a.{kind}::VARCHAR) AS record_id, coalesce(a.name, '') AS value, CASE
                WHEN x.gid IS NULL THEN '{Reason.DANGLING_REFERENCE.value}'
                WHEN trim(coalesce(a.name, '')) = '' THEN '{Reason.MISSING_TITLE.value}' END AS reason
            FROM {table} a LEFT JOIN {kind} x ON a.{kind} = x.id ORDER BY a.line
        """):
            is_good = pl.col("reason").is_null()
            relations.out.count_read(ENTITY, rows.height)
            kept = rows.filter(is_good).select("line", "entity_id", "title", "locale", entity_kind=pl.lit(kind))
            relations.write(ENTITY, table, kept)
            relations.reject_records(ENTITY, table, rows.filter(~is_good).select("line", "record_id", "value", "reason"))
