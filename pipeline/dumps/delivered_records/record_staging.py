"""Staging of a `DeliveredStore`, in bounded memory: records in the order of the dump, then parts of other records."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.memory_budget import get_budget
from pipeline.dumps.delivered_records.record_references import read_blocks, read_linked_blocks, stage_placements
from pipeline.dumps.delivered_records.record_shapes import ARTIST, LABEL, conform
from pipeline.dumps.delivered_records.staging_rows import stage_artists, stage_labels, stage_recordings, stage_releases
from pipeline.dumps.staging.record_checks import mark_later
from pipeline.engine.duckdb_session import open_duckdb, read_frame, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import duckdb

    from pipeline.dumps.delivered_records.record_store import DeliveredStore
    from pipeline.dumps.staging.staging_writer import StagingWriter

KINDS = ("recording", "release", "artist", "label")
_CREDITED_ARTISTS = """
    SELECT credit.artist_id AS id, arg_min(credit.name, (source, position, nth)) AS title, min((source, position, nth)) AS first
    FROM (
        SELECT 0 AS source, position, unnest(artists) AS credit, unnest(range(len(artists))) AS nth FROM recording WHERE kind IS NULL
        UNION ALL
        SELECT 1, position, unnest(artists), unnest(range(len(artists))) FROM release
    ) ANTI JOIN (SELECT DISTINCT id FROM artist) known ON known.id = credit.artist_id
    WHERE trim(credit.artist_id) <> '' AND trim(credit.name) <> ''
    GROUP BY credit.artist_id ORDER BY first
"""
_UNNUMBERED_RELEASES = """
    SELECT release_id FROM recording WHERE release_id IS NOT NULL AND track_number IS NOT NULL
    GROUP BY release_id HAVING count(DISTINCT id) > 1 AND max(track_number) = '1' AND min(track_number) = '1'
        AND count(DISTINCT disc_number) < 2
"""
"""Releases that number all their tracks 1 on the same disc: store_a writes 1 where it knows no number."""
_NAMED_LABELS = """
    SELECT label_id AS id, arg_min(label_name, position) AS title, min(position) AS first
    FROM release ANTI JOIN (SELECT DISTINCT id FROM label) known ON known.id = label_id
    WHERE trim(label_id) <> '' AND trim(label_name) <> ''
    GROUP BY label_id ORDER BY first
"""


def stage_delivered(store: DeliveredStore, out: StagingWriter, scratch: Path, genre_names: dict[str, str] | None = None) -> None:
    """Stage all that `store` holds. `genre_names`: names of genres that records refer to by id alone, if the dump keeps them apart."""
    with open_duckdb(scratch / "spill", get_budget().staging_database_limit) as connection:
        for kind in (*KINDS, "placement"):
            connection.execute(f"CREATE VIEW {kind} AS SELECT * FROM {store.build_source(kind)}")
        blocks = partial(read_linked_blocks, connection, genre_names or {}) if store.has_references else partial(read_blocks, connection)
        unnumbered = read_frame(connection, _UNNUMBERED_RELEASES)
        _stage(connection, "recording", blocks, lambda block: stage_recordings(_drop_filler(block, unnumbered), out))
        out.report("recordings are staged")
        _stage(connection, "release", blocks, partial(stage_releases, out=out))
        if store.rows["placement"]:
            stage_placements(connection, out)
        _stage(connection, "artist", partial(read_blocks, connection), partial(stage_artists, out=out))
        for block in stream(connection, _CREDITED_ARTISTS):
            stage_artists(_build_parts(block, ARTIST), out)
        _stage(connection, "label", partial(read_blocks, connection), partial(stage_labels, out=out))
        for block in stream(connection, _NAMED_LABELS):
            stage_labels(_build_parts(block, LABEL), out)
        out.report("releases, artists and labels are staged")


def _stage(
    connection: duckdb.DuckDBPyConnection,
    kind: str,
    blocks: Callable[..., Iterator[pl.DataFrame]],
    stage: Callable[[pl.DataFrame], None],
) -> None:
    """Stage records, then parts whose id no record has: of each id the first part with a title."""
    # Only repeated ids come into memory. They are few, whatever the size of the dump.
    duplicates = read_frame(
        connection, f"SELECT id, min(position) AS first FROM {kind} WHERE NOT is_part AND id IS NOT NULL GROUP BY id HAVING count(*) > 1"
    )
    for block in blocks(kind, parts=False):
        stage(mark_later(block, duplicates))
    connection.execute(
        f"""
        CREATE TABLE {kind}_part AS SELECT arg_min(position, (title IS NULL, position)) AS position
        FROM {kind} p ANTI JOIN (SELECT DISTINCT id FROM {kind} WHERE NOT is_part) known USING (id)
        WHERE is_part AND id IS NOT NULL GROUP BY id
        """
    )
    for block in blocks(kind, parts=True):
        stage(block.with_columns(_later=pl.lit(value=False)))


def _drop_filler(block: pl.DataFrame, unnumbered: pl.DataFrame) -> pl.DataFrame:
    """Return `block` without track numbers of releases that number all tracks 1."""
    if unnumbered.is_empty():
        return block
    is_filler = pl.col("release_id").is_in(unnumbered["release_id"].implode())
    return block.with_columns(track_number=pl.when(~is_filler.fill_null(value=False)).then(pl.col("track_number")))


def _build_parts(block: pl.DataFrame, shape: pl.Schema) -> pl.DataFrame:
    named = block.select("id", "title", source_file=pl.lit(""), place=pl.lit(""), is_part=pl.lit(value=True))
    return conform(named, shape).with_columns(_later=pl.lit(value=False))
