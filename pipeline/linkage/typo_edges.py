"""Edges between atoms whose names differ by a typing error, a subtitle, or the choice of the lead artist.

Three blocks, all on atoms (never on records) and all with close durations: same lead artist (the title differs), same title with a common
credited name (another lead), same title with artist names alike at one end (a misspelt artist). What a missing shared code proves is used
too: two atoms that both carry codes and share none, or that stand on one release, are two recordings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.record_keys.numbers import hashed
from catalog_store.tables import TABLES
from pipeline.linkage.guards import (
    TYPO_DURATION_MS,
    UNTIMED_CHARACTERS,
    Letters,
    compared,
    duration_gap,
    is_typo,
    variants_match,
    with_similarities,
)
from pipeline.linkage.runs import packed_with_duration, places_in_order, run_starts
from pipeline.linkage.unfit_rows import work_on

if TYPE_CHECKING:
    import numpy.typing as npt

    from pipeline.linkage.runs import Places

NAME_END = 3
"""Characters at either end of an artist's name: one typing error spares one of the ends."""
TITLE_END = 4
STEM_DURATION_MS = 2_000
"""For a subtitle that one side leaves out: it may be the name of a version nobody knows."""
LARGEST_BLOCK = 400
"""Atoms: larger blocks (a one-word title at one length) hold no typing errors worth their square."""


def _ends(column: str, length: int) -> tuple[pl.Expr, pl.Expr]:
    return pl.lit("^") + pl.col(column).str.slice(0, length), pl.col(column).str.tail(length) + pl.lit("$")


# Blocks are numbers: a collision (1 in 2^64) only makes a pair that the comparison throws out.
_SLOT = pl.col("duration_ms") // TYPO_DURATION_MS
_TIMED_BY_ARTIST = hashed(("artist_key", "number_key"))
_BY_TITLE_END = [hashed(("artist_key", end)) for end in _ends("title_key", TITLE_END)]
_BY_ARTIST_END = [hashed(("title_key", end)) for end in _ends("artist_key", NAME_END)]
BLOCKS = {
    "title": pl.col("title_key").hash(),
    "timed_block": _TIMED_BY_ARTIST,
    "title_start_block": _BY_TITLE_END[0],
    "title_end_block": _BY_TITLE_END[1],
}
"""Numbers of an atom by which `beside` finds what it may be compared with."""


def beside(changed: pl.DataFrame) -> pl.Expr:
    """Which atoms share a block with one of these, neighbours in duration included; by BLOCKS and duration_ms of both."""
    slots = [changed.select(hashed(("timed_block", _SLOT + step))).to_series() for step in (-1, 0, 1)]
    near = hashed(("timed_block", _SLOT)).is_in(pl.concat(slots).unique().implode()) & pl.col("duration_ms").is_not_null()
    for name in ("title", "title_start_block", "title_end_block"):
        near |= pl.col(name).is_in(changed[name].unique().implode())
    return near


def same_artist_edges(atoms: pl.DataFrame, changed: pl.Series | None = None) -> pl.DataFrame:
    """Candidate edges between titles of one lead artist: a, b, score, evidence. A pure function of the atoms of one artist bucket.

    `changed`: ids of atoms; only pairs with one of them are looked at.
    """
    known = atoms.filter(pl.col("artist_key") != "")
    titles = _Titles.of(known) if changed is None else None
    pairs = [_pairs_in_blocks(blocked, changed, titles) for blocked in _timed_artist_blocks(known)]
    pairs += [_untimed_pairs(blocked, changed) for blocked in _untimed_artist_blocks(known)]
    met = pl.concat(pairs)
    if titles is None:  # few of the atoms are in a pair
        known = known.filter(pl.col("atom_id").is_in(met["a"].implode()) | pl.col("atom_id").is_in(met["b"].implode()))
        titles = _Titles.of(known)
    found = compared(_alike_in_title(met, known, titles).unique(), known).filter(_close_or_unknown())
    stems = (pl.col("a_stem_key") == pl.col("b_title_key")) | (pl.col("b_stem_key") == pl.col("a_title_key"))
    found = found.filter((pl.col("is_typo") & _long_or_timed("title_key")) | (stems & (duration_gap() <= STEM_DURATION_MS)))
    return work_on(found, _edges_of, ("a", "b"))


def same_title_edges(atoms: pl.DataFrame, changed: pl.Series | None = None) -> pl.DataFrame:
    """Candidate edges between lead artists of one title: a, b, score, evidence. A pure function of the atoms of one title bucket.

    `changed`: ids of atoms; only pairs with one of them are looked at.
    """
    known = _shared_titles(atoms)
    pairs = [_pairs_in_blocks(blocked, changed) for blocked in _timed_title_blocks(known)]
    pairs += [_untimed_pairs(blocked, changed) for blocked in _untimed_title_blocks(known)]
    found = compared(pl.concat(pairs).unique(), known).filter(pl.col("a_artist_key") != pl.col("b_artist_key"), _close_or_unknown())
    leads = pl.col("a_artist_key").is_in("b_names") | pl.col("b_artist_key").is_in("a_names")
    found = found.with_columns(is_typo=is_typo(found["a_artist_key"], found["b_artist_key"]))
    found = found.filter((pl.col("is_typo") & _long_or_timed("artist_key")) | (leads & duration_gap().is_not_null()))
    return work_on(found, _edges_of, ("a", "b"))


def turned_blocks(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Blocks that hold too many atoms to be looked into on one side only: by (artist_key or title_key), name, block, slot.

    Who looks only at pairs with changed atoms must look into the whole artist or title of such a block. Both sides hold at least all that
    is `beside` the atoms in which they differ.
    """
    crowded = pl.concat([_crowded_blocks(before), _crowded_blocks(after)])
    return crowded.filter(crowded.is_unique())


def _crowded_blocks(atoms: pl.DataFrame) -> pl.DataFrame:
    found = [pl.DataFrame(schema={"name": pl.String, "block": pl.UInt64, "slot": pl.Int32, "by": pl.String})]
    for by, timed, untimed in (
        ("artist_key", _timed_artist_blocks, _untimed_artist_blocks),
        ("title_key", _timed_title_blocks, _untimed_title_blocks),
    ):
        hashes = atoms[by].hash()
        times = hashes.value_counts().filter(pl.col("count") > LARGEST_BLOCK)[by]
        if times.is_empty():
            continue
        many = atoms.filter(hashes.is_in(times.implode()), pl.col("artist_key") != "")
        names = many.select("atom_id", name=by)
        many = many if by == "artist_key" else _shared_titles(many)
        blocks = [*timed(many), *(blocked.with_columns(slot=pl.lit(None, pl.Int32)) for blocked in untimed(many))]
        found.append(pl.concat(map(_crowded, blocks)).join(names, on="atom_id").select("name", "block", "slot", by=pl.lit(by)))
    return pl.concat(found).unique()


def _crowded(blocked: pl.DataFrame) -> pl.DataFrame:
    """atom_id, block, slot of the atoms in blocks that hold too many."""
    blocks = blocked.select(block=hashed(("block", "slot"))).to_series()
    full = blocks.value_counts().filter(pl.col("count") > LARGEST_BLOCK)["block"]
    return blocked.filter(blocks.is_in(full.implode())).select("atom_id", "block", "slot")


def without_contradiction(edges: pl.DataFrame, claims: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Rows of `edge` out of candidates: those that neither codes nor releases speak against.

    Args:
        edges: a, b, score, evidence.
        claims: `atom_isrc`, at least of the atoms involved.
        members: `atom_member`, at least of the atoms involved.
    """
    involved = pl.concat([edges.select(atom_id="a"), edges.select(atom_id="b")]).unique()
    claims, members = (rows.join(involved, on="atom_id", how="semi") for rows in (claims, members))
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


def _shared_titles(atoms: pl.DataFrame) -> pl.DataFrame:
    known = atoms.filter(pl.col("artist_key") != "")
    hashes = known.select(title=pl.col("title_key").hash(), artist=pl.col("artist_key").hash())
    leads = hashes.group_by("title").agg(one=pl.col("artist").min(), other=pl.col("artist").max())
    several = leads.filter(pl.col("one") != pl.col("other"))["title"]
    return known.filter(hashes["title"].is_in(several.implode()))


def _timed_artist_blocks(known: pl.DataFrame) -> list[pl.DataFrame]:
    return [_with_slots(known, _TIMED_BY_ARTIST)]


def _untimed_artist_blocks(known: pl.DataFrame) -> list[pl.DataFrame]:
    untimed = known.filter(pl.col("artist_key").is_in(known.filter(pl.col("duration_ms").is_null())["artist_key"].unique().implode()))
    return [_blocked(untimed, block) for block in _BY_TITLE_END]


def _timed_title_blocks(shared: pl.DataFrame) -> list[pl.DataFrame]:
    by_name = shared.with_columns(name="names").explode("name", empty_as_null=False)
    return [_with_slots(by_name, hashed(("title_key", "name"))), *(_with_slots(shared, block) for block in _BY_ARTIST_END)]


def _untimed_title_blocks(shared: pl.DataFrame) -> list[pl.DataFrame]:
    return [_blocked(shared, block) for block in _BY_ARTIST_END]


def _with_slots(atoms: pl.DataFrame, block: pl.Expr) -> pl.DataFrame:
    """Block number, duration slot and place among the atoms; neighbours in duration lie in one slot or the next."""
    timed = atoms.with_row_index("place").filter(pl.col("duration_ms").is_not_null())
    return timed.select("place", "atom_id", "duration_ms", block=block, slot=_SLOT)


def _blocked(atoms: pl.DataFrame, block: pl.Expr) -> pl.DataFrame:
    return atoms.select("atom_id", "duration_ms", block=block)


def _pairs_in_blocks(blocked: pl.DataFrame, changed: pl.Series | None, titles: _Titles | None = None) -> pl.DataFrame:
    """Pairs with close durations; none twice. Of `titles` those may be left out that are not worth a look."""
    if changed is None:
        return _neighbours(blocked, titles)
    blocked = _with(changed, blocked).filter(pl.len().over("block", "slot") <= LARGEST_BLOCK)
    few = blocked.filter(pl.col("atom_id").is_in(changed.implode()))
    around = [few.with_columns(pl.col("slot") + step).join(blocked, on=["block", "slot"], suffix="_b") for step in (-1, 0, 1)]
    pairs = pl.concat(around).filter(pl.col("atom_id") != pl.col("atom_id_b"))
    return _ordered(pairs.filter((pl.col("duration_ms") - pl.col("duration_ms_b")).abs() <= TYPO_DURATION_MS)).unique()


def _neighbours(blocked: pl.DataFrame, titles: _Titles | None = None) -> pl.DataFrame:
    """All pairs of atoms in one block whose durations are close: sorted by duration they lie side by side.

    Of two and a half million pairs nearly all are not worth a look by their `titles` (of each `place`) and are left out when they are met.
    """
    blocks, durations = blocked["block"].to_numpy(), blocked["duration_ms"].to_numpy()
    order = places_in_order(packed_with_duration(blocks, durations), blocks, durations)
    blocks, durations, ids = blocks[order], durations[order], blocked["atom_id"].to_numpy()[order]
    starts = run_starts(blocks, durations // TYPO_DURATION_MS)
    sizes = np.diff(starts, append=len(ids))
    is_looked_into = np.repeat(sizes <= LARGEST_BLOCK, sizes)
    blocks, durations, ids = blocks[is_looked_into], durations[is_looked_into], ids[is_looked_into]
    here = titles.at(blocked["place"].to_numpy()[order][is_looked_into]) if titles else None
    place, step, found = np.arange(len(ids)), 1, [np.empty((2, 0), dtype=np.int64)]
    while len(place):
        place = place[: np.searchsorted(place, len(ids) - step)]
        beyond = place + step
        place = place[(blocks[place] == blocks[beyond]) & (durations[beyond] - durations[place] <= TYPO_DURATION_MS)]
        worth = place if here is None else place[here.are_worth_a_look(place, place + step)]
        found.append(ids[np.stack([worth, worth + step])])
        step += 1
    one, other = np.concatenate(found, axis=1)
    return pl.DataFrame({"a": np.minimum(one, other), "b": np.maximum(one, other)})


def _untimed_pairs(blocked: pl.DataFrame, changed: pl.Series | None) -> pl.DataFrame:
    """Pairs of which one has no duration, in blocks that hold an end of the name that may be misspelt."""
    blocked = blocked if changed is None else _with(changed, blocked)
    untimed = blocked.filter(pl.col("duration_ms").is_null())
    pairs = untimed.join(blocked.filter(pl.len().over("block") <= LARGEST_BLOCK), on="block", suffix="_b")
    pairs = pairs.filter(pl.col("atom_id") != pl.col("atom_id_b"))
    if changed is not None:
        pairs = pairs.filter(pl.any_horizontal(pl.col(name).is_in(changed.implode()) for name in ("atom_id", "atom_id_b")))
    return _ordered(pairs).unique()


def _with(changed: pl.Series, blocked: pl.DataFrame) -> pl.DataFrame:
    """The blocks in which one of these atoms stands."""
    blocks = blocked.filter(pl.col("atom_id").is_in(changed.implode()))["block"].unique()
    return blocked.filter(pl.col("block").is_in(blocks.implode()))


def _ordered(pairs: pl.DataFrame) -> pl.DataFrame:
    return pairs.select(a=pl.min_horizontal("atom_id", "atom_id_b"), b=pl.max_horizontal("atom_id", "atom_id_b"))


class _Titles(NamedTuple):
    """Numbers that tell which pairs of atoms can be one title misspelt, or a title and its stem: texts cost a hundred times as much."""

    title: npt.NDArray[np.uint64]
    stem: npt.NDArray[np.uint64]
    number: npt.NDArray[np.uint64]
    variant: npt.NDArray[np.uint64]
    letters: Letters

    @classmethod
    def of(cls, atoms: pl.DataFrame) -> _Titles:
        """Of atoms, by their place."""
        title, stem, number, variant = (atoms[name].hash().to_numpy() for name in ("title_key", "stem_key", "number_key", "variant"))
        return cls(title, stem, number, variant, Letters.of(atoms["title_key"]))

    def at(self, places: Places) -> _Titles:
        """Those of some places."""
        letters = Letters(self.letters.lengths[places], self.letters.sets[places])
        return _Titles(self.title[places], self.stem[places], self.number[places], self.variant[places], letters)

    def are_stems(self, one: Places, other: Places) -> npt.NDArray[np.bool_]:
        """Which lack only a subtitle of the other."""
        found: npt.NDArray[np.bool_] = (self.stem[one] == self.title[other]) | (self.stem[other] == self.title[one])
        return found

    def are_worth_a_look(self, one: Places, other: Places) -> npt.NDArray[np.bool_]:
        """Which can be typing errors of one another, or stems; equal titles only as other variants."""
        alike = self.letters.may_be_typos(one, other) | self.are_stems(one, other)
        same = self.title[one] == self.title[other]
        found: npt.NDArray[np.bool_] = (
            alike & ~(same & (self.variant[one] == self.variant[other])) & (self.number[one] == self.number[other])
        )
        return found


def _alike_in_title(pairs: pl.DataFrame, atoms: pl.DataFrame, titles: _Titles) -> pl.DataFrame:
    """Pairs a, b that can be one title misspelt, or a title and its stem, with `is_typo`. `titles`: those of the atoms."""
    order = atoms["atom_id"].arg_sort()
    ids = atoms["atom_id"].gather(order)
    one, other = (order.gather(ids.search_sorted(pairs[side])).to_numpy() for side in ("a", "b"))
    worth = titles.are_worth_a_look(one, other)
    pairs, one, other = pairs.filter(pl.Series(worth)), one[worth], other[worth]
    found = pairs.with_columns(
        is_typo=is_typo(atoms["title_key"].gather(one), atoms["title_key"].gather(other)), stems=pl.Series(titles.are_stems(one, other))
    )
    return found.filter(pl.col("is_typo") | pl.col("stems")).drop("stems")


def _close_or_unknown() -> pl.Expr:
    return (duration_gap() <= TYPO_DURATION_MS).fill_null(value=True)


def _long_or_timed(key: str) -> pl.Expr:
    shorter = pl.min_horizontal(pl.col(f"a_{key}").str.len_chars(), pl.col(f"b_{key}").str.len_chars())
    return duration_gap().is_not_null() | (shorter >= UNTIMED_CHARACTERS)


def _edges_of(pairs: pl.DataFrame) -> pl.DataFrame:
    """a, b, score, evidence of those compared pairs that are no different versions."""
    pairs = with_similarities(pairs.filter(variants_match(pairs)))
    described = pl.concat_str("a_artist_key", pl.lit(" / "), "a_title_key", pl.lit(" ~ "), "b_artist_key", pl.lit(" / "), "b_title_key")
    return pairs.select("a", "b", score=(pl.col("title_similarity") + pl.col("artist_similarity")) / 2, evidence=described)
