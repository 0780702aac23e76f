"""Performers of works: many play one movement, and a platform may credit its composer first.

Then artist, title and even the length of two performances are equal. So the other credited names tell records of one work apart: those that
name no performer in common are two recordings, whoever leads them. Out of scope: namesakes with different codes (namesakes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.linkage.generic_titles import is_work_title

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTED = 1 << 43
"""Numbers of new parts start here, below zero; those of other reasons are above."""
_ORCHESTRA = "orchest|philharm|filarm|symphony|sinfoni"
PERFORMER_COLUMNS = ("artist_key", "title_key", "names")
"""Columns of either side of a pair that tell performers apart."""


def part_performers(placed: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Move the records of a work by other performers into a `part` of their own.

    Args:
        placed: row, part; rows of one part are one atom.
        records: artist_key, title_key, names, isrcs, release_id, platform; by `row`.
    """
    is_ensemble = (pl.col("names").list.len() > 1) & is_work_title(pl.col("title_key")) & (pl.col("artist_key") != "")
    credited = records.select(row=pl.int_range(pl.len(), dtype=pl.UInt32), shape=pl.col("names").hash(), is_in=is_ensemble)
    shapes = placed.select("row", "part").join(credited.filter("is_in"), on="row").group_by("part").agg(pl.col("shape").n_unique())
    doubtful = shapes.filter(pl.col("shape") > 1).select("part")
    if doubtful.is_empty():
        return placed
    rows = placed.select("row", "part").join(doubtful, on="part", how="semi").sort("part", "row")
    columns = ("artist_key", "names", "isrcs", "platform", "release_id", "external_id")
    rows = rows.with_columns(records[name].gather(rows["row"]) for name in columns)
    moved, parts = list[tuple[int, int]](), 0
    for members in rows.partition_by("part"):
        for side in _split_sides(members.sort("platform", "external_id"))[1:]:
            moved += [(row, -PARTED - parts) for row in side]
            parts += 1
    if not moved:
        return placed
    moves = pl.DataFrame(moved, schema={"row": placed.schema["row"], "own": pl.Int64}, orient="row")
    return placed.join(moves, on="row", how="left", maintain_order="left").with_columns(part=pl.coalesce("own", "part")).drop("own")


def mark_other_performers() -> pl.Expr:
    """Return whether compared pairs are one work under one lead artist, played by others; two orchestras make any title a work."""
    others = [pl.col(f"{side}_names").list.set_difference(pl.concat_list(f"{side}_artist_key")) for side in ("a", "b")]
    is_one_work = is_work_title(pl.col("a_title_key")) & is_work_title(pl.col("b_title_key"))
    is_one_work |= pl.all_horizontal(names.list.join(" ").str.contains(_ORCHESTRA) for names in others)
    is_led_alike = (pl.col("a_artist_key") == pl.col("b_artist_key")) & (pl.col("a_artist_key") != "")
    are_known = pl.all_horizontal(names.list.len() > 0 for names in others)
    return is_one_work & is_led_alike & are_known & (others[0].list.set_intersection(others[1]).list.len() == 0)


def _split_sides(members: pl.DataFrame) -> list[list[int]]:
    """Return the rows of one part by performers, the largest side first; a side without any comes last and is one of its own."""
    groups: list[tuple[set[str], list[int]]] = []
    unnamed = list[tuple[int, set[str]]]()
    for row, lead, names, isrcs, platform, release in members.select(
        "row", "artist_key", "names", "isrcs", "platform", "release_id"
    ).iter_rows():
        # A code or a release says as well who plays: the signs of a record, in one set with its names.
        signs = {f"code {code}" for code in isrcs} | ({f"release {platform} {release}"} if release else set())
        others = {f"name {name}" for name in names if name != lead}
        if others:
            _join_group(groups, others | signs, [row])
        else:
            unnamed.append((row, signs))
    if len(groups) < 2:  # noqa: PLR2004 - two performances
        return [members["row"].to_list()]
    alone = list[int]()
    for row, signs in unnamed:
        held = [group for group in groups if not signs.isdisjoint(group[0])]
        (held[0][1] if len(held) == 1 else alone).append(row)
    return [*_order(rows for _, rows in groups), *([alone] if alone else [])]


def _join_group(groups: list[tuple[set[str], list[int]]], signs: set[str], rows: list[int]) -> None:
    """Add rows to the groups with one of these signs, which become one."""
    rest = list[tuple[set[str], list[int]]]()
    for group in groups:
        if group[0].isdisjoint(signs):
            rest.append(group)
        else:
            signs, rows = signs | group[0], group[1] + rows
    groups[:] = [*rest, (signs, rows)]


def _order(sides: Iterable[list[int]]) -> list[list[int]]:
    return sorted(sides, key=lambda rows: (-len(rows), min(rows)))
