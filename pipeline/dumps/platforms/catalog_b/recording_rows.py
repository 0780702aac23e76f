"""Recordings of the relational dump, staged as `source_recording`: credits, remixers, ISRCs, traits joined block by block in file order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.name_keys import select_version_comments
from pipeline.dumps.fields.isrcs import read_isrc_lists
from pipeline.dumps.platforms.catalog_b.relations import BLOCK
from pipeline.dumps.platforms.catalog_b.vocabulary_ids import KARAOKE_VERSION, PERFORMANCE, PERFORMANCE_TRAITS, REMIX_OF, REMIXER
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pipeline.dumps.platforms.catalog_b.relations import Relations

ENTITY = "source_recording"


def stage_recordings(relations: Relations) -> None:
    """Write all recordings; the relation `credit` must exist."""
    _relate_remixers(relations)
    _relate_traits(relations)
    relations.reject_dangling(ENTITY, "isrc", "recording", "recording")
    relations.reject_dangling(ENTITY, "recording", "artist_credit", "artist_credit")
    relations.reject_values(
        ENTITY,
        "recording",
        "length",
        Reason.INVALID_DURATION,
        "SELECT line, gid AS record_id, length::VARCHAR AS value FROM recording WHERE length <= 0 ORDER BY line",
    )
    for records in relations.iterate_blocks("recording"):
        relations.out.count_read(ENTITY, records)
        _stage_block(relations)


def _relate_remixers(relations: Relations) -> None:
    relations.run(f"""
        CREATE TABLE remixer AS
        SELECT l.line, l.entity1 AS recording,
            {{'artist_id': a.gid, 'name': coalesce(nullif(l.entity0_credit, ''), a.name), 'role': 'remixer'}} AS entry
        FROM l_artist_recording l JOIN link k ON l.link = k.id JOIN link_type t ON k.link_type = t.id JOIN artist a ON l.entity0 = a.id
        WHERE t.gid = '{REMIXER}'
        QUALIFY row_number() OVER (PARTITION BY l.entity1, a.gid ORDER BY l.line) = 1
    """)


def _relate_traits(relations: Relations) -> None:
    attributes = ", ".join(f"('{gid}', '{trait}')" for gid, trait in PERFORMANCE_TRAITS.items())
    relations.run(f"""
        CREATE TABLE trait AS
        SELECT DISTINCT l.entity0 AS recording, v.trait
        FROM l_recording_work l JOIN link k ON l.link = k.id JOIN link_type t ON k.link_type = t.id
            JOIN link_attribute s ON s.link = k.id JOIN link_attribute_type a ON s.attribute_type = a.id
            JOIN (VALUES {attributes}) v(gid, trait) ON v.gid = a.gid
        WHERE t.gid = '{PERFORMANCE}'
        UNION
        SELECT CASE t.gid WHEN '{REMIX_OF}' THEN l.entity0 ELSE l.entity1 END,
            CASE t.gid WHEN '{REMIX_OF}' THEN 'remix' ELSE 'karaoke' END
        FROM l_recording_recording l JOIN link k ON l.link = k.id JOIN link_type t ON k.link_type = t.id
        WHERE t.gid IN ('{REMIX_OF}', '{KARAOKE_VERSION}')
    """)


def _stage_block(relations: Relations) -> None:
    # The lists are put together in DuckDB: concat_list of Polars takes 1.7 s for 500,000 rows, nearly all of which have no remixer.
    records = relations.read_all(f"""
        WITH remixers AS (
            SELECT x.recording, list(x.entry ORDER BY x.line) AS entries FROM remixer x SEMI JOIN {BLOCK} b ON x.recording = b.id
            GROUP BY x.recording
        )
        SELECT r.line, r.gid, r.name, r.comment, r.length, r.video, c.artist_credit,
            coalesce(list_concat(c.artists, x.entries), []) AS artists
        FROM {BLOCK} r LEFT JOIN credit c ON r.artist_credit = c.id LEFT JOIN remixers x ON x.recording = r.id ORDER BY r.line
    """)
    for neighbours in (_read_isrcs(relations), _read_traits(relations)):
        records = records.join(neighbours, on="line", how="left", maintain_order="left")
    relations.write(
        ENTITY,
        "recording",
        records.select(
            "line",
            "artists",
            "artist_credit",
            external_id="gid",
            link_id="gid",
            title="name",
            version=select_version_comments(records["name"], records["comment"]),
            isrcs=pl.col("isrcs").fill_null([]),
            duration_ms=pl.when(pl.col("length") > 0).then(pl.col("length")),
            is_video=pl.col("video").fill_null(value=False),
            traits=pl.col("traits").fill_null([]),
        ),
    )


def _read_isrcs(relations: Relations) -> pl.DataFrame:
    rows = relations.read_all(f"""
        SELECT r.line, r.gid AS record_id, i.line AS isrc_line, i.isrc AS value FROM isrc i JOIN {BLOCK} r ON i.recording = r.id
        ORDER BY i.line
    """)
    rows = pl.concat([rows, read_isrc_lists(rows["value"])], how="horizontal")
    # A code that several recordings share is not a fault here: the source allows it, and linkage judges it.
    bad = rows.filter(pl.col("_no_isrc").is_not_null() | (pl.col("_isrcs").list.len() == 0)).select("record_id", "value", line="isrc_line")
    relations.reject_rows(ENTITY, "isrc", "isrc", Reason.INVALID_ISRC, bad)
    return _build_sorted_lists(rows.explode("_isrcs", empty_as_null=False).rename({"_isrcs": "isrc"}), "isrc", "isrcs")


def _read_traits(relations: Relations) -> pl.DataFrame:
    return _build_sorted_lists(
        relations.read_all(f"SELECT r.line, x.trait FROM trait x JOIN {BLOCK} r ON x.recording = r.id"), "trait", "traits"
    )


def _build_sorted_lists(rows: pl.DataFrame, column: str, name: str) -> pl.DataFrame:
    return rows.select("line", column).unique().sort("line", column).group_by("line", maintain_order=True).agg(pl.col(column).alias(name))
