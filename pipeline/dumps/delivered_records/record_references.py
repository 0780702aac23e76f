"""References of delivered rows to other rows of the dump: credited artists, genres, the release of a recording.

DuckDB joins and sorts narrow rows, spilling what does not fit. Whole rows are only scanned, in the order of the dump: three joins and a
sort of 6.5 million whole rows took more than .5 GB. Polars brings both sides together block by block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.delivered_records.record_shapes import GENRES
from pipeline.dumps.delivered_records.staging_rows import LARGEST_SMALLINT
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.staging.record_checks import parse_whole_number
from pipeline.dumps.staging.sorted_streams import nest_rows, pair_blocks
from pipeline.engine.duckdb_session import stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from pipeline.dumps.staging.staging_writer import StagingWriter

_NAMED = "SELECT id, arg_min(title, position) AS name FROM {kind} WHERE trim(id) <> '' AND trim(title) <> '' GROUP BY id"
_REFERENCES = {
    "recording": f"""
        SELECT r.position, named.id AS release_id, pair.id IS NOT NULL AS _is_placed,
            CASE WHEN named.id IS NULL THEN coalesce(r.release_id, p.release_id) END AS _lost_release
        FROM (SELECT position, id, release_id FROM recording WHERE {{condition}}) r
        LEFT JOIN (SELECT id, arg_min(release_id, position) AS release_id FROM placement GROUP BY id) p ON p.id = r.id
        LEFT JOIN ({_NAMED.format(kind="release")}) named ON named.id = coalesce(r.release_id, p.release_id)
        LEFT JOIN (SELECT DISTINCT release_id, id FROM placement) pair ON pair.id = r.id AND pair.release_id = named.id
        ORDER BY r.position
    """,
    "release": """
        SELECT r.position, lost.ids AS _lost_items
        FROM (SELECT position, id FROM release WHERE {condition}) r
        LEFT JOIN (
            SELECT release_id, string_agg(id, ',' ORDER BY position) AS ids
            FROM placement ANTI JOIN (SELECT DISTINCT id FROM recording) known USING (id) GROUP BY release_id
        ) lost ON lost.release_id = r.id
        ORDER BY r.position
    """,
}


def read_blocks(connection: duckdb.DuckDBPyConnection, kind: str, *, parts: bool) -> Iterator[pl.DataFrame]:
    """Yield blocks of records in order of arrival; with `parts`, of the parts in the step `<kind>_part`."""
    # A scan keeps the order of the files, a join does not.
    rows = stream(connection, f"SELECT * FROM {kind} WHERE is_part = {parts}")
    if not parts:
        yield from rows
        return
    chosen = stream(connection, f"SELECT position FROM {kind}_part ORDER BY position")
    for block, found in pair_blocks(rows, chosen, "position"):
        if found.height:
            yield block.join(found, on="position", how="semi", maintain_order="left")


def read_linked_blocks(
    connection: duckdb.DuckDBPyConnection, genre_names: dict[str, str], kind: str, *, parts: bool
) -> Iterator[pl.DataFrame]:
    """Yield the blocks of `read_blocks`, recordings or releases, with names filled in and dangling references in `_lost_*`."""
    condition = f"position IN (SELECT position FROM {kind}_part)" if parts else "NOT is_part"
    # All streams are sorted by `position`, as `pair_blocks` requires.
    references = stream(connection, _REFERENCES[kind].format(condition=condition))
    credit_rows = stream(
        connection,
        f"""
        SELECT position, credit.artist_id, coalesce(nullif(trim(credit.name), ''), named.name) AS name, credit.role
        FROM (SELECT position, unnest(artists) AS credit, unnest(range(len(artists))) AS nth FROM {kind} WHERE {condition})
        LEFT JOIN ({_NAMED.format(kind="artist")}) named ON named.id = credit.artist_id
        ORDER BY position, nth
        """,
    )
    pairs = pair_blocks(read_blocks(connection, kind, parts=parts), references, "position")
    referring = (_replace_references(block, found) for block, found in pairs)
    for block, credit in pair_blocks(referring, credit_rows, "position"):
        yield _add_genres(_add_credits(block, credit), genre_names)


def _replace_references(block: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the block with the references that were found for its positions, in place of those delivered."""
    delivered = ["artists", *(name for name in found.columns if name != "position")]
    return block.drop(delivered, strict=False).join(found, on="position", how="left", maintain_order="left")


def stage_placements(connection: duckdb.DuckDBPyConnection, out: StagingWriter) -> None:
    """Stage the places of recordings on releases, as the releases list them. Both must be in the dump."""
    for block in stream(
        connection,
        f"""
        SELECT min(position) AS position, release_id, id AS external_id, disc_number, track_number
        FROM placement
        SEMI JOIN (SELECT id FROM recording WHERE kind IS NULL AND trim(title) <> '') r USING (id)
        SEMI JOIN ({_NAMED.format(kind="release")}) named ON named.id = release_id
        GROUP BY ALL ORDER BY position
        """,
    ):
        out.write(
            "source_release_track",
            block.select(
                "release_id",
                "external_id",
                disc_number=parse_whole_number(pl.col("disc_number"), 1, LARGEST_SMALLINT),
                track_number=parse_whole_number(pl.col("track_number"), 0, LARGEST_SMALLINT),
            ),
        )


def _add_credits(block: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    if rows.is_empty():
        return block.with_columns(artists=pl.lit([], dtype=CREDITS), _lost_artists=pl.lit(None, dtype=pl.String))
    # A credit that is an id alone needs a name from the dump. Without one it cannot be shown or linked.
    lost = rows.filter(pl.col("name").is_null()).group_by("position").agg(_lost_artists=pl.col("artist_id").str.join(","))
    named = rows.filter(pl.col("name").is_not_null())
    # A credit without a name is dropped here and reported through `_lost_artists`.
    artists = nest_rows(block, named, "position", ["artist_id", "name", "role"])
    return block.with_columns(artists=artists).join(lost, on="position", how="left", maintain_order="left")


def _add_genres(block: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    genre, genre_id, parent = (pl.element().struct.field(name) for name in ("genre", "genre_id", "parent"))
    looked_up = genre_id.replace_strict(names, default=None, return_dtype=pl.String) if names else pl.lit(None, dtype=pl.String)
    named = pl.struct(genre=pl.coalesce(genre, looked_up), genre_id=genre_id, parent=parent)
    return block.with_columns(genres=pl.col("genres").list.eval(named).cast(GENRES))
