"""Changes of a night to what platforms say of releases, artists and genres; nightly.py changes their records.

Every change depends on the row, the row before it in the table, and the number of the night. Add a kind here when a stage of the catalog
learns something that a night could upset and that no record tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, write_table
from simulator.randomness import draw_numbers, hash_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Kind(NamedTuple):
    """A kind of change: its share of the rows that change, and the new values of the columns that it changes."""

    share: float
    values: Mapping[str, pl.Expr]


def _take_from_row_before(*columns: str) -> dict[str, pl.Expr]:
    # The first row keeps its own values.
    is_first = pl.int_range(pl.len()) == 0
    return {column: pl.when(is_first).then(column).otherwise(pl.col(column).shift(1)) for column in columns}


_DATE = pl.col("release_date")
_YEAR_EARLIER = pl.concat_str((_DATE.str.head(4).cast(pl.Int32) - 1).cast(pl.String), _DATE.str.slice(4)).str.replace("-02-29$", "-02-28")

KINDS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Kind]]] = {
    "source_release": (
        ("platform", "release_id"),
        {
            "redated": Kind(0.25, {"release_date": _YEAR_EARLIER}),
            "rebarcoded": Kind(0.25, _take_from_row_before("gtin")),
            "relabelled": Kind(0.25, _take_from_row_before("label_id", "label_name")),
            "retitled": Kind(0.25, {"title": pl.col("title") + " Revisited"}),
        },
    ),
    "source_artist": (
        ("platform", "artist_id"),
        {"aliased": Kind(0.5, {"aliases": pl.concat_list("aliases", pl.lit("Also ") + pl.col("name"))})},
    ),
    "source_genre": (
        ("platform", "entity_kind", "entity_id", "position", "genre"),
        {"retagged": Kind(0.5, _take_from_row_before("genre", "genre_id", "parent")), "revoted": Kind(0.5, {"votes": pl.col("votes") + 1})},
    ),
}
"""Table -> the columns that name a row, and its kinds of change."""


def change_tables(staged: Path, night: int, share: float) -> None:
    """Change `share` of the rows of each table of KINDS below the folder of a staged platform."""
    for name, (key, kinds) in KINDS.items():
        table = TABLES[name]
        rows = read_table(table, staged / name)
        drawn = pl.Series("_drawn", draw_numbers(hash_names(rows, *key), f"{name} {night}")) / share
        rows, first = rows.with_columns(drawn), 0.0
        for kind in kinds.values():
            is_chosen = pl.col("_drawn").is_between(first, first + kind.share, closed="left")
            rows = rows.with_columns(
                pl.when(is_chosen).then(value).otherwise(column).alias(column) for column, value in kind.values.items()
            )
            first += kind.share
        write_table(table, staged / name, rows.drop("_drawn"))
