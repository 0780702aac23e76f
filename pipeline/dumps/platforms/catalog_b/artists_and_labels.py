"""Artists with their aliases, and labels, of the relational dump, staged as `source_artist` and `source_label`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.platforms.catalog_b.relations import BLOCK
from pipeline.dumps.platforms.catalog_b.vocabulary_ids import PLACEHOLDER_ARTISTS, PLACEHOLDER_LABELS

if TYPE_CHECKING:
    from pipeline.dumps.platforms.catalog_b.relations import Relations


def stage_artists(relations: Relations) -> None:
    """Write all artists with their aliases (in file order, without repetitions and without the name itself)."""
    relations.reject_dangling("source_artist", "artist_alias", "artist", "artist")
    for records in relations.iterate_blocks("artist"):
        relations.out.count_read("source_artist", records)
        artists = relations.read_all(f"SELECT line, gid, name, sort_name FROM {BLOCK} ORDER BY line")
        aliases = relations.read_all(f"""
            SELECT a.line, x.name AS alias FROM artist_alias x JOIN {BLOCK} a ON x.artist = a.id
            WHERE x.name <> a.name AND trim(x.name) <> '' ORDER BY a.line, x.line
        """)
        # The same name may occur once per language.
        nested = aliases.unique(maintain_order=True).group_by("line", maintain_order=True).agg(aliases="alias")
        relations.write(
            "source_artist",
            "artist",
            artists.join(nested, on="line", how="left", maintain_order="left").select(
                "line",
                "name",
                "sort_name",
                artist_id="gid",
                aliases=pl.col("aliases").fill_null([]),
                is_placeholder=pl.col("gid").is_in(PLACEHOLDER_ARTISTS),
            ),
        )


def stage_labels(relations: Relations) -> None:
    """Write all labels."""
    for labels in relations.read_rows("SELECT line, gid AS label_id, name FROM label ORDER BY line"):
        relations.out.count_read("source_label", labels.height)
        relations.write("source_label", "label", labels.with_columns(is_placeholder=pl.col("label_id").is_in(PLACEHOLDER_LABELS)))
