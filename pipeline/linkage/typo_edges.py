"""Edges between atoms whose names differ by a typing error, a subtitle, or the choice of the lead artist.

Three blocks, all on atoms (never on records) and all with close durations: same lead artist (the title differs), same title with a common
credited name (another lead), same title with artist names alike at one end (a misspelt artist). What a missing shared code proves is used
too: two atoms that both carry codes and share none, or that stand on one release, are two recordings.
"""

from __future__ import annotations

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.guards import TYPO_DURATION_MS, compared, duration_gap, is_typo, variants_match, with_similarities

NAME_END = 3
"""Characters at either end of an artist's name: one typing error spares one of the ends."""
TITLE_END = 4
LARGEST_BLOCK = 400
"""Atoms: larger blocks (a one-word title at one length) hold no typing errors worth their square."""


def same_artist_edges(atoms: pl.DataFrame) -> pl.DataFrame:
    """Candidate edges between titles of one lead artist: a, b, score, evidence. A pure function of the atoms of one artist bucket."""
    known = atoms.filter(pl.col("artist_key") != "")
    pairs = _pairs_in_blocks(_with_slots(known, ["artist_key"]))
    untimed = known.filter(pl.col("artist_key").is_in(known.filter(pl.col("duration_ms").is_null())["artist_key"].unique().implode()))
    pairs = pl.concat([pairs, *(_untimed_pairs(untimed, end) for end in _ends("title_key", TITLE_END))]).unique()
    pairs = compared(pairs, known)
    same_title = pl.col("a_title_key") == pl.col("b_title_key")
    pairs = pairs.filter(_close_or_unknown(), pl.col("a_number_key") == pl.col("b_number_key"))
    pairs = pairs.filter(~same_title | (pl.col("a_variant") != pl.col("b_variant")))
    pairs = pairs.filter(variants_match(pairs))
    pairs = pairs.with_columns(is_typo=is_typo(pairs["a_title_key"], pairs["b_title_key"]))
    stems = (pl.col("a_stem_key") == pl.col("b_title_key")) | (pl.col("b_stem_key") == pl.col("a_title_key"))
    timed = duration_gap().is_not_null()
    return _as_edges(with_similarities(pairs.filter(pl.col("is_typo") | (stems & timed))))


def same_title_edges(atoms: pl.DataFrame) -> pl.DataFrame:
    """Candidate edges between lead artists of one title: a, b, score, evidence. A pure function of the atoms of one title bucket."""
    known = atoms.filter(pl.col("artist_key") != "").filter(pl.col("artist_key").n_unique().over("title_key") > 1)
    by_name = known.with_columns(name="names").explode("name", empty_as_null=False)
    pairs = [_pairs_in_blocks(_with_slots(by_name, ["title_key", "name"]))]
    for end in _ends("artist_key", NAME_END):
        pairs.append(_pairs_in_blocks(_with_slots(known.with_columns(end=end), ["title_key", "end"])))
        pairs.append(_untimed_pairs(known, end, "title_key"))
    found = compared(pl.concat(pairs).unique(), known).filter(pl.col("a_artist_key") != pl.col("b_artist_key"), _close_or_unknown())
    found = found.filter(variants_match(found))
    leads = pl.col("a_artist_key").is_in("b_names") | pl.col("b_artist_key").is_in("a_names")
    found = found.with_columns(is_typo=is_typo(found["a_artist_key"], found["b_artist_key"]))
    return _as_edges(with_similarities(found.filter(pl.col("is_typo") | (leads & duration_gap().is_not_null()))))


def without_contradiction(edges: pl.DataFrame, claims: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Rows of `edge` out of candidates: those that neither codes nor releases speak against.

    Args:
        edges: a, b, score, evidence.
        claims: `atom_isrc` of the atoms involved.
        members: `atom_member` of the atoms involved.
    """
    coded = claims.select("atom_id").unique()
    both = edges.join(coded, left_on="a", right_on="atom_id", how="semi").join(coded, left_on="b", right_on="atom_id", how="semi")
    codes = claims.select("atom_id", "isrc")
    sharing = (
        edges.select("a", "b")
        .join(codes, left_on="a", right_on="atom_id")
        .join(codes, left_on=["b", "isrc"], right_on=["atom_id", "isrc"], how="semi")
    )
    unlike = both.join(sharing, on=["a", "b"], how="anti")
    places = members.filter(pl.col("release_id").is_not_null()).select("atom_id", "platform", "release_id").unique()
    side_by_side = (
        edges.select("a", "b")
        .join(places, left_on="a", right_on="atom_id")
        .join(places, left_on=["b", "platform", "release_id"], right_on=["atom_id", "platform", "release_id"], how="semi")
    )
    kept = edges.join(unlike, on=["a", "b"], how="anti").join(side_by_side, on=["a", "b"], how="anti")
    return TABLES["edge"].conform(
        kept.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("typo"), score="score", evidence="evidence").unique(
            ["atom_id_a", "atom_id_b"], keep="first", maintain_order=True
        )
    )


def _ends(column: str, length: int) -> tuple[pl.Expr, pl.Expr]:
    return pl.lit("^") + pl.col(column).str.slice(0, length), pl.col(column).str.tail(length) + pl.lit("$")


def _with_slots(atoms: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Block number and duration slot; neighbours in duration lie in one slot or the next."""
    timed = atoms.filter(pl.col("duration_ms").is_not_null())
    timed = timed.with_columns(slot=pl.col("duration_ms") // TYPO_DURATION_MS, block=pl.struct(keys).rank("dense"))
    timed = timed.select("atom_id", "block", "slot", "duration_ms")
    return timed.filter(pl.len().over("block", "slot").is_between(1, LARGEST_BLOCK))


def _pairs_in_blocks(blocked: pl.DataFrame) -> pl.DataFrame:
    ahead = pl.concat([blocked, blocked.with_columns(pl.col("slot") - 1)])
    pairs = blocked.join(ahead, on=["block", "slot"], suffix="_b")
    pairs = pairs.filter(
        (pl.col("duration_ms") - pl.col("duration_ms_b")).abs() <= TYPO_DURATION_MS, pl.col("atom_id") != pl.col("atom_id_b")
    )
    return pairs.select(a=pl.min_horizontal("atom_id", "atom_id_b"), b=pl.max_horizontal("atom_id", "atom_id_b")).unique()


def _untimed_pairs(atoms: pl.DataFrame, end: pl.Expr, key: str = "artist_key") -> pl.DataFrame:
    """Pairs of which one has no duration, in blocks of `key` and an end of the name that may be misspelt."""
    atoms = atoms.select("atom_id", "duration_ms", pl.col(key).alias("key"), end=end)
    untimed = atoms.filter(pl.col("duration_ms").is_null())
    blocks = atoms.filter(pl.len().over("key", "end") <= LARGEST_BLOCK)
    pairs = untimed.join(blocks, on=["key", "end"], suffix="_b").filter(pl.col("atom_id") != pl.col("atom_id_b"))
    return pairs.select(a=pl.min_horizontal("atom_id", "atom_id_b"), b=pl.max_horizontal("atom_id", "atom_id_b")).unique()


def _close_or_unknown() -> pl.Expr:
    return (duration_gap() <= TYPO_DURATION_MS).fill_null(value=True)


def _as_edges(pairs: pl.DataFrame) -> pl.DataFrame:
    described = pl.concat_str("a_artist_key", pl.lit(" / "), "a_title_key", pl.lit(" ~ "), "b_artist_key", pl.lit(" / "), "b_title_key")
    return pairs.select("a", "b", score=(pl.col("title_similarity") + pl.col("artist_similarity")) / 2, evidence=described)
