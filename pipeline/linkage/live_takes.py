"""Live takes that say `Live` and no more: an artist has one of each show, so artist and title do not identify it.

A code identifies it, or an album that names the show. Without these, such a take joins another only if the song has no further live take.
A platform may also omit the word on a live album: then the album says it, at one title and length. Out of scope: the reading of
`Live at Wembley` (catalog_store/name_keys/variants.py).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.connected_components import find_linked_atoms
from pipeline.linkage.guards import UNPLACED_LIVE, can_be_one_recording, compute_duration_gap

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.linkage.block_pairs import AtomSource

TAKE_GAP_MS = 2_000
"""Milliseconds between the durations of one take on two platforms. Two takes of a song are seldom closer."""
MOST_CODES = 2
"""A take has its code and perhaps one of a new edition. More codes under one `Live` are several shows."""
MOST_TAKES = 400
"""Takes of one song that are compared with each other: a busy tour. Of more, codes and weak signals alone join some."""
_KEY = ("artist_key", "title_key", "variant")
_CONCERT_KINDS = r"(?:^|\+)(?:live|unplugged)(?:$|[+:])"
_CONCERT_TAGS = ("live", "unplugged")


def is_unplaced_live(variant: pl.Expr) -> pl.Expr:
    """Return whether a variant is a live take that names neither place nor date."""
    return variant.str.contains(UNPLACED_LIVE)


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
    if edges.is_empty():
        return atoms
    ends = edges.select("atom_id_a", "atom_id_b", "score")
    variants = atoms.select("atom_id", "variant").join(find_linked_atoms(edges), on="atom_id", how="semi")
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


def find_take_edges(atoms: AtomSource, read_releases: Callable[[pl.Series], pl.DataFrame]) -> pl.DataFrame:
    """Return edges of kind `key` between bare live takes of one name.

    Takes of one length with two codes at most are one recording. If the takes of a song differ in length, have more codes or are on albums
    of different shows, those of one show are one recording.

    Args:
        atoms: tables `atom` and `atom_isrc`.
        read_releases: takes atom ids and returns `release_evidence.EVIDENCE_SCHEMA` of those with a release.
    """
    bare = [rows.filter(is_unplaced_live(pl.col("variant")))["atom_id"] for rows in atoms.read_pieces("atom", ["atom_id", "variant"])]
    takes = atoms.read_atom_rows("atom", pl.concat(bare), ["atom_id", *_KEY, "duration_ms"])
    takes = takes.filter(pl.col("artist_key") != "", pl.col("duration_ms").is_not_null())
    takes = takes.filter(pl.struct(_KEY).is_duplicated())
    if takes.is_empty():
        return TABLES["edge"].build_empty()
    takes = takes.with_columns(key=pl.struct(_KEY).rank("dense")).filter(pl.len().over("key") <= MOST_TAKES)
    codes = atoms.read_atom_rows("atom_isrc", takes["atom_id"], ["atom_id", "isrc"]).group_by("atom_id").agg(isrcs="isrc")
    shows = read_releases(takes["atom_id"]).select("atom_id", "shows")
    takes = takes.join(codes, on="atom_id", how="left").join(shows, on="atom_id", how="left").sort("key", "duration_ms", "atom_id")
    is_gap = pl.col("duration_ms").diff().over("key") > TAKE_GAP_MS
    several = [pl.col(name).explode().drop_nulls().n_unique().over("key") for name in ("isrcs", "shows")]
    takes = takes.with_columns(is_open=is_gap.any().over("key") | (several[0] > MOST_CODES) | (several[1] > 1))
    pairs = pl.concat([_pair_neighbours(takes.filter(~pl.col("is_open"))), _pair_shows(takes.filter("is_open"))])
    described = pl.concat_str("artist_key", pl.lit(" / "), "title_key", pl.lit(" / "), "variant")
    ends = (pl.min_horizontal("a", "b"), pl.max_horizontal("a", "b"))
    return TABLES["edge"].conform(
        pairs.select(atom_id_a=ends[0], atom_id_b=ends[1], kind=pl.lit("key"), score=pl.lit(1.0), evidence=described)
    )


def _pair_neighbours(takes: pl.DataFrame) -> pl.DataFrame:
    """Return a, b and the names of takes that follow each other in one key."""
    return takes.with_columns(a="atom_id", b=pl.col("atom_id").shift().over("key")).drop_nulls("b").select("a", "b", *_KEY)


def _pair_shows(takes: pl.DataFrame) -> pl.DataFrame:
    """Return a, b and the names of takes of one key, show and length."""
    placed = takes.select("key", *_KEY, "duration_ms", a="atom_id", show="shows").explode("show", empty_as_null=False).drop_nulls("show")
    pairs = placed.join(placed.select("key", "show", "duration_ms", b="a"), on=["key", "show"])
    gap = (pl.col("duration_ms") - pl.col("duration_ms_right")).abs()
    return pairs.filter(pl.col("a") < pl.col("b"), gap <= TAKE_GAP_MS).select("a", "b", *_KEY).unique()


def mark_other_shows(pairs: pl.DataFrame) -> pl.Series:
    """Return whether two live takes name two shows, by their variants or by the titles of their albums.

    `pairs`: a_variant, b_variant, and a_shows, b_shows (as `release_evidence.EVIDENCE_SCHEMA`; null: none known).
    """
    named = []
    for side in ("a", "b"):
        place = pl.col(f"{side}_variant").str.extract(r"(?:^|\+)(live:[^+]*)")
        named.append(pl.concat_list(place, pl.col(f"{side}_shows").fill_null([])).list.drop_nulls().alias(side))
    sides = pairs.select(*named)
    is_other = [
        bool(one) and bool(other) and not any(can_be_one_recording(this, that) for this in one for that in other)
        for one, other in sides.iter_rows()
    ]
    return pl.Series(is_other, dtype=pl.Boolean)


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
