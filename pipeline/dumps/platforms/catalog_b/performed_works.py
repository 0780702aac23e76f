"""Works, their ISWCs and their recordings in the relational dump, staged as `source_work` and `source_work_recording`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.identifiers import normalise_iswc_expr
from catalog_store.platforms import CATALOG_B
from pipeline.dumps.platforms.catalog_b.vocabulary_ids import PERFORMANCE
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pipeline.dumps.platforms.catalog_b.relations import Relations

ENTITY = "source_work"
LINK_ENTITY = "source_work_recording"


def stage_works(relations: Relations) -> None:
    """Write one row per work and ISWC; a work whose codes are all wrong is written once, without a code."""
    relations.reject_dangling(ENTITY, "iswc", "work", "work")
    _relate_codes(relations)
    for works in relations.read_rows("""
        SELECT w.line, w.gid AS work_id, c.iswc, w.name AS title FROM work w LEFT JOIN code c ON c.work = w.id ORDER BY w.line, c.iswc
    """):
        relations.out.count_read(ENTITY, works.height)
        relations.write(ENTITY, "work", works)


def _relate_codes(relations: Relations) -> None:
    """Create the relation `code` (work, iswc): normalised codes with a right check digit."""
    delivered = relations.read_all("""
        SELECT i.line, i.work, w.gid AS record_id, i.iswc AS value FROM iswc i JOIN work w ON i.work = w.id
        WHERE i.iswc IS NOT NULL ORDER BY i.line
    """).with_columns(iswc=normalise_iswc_expr(pl.col("value")))
    # The source checks the pattern of a code and not its check digit.
    bad = delivered.filter(pl.col("iswc").is_null()).select("line", "record_id", "value")
    relations.reject_rows(ENTITY, "iswc", "iswc", Reason.INVALID_ISWC, bad)
    relations.create("code", delivered.drop_nulls("iswc").select("work", "iswc").unique().sort("work", "iswc"))


def stage_work_recordings(relations: Relations) -> None:
    """Write which recording performs which work; one row per performance relationship, repeated ones once."""
    for rows in relations.read_rows(f"""
        SELECT l.line, w.gid AS work_id, r.gid AS external_id, l.entity0, l.entity1
        FROM l_recording_work l JOIN link k ON l.link = k.id JOIN link_type t ON k.link_type = t.id AND t.gid = '{PERFORMANCE}'
            LEFT JOIN recording r ON l.entity0 = r.id LEFT JOIN work w ON l.entity1 = w.id
        QUALIFY row_number() OVER (PARTITION BY l.entity0, l.entity1 ORDER BY l.line) = 1
        ORDER BY l.line
    """):
        is_whole = pl.col("work_id").is_not_null() & pl.col("external_id").is_not_null()
        relations.out.count_read(LINK_ENTITY, rows.height)
        kept = rows.filter(is_whole).select("line", "work_id", "external_id", recording_platform=pl.lit(CATALOG_B))
        relations.write(LINK_ENTITY, "l_recording_work", kept)
        relations.reject_records(
            LINK_ENTITY,
            "l_recording_work",
            rows.filter(~is_whole).select(
                "line",
                record_id=pl.coalesce("work_id", "external_id"),
                value=pl.format(
                    "recording {}, work {}",
                    pl.col("entity0").cast(pl.String).fill_null("?"),
                    pl.col("entity1").cast(pl.String).fill_null("?"),
                ),
                reason=pl.lit(Reason.DANGLING_REFERENCE.value),
            ),
        )
