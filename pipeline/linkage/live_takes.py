"""Live takes that say `Live` and no more: an artist has one of each show, so artist and title do not identify it.

A code or an album identifies it. Without these, such a take joins another only if the song has no further live take. What must not live
here: the reading of `Live at Wembley` (catalog_store/name_keys/variants.py).
"""

from __future__ import annotations

import polars as pl

from catalog_store.record_keys.numbers import GOLDEN

TAKE_GAP_MS = 2_000
"""Milliseconds between the durations of one take on two platforms. Two takes of a song are seldom closer."""
MOST_CODES = 2
"""A take has its code and perhaps one of a new edition. More codes under one `Live` are several shows."""
_UNPLACED = r"(?:^|\+)live(?:$|\+)"


def is_unplaced_live(variant: pl.Expr) -> pl.Expr:
    """Return whether a variant is a live take that names neither place nor date."""
    return variant.str.contains(_UNPLACED)


def part_shows(numbers: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Give the live takes of a key with several lengths or codes a key for each code, or for each release where they have none.

    Args:
        numbers: row, key, check (two hashes of the key), duration_ms, is_timed_live (an unplaced take with a duration).
        records: isrcs, platform, external_id, release_id; by `row`.
    """
    takes = numbers.filter("is_timed_live").select("row", "key", "duration_ms")
    code = pl.col("isrcs").list.first()
    place = pl.coalesce("release_id", "external_id")
    show = pl.coalesce(code, pl.concat_str("platform", pl.lit(":"), place)).hash()
    takes = takes.hstack(records[takes["row"]].select(code=code, show=show)).sort("key", "duration_ms")
    has_gap = (pl.col("duration_ms").diff().over("key") > TAKE_GAP_MS).any().over("key")
    takes = takes.filter(has_gap | (pl.col("code").drop_nulls().n_unique().over("key") > MOST_CODES))
    if takes.is_empty():
        return numbers
    numbers = numbers.join(takes.select("row", "show"), on="row", how="left", maintain_order="left")
    parted = (pl.coalesce(pl.col(name) * GOLDEN + pl.col("show"), name).alias(name) for name in ("key", "check"))
    return numbers.with_columns(parted).drop("show")


def mark_lone_takes(pairs: pl.DataFrame) -> pl.Expr:
    """Return whether a bare `Live` has the length of the other side, the only live take of the song that it can be.

    `pairs`: a, b, their variants and durations, a_root and b_root (the component of each side).
    """
    is_bare = {side: is_unplaced_live(pl.col(f"{side}_variant")) for side in ("a", "b")}
    others = [pairs.filter(is_bare[side]).select(atom_id=side, root=f"{other}_root") for side, other in (("a", "b"), ("b", "a"))]
    lone = pl.concat(others).unique().group_by("atom_id").len().filter(pl.col("len") == 1)["atom_id"].implode()
    is_lone = pl.all_horizontal(~bare | pl.col(side).is_in(lone) for side, bare in is_bare.items())
    gap = (pl.col("a_duration_ms") - pl.col("b_duration_ms")).abs()
    return is_lone & (gap <= TAKE_GAP_MS).fill_null(value=False)
