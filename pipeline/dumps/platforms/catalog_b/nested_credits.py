"""Artist credits: ordered names with join phrases, as the nested `artists` column of recordings and releases.

A name after a phrase like ` feat. ` is a guest: it and all following names are `featured`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.sql_text import quote_text
from pipeline.dumps.platforms.catalog_b.relations import BLOCK

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.platforms.catalog_b.relations import Relations

GUEST_PHRASE = r"(?i)\b(feat|ft|featuring|with)\b"
"""Words in a join phrase before a guest. Phrases are free text in any language; these words precede most guests."""

ARTISTS = pl.List(pl.Struct({"artist_id": pl.String, "name": pl.String, "role": pl.String}))
_ENTRY = pl.struct("artist_id", "name", "role")


def nest_credits(relations: Relations, folder: Path) -> None:
    """Create the relation `credit`: id of an artist credit, its display string `artist_credit`, its nested `artists` in order."""
    folder.mkdir(parents=True, exist_ok=True)
    relations.reject_dangling("source_recording", "artist_credit_name", "artist", "artist")
    for part, _ in enumerate(relations.iterate_blocks("artist_credit")):
        relations.read_all(f"SELECT id, name FROM {BLOCK} ORDER BY line").join(
            _nest_block(relations), on="id", how="left", maintain_order="left"
        ).select("id", artist_credit=pl.col("name"), artists=pl.col("artists").fill_null([])).write_parquet(
            folder / f"part-{part:05d}.parquet", compression="zstd", compression_level=1
        )
    if not any(folder.iterdir()):
        pl.DataFrame(schema={"id": pl.Int32, "artist_credit": pl.String, "artists": ARTISTS}).write_parquet(folder / "part-00000.parquet")
    relations.run(f"CREATE VIEW credit AS SELECT * FROM read_parquet({quote_text(folder / 'part-*.parquet')})")


def _nest_block(relations: Relations) -> pl.DataFrame:
    # `unique`, because a table that is delivered twice would double every credit.
    names = relations.read_all(f"""
        SELECT n.artist_credit AS id, n.position, a.gid AS artist_id, coalesce(nullif(n.name, ''), a.name) AS name, n.join_phrase
        FROM artist_credit_name n JOIN {BLOCK} b ON n.artist_credit = b.id LEFT JOIN artist a ON n.artist = a.id
        ORDER BY n.artist_credit, n.position, n.line
    """).unique(["id", "position"], keep="first", maintain_order=True)
    guest = pl.col("join_phrase").str.contains(GUEST_PHRASE).fill_null(value=False)
    # A join phrase comes after its name, so it speaks of the next one.
    is_featured = guest.shift(1, fill_value=False).cum_max().over("id")
    return (
        names.with_columns(role=pl.when(is_featured).then(pl.lit("featured")).otherwise(pl.lit("primary")))
        .filter(pl.col("name").is_not_null())
        .group_by("id", maintain_order=True)
        .agg(artists=_ENTRY)
    )
