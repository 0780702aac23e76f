"""Live takes that say `Live` and no more: an artist has one of each show, so artist and title do not identify it.

A code or an album identifies it. Without these, such a take joins another only if the song has no further live take. A platform may also
omit the word on a live album: then the album says it, at one title and length. Out of scope: the reading of `Live at Wembley`
(catalog_store/name_keys/variants.py).
"""

from __future__ import annotations

from functools import cache

import polars as pl

from catalog_store.record_keys.numbers import GOLDEN
from pipeline.linkage.guards import can_be_one_recording, compute_duration_gap

TAKE_GAP_MS = 2_000
"""Milliseconds between the durations of one take on two platforms. Two takes of a song are seldom closer."""
MOST_CODES = 2
"""A take has its code and perhaps one of a new edition. More codes under one `Live` are several shows."""
_UNPLACED = r"(?:^|\+)live(?:$|\+)"


_CONCERT_KINDS = r"(?:^|\+)(?:live|unplugged)(?:$|[+:])"
_CONCERT_TAGS = ("live", "unplugged")


def is_unplaced_live(variant: pl.Expr) -> pl.Expr:
    """Return whether a variant is a live take that names neither place nor date."""
    return variant.str.contains(_UNPLACED)


@cache
def is_concert_difference(one: str, other: str) -> bool:
    """Return whether two variants differ by a concert that one of them leaves out: `live:budokan` and nothing."""
    tags = [[tag for tag in variant.split("+") if tag] for variant in (one, other)]
    rests = [[tag for tag in listed if tag.partition(":")[0] not in _CONCERT_TAGS] for listed in tags]
    is_marked = [len(rest) < len(listed) for rest, listed in zip(rests, tags, strict=True)]
    return is_marked[0] != is_marked[1] and can_be_one_recording(*("+".join(rest) for rest in rests))


def mark_concert_differences(pairs: pl.DataFrame) -> pl.Expr:
    """Return whether compared pairs have one title and length, and their variants differ by a concert that one of them leaves out."""
    distinct = pairs.select("a_variant", "b_variant").unique()
    differ = pl.Series([is_concert_difference(*row) for row in distinct.iter_rows()], dtype=pl.Boolean)
    found = pairs.select("a_variant", "b_variant").join(
        distinct.with_columns(differ=differ), on=["a_variant", "b_variant"], how="left", maintain_order="left"
    )
    is_close = (compute_duration_gap() <= TAKE_GAP_MS).fill_null(value=False)
    return pl.lit(found["differ"]) & (pl.col("a_title_key") == pl.col("b_title_key")) & is_close


def is_on_concert_album() -> pl.Expr:
    """Return whether the side without the word is on albums that are concerts, and the other on one of these, or on none that is known.

    An edition may hold a song and its concert, so an album without such a title says it by the place of the track alone.
    """
    is_plain = {side: ~pl.col(f"{side}_variant").str.contains(_CONCERT_KINDS) for side in ("a", "b")}
    is_concert = pl.any_horizontal(plain & pl.col(f"{side}_is_concert").fill_null(value=False) for side, plain in is_plain.items())
    is_unknown = pl.any_horizontal(~plain & (pl.col(f"{side}_albums").list.len().fill_null(0) == 0) for side, plain in is_plain.items())
    return (is_concert & (is_unknown | (pl.col("album") > 0))) | ((pl.col("album") > 0) & (pl.col("place") > 0))


def adopt_concerts(atoms: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Give the atoms without the word that an edge joins to a concert the variant of that concert.

    Args:
        atoms: atom_id, variant and any further columns.
        edges: rows of `edge` of kind `weak`, the only one that joins them.
    """
    variants = atoms.select("atom_id", "variant")
    ends = edges.select("atom_id_a", "atom_id_b", "score")
    for side in ("a", "b"):
        ends = ends.join(variants.rename({"atom_id": f"atom_id_{side}", "variant": side}), on=f"atom_id_{side}")
    is_marked = {side: pl.col(side).str.contains(_CONCERT_KINDS) for side in ("a", "b")}
    ends = ends.filter(is_marked["a"] != is_marked["b"])
    adopted = ends.select(
        "score",
        atom_id=pl.when(is_marked["a"]).then("atom_id_b").otherwise("atom_id_a"),
        adopted=pl.when(is_marked["a"]).then("a").otherwise("b"),
    )
    best = adopted.sort(-pl.col("score"), "atom_id", "adopted").unique("atom_id", keep="first").select("atom_id", "adopted")
    atoms = atoms.join(best, on="atom_id", how="left", maintain_order="left")
    return atoms.with_columns(variant=pl.coalesce("adopted", "variant")).drop("adopted")


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
