"""Edges between atoms whose names differ by a typing error, a subtitle, or the choice of the lead artist.

Blocking is on atoms, never on records, and always with close durations. Three kinds of blocks: same lead artist (the title differs), same
title with a common credited name (another lead), same title with artist names alike at one end (a misspelt artist). A missing shared code
is evidence against a pair: two atoms that both carry codes and share none, or that are on one release, are two recordings.
Out of scope: pairs around changed atoms only (incremental/typo_changes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.record_keys.numbers import hash_columns
from catalog_store.tables import TABLES
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.generic_titles import is_movement_title
from pipeline.linkage.guards import (
    TYPO_DURATION_MS,
    UNTIMED_CHARACTERS,
    Letters,
    add_compared_columns,
    add_similarities,
    compute_duration_gap,
    has_compatible_variants,
    is_typo,
    mark_length_differences,
)
from pipeline.linkage.live_takes import is_unplaced_live
from pipeline.linkage.performers import mark_other_performers
from pipeline.linkage.sorted_runs import find_run_starts, pack_with_duration, sort_places

if TYPE_CHECKING:
    import numpy.typing as npt

    from pipeline.linkage.sorted_runs import Places

NAME_END = 3
"""Characters at either end of an artist's name: one typing error spares one of the ends."""
TITLE_END = 4
STEM_DURATION_MS = 2_000
"""For a subtitle that one side leaves out: it may be the name of an unknown version."""
LEAST_END = 5
"""Bytes of a title that another one may hold at its end, behind a subtitle."""
LARGEST_BLOCK = 400
"""In atoms. Larger blocks (a one-word title at one length) hold too few typing errors for a quadratic number of comparisons."""


def _cut_ends(column: str, length: int) -> tuple[pl.Expr, pl.Expr]:
    return pl.lit("^") + pl.col(column).str.slice(0, length), pl.col(column).str.tail(length) + pl.lit("$")


# Blocks are numbers: a collision (1 in 2^64) only adds a pair that the comparison rejects.
DURATION_SLOT = pl.col("duration_ms") // TYPO_DURATION_MS
_TIMED_BY_ARTIST = hash_columns(("artist_key", "number_key"))
_BY_TITLE_END = [hash_columns(("artist_key", end)) for end in _cut_ends("title_key", TITLE_END)]
_BY_ARTIST_END = [hash_columns(("title_key", end)) for end in _cut_ends("artist_key", NAME_END)]
BLOCKS = {
    "title": pl.col("title_key").hash(),
    "timed_block": _TIMED_BY_ARTIST,
    "title_start_block": _BY_TITLE_END[0],
    "title_end_block": _BY_TITLE_END[1],
}
"""Block numbers of an atom, stored so that a night can look up the atoms to compare a changed atom with."""


def find_same_artist_edges(atoms: pl.DataFrame) -> pl.DataFrame:
    """Return candidate edges between titles of one lead artist: a, b, score, evidence. `atoms`: all of one bucket of artists."""
    known = atoms.filter(pl.col("artist_key") != "")
    # Numbers of all titles are made once; both kinds of blocks reject pairs by them before any text is compared.
    titles = TitleNumbers.of(known)
    pairs = [_find_close_pairs(blocked, titles) for blocked in block_timed_by_artist(known)]
    pairs += [find_untimed_pairs(blocked) for blocked in block_untimed_by_artist(known)]
    return compare_titles(pl.concat(pairs), known, titles)


def compare_titles(pairs: pl.DataFrame, atoms: pl.DataFrame, titles: TitleNumbers) -> pl.DataFrame:
    """Return the candidate edges among pairs (a, b) of one lead artist. `titles`: those of `atoms`, by place."""
    found = add_compared_columns(_filter_alike_titles(pairs, atoms, titles).unique(), atoms).filter(_is_close_or_unknown())
    one, other = pl.col("a_title_key"), pl.col("b_title_key")
    stems = ((pl.col("a_stem_key") == other) & _is_long_at_end(other, one)) | ((pl.col("b_stem_key") == one) & _is_long_at_end(one, other))
    # A title whose end is missing has lost its version as well: `Blue Monday (M`, where `(Mixed)` stood.
    is_cut = (one != other) & (one.str.starts_with(other) | other.str.starts_with(one))
    is_misspelt = pl.col("is_typo") & ~is_cut & _is_long_or_timed("title_key")
    # A missing subtitle can be the name of another version, so it needs a closer duration than a typing error.
    shortened = (stems | (pl.col("is_typo") & is_cut)) & (compute_duration_gap() <= STEM_DURATION_MS)
    return run_on_rows(found.filter(is_misspelt | shortened), _score_edges, ("a", "b"))


def _is_long_at_end(stem: pl.Expr, title: pl.Expr) -> pl.Expr:
    # `(Time High) Love` may be another song than `Love`; signs of other scripts tell more than one letter.
    return (stem.str.len_bytes() >= LEAST_END) | ~title.str.ends_with(stem)


def find_same_title_edges(atoms: pl.DataFrame) -> pl.DataFrame:
    """Return candidate edges between lead artists of one title: a, b, score, evidence. `atoms`: all of one bucket of titles."""
    known = filter_shared_titles(atoms)
    pairs = [_find_close_pairs(blocked) for blocked in block_timed_by_title(known)]
    pairs += [find_untimed_pairs(blocked) for blocked in block_untimed_by_title(known)]
    return compare_artists(pl.concat(pairs), known)


def compare_artists(pairs: pl.DataFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    """Return the candidate edges among pairs (a, b) of one title."""
    found = add_compared_columns(pairs.unique(), atoms).filter(pl.col("a_artist_key") != pl.col("b_artist_key"), _is_close_or_unknown())
    # Platforms choose different lead artists of one song. Without durations, a guest in common proves too little.
    leads = pl.col("a_artist_key").is_in("b_names") | pl.col("b_artist_key").is_in("a_names")
    found = found.with_columns(is_typo=is_typo(found["a_artist_key"], found["b_artist_key"]))
    found = found.filter((pl.col("is_typo") & _is_long_or_timed("artist_key")) | (leads & compute_duration_gap().is_not_null()))
    return run_on_rows(found, _score_edges, ("a", "b"))


def drop_contradicted(edges: pl.DataFrame, claims: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the candidates that neither codes nor releases contradict, as rows of `edge`.

    Args:
        edges: a, b, score, evidence.
        claims: `atom_isrc`, at least of the atoms involved.
        members: `atom_member`, at least of the atoms involved.
    """
    if edges.is_empty():
        return TABLES["edge"].build_empty()
    involved = pl.concat([edges.select(atom_id="a"), edges.select(atom_id="b")]).unique()
    claims, members = (rows.join(involved, on="atom_id", how="semi") for rows in (claims, members))
    coded = claims.select("atom_id").unique()
    # Only two atoms that both carry codes can contradict each other; a missing code says nothing.
    both = edges.join(coded, left_on="a", right_on="atom_id", how="semi").join(coded, left_on="b", right_on="atom_id", how="semi")
    codes = claims.select("atom_id", "isrc")
    sharing = (
        edges.select("a", "b")
        .join(codes, left_on="a", right_on="atom_id")
        .join(codes, left_on=["b", "isrc"], right_on=["atom_id", "isrc"], how="semi")
    )
    unlike = both.join(sharing, on=["a", "b"], how="anti")
    places = members.filter(pl.col("release_id").is_not_null()).select("atom_id", "platform", "release_id").unique()
    # A track list does not hold one song twice under two spellings.
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


def filter_shared_titles(atoms: pl.DataFrame) -> pl.DataFrame:
    """Return the atoms whose title several lead artists have."""
    known = atoms.filter(pl.col("artist_key") != "")
    hashes = known.select(title=pl.col("title_key").hash(), artist=pl.col("artist_key").hash())
    return known.filter(mark_shared_titles(hashes))


def mark_shared_titles(hashes: pl.DataFrame) -> pl.Series:
    """Return whether several lead artists have the title of each row. `hashes`: title, artist."""
    # Two extremes tell several values from one without a set of artists for each title.
    leads = hashes.group_by("title").agg(one=pl.col("artist").min(), other=pl.col("artist").max())
    several = leads.filter(pl.col("one") != pl.col("other"))["title"]
    return hashes["title"].is_in(several.implode())


def block_timed_by_artist(known: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the blocks of atoms with duration by lead artist and the numbers in the title."""
    return [_add_slots(known, _TIMED_BY_ARTIST)]


def block_untimed_by_artist(known: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the blocks by lead artist and an end of the title, of artists with an atom that lacks its duration."""
    # Blocks by the ends of titles are larger than blocks by duration, so only artists with an untimed atom get them.
    untimed = known.filter(pl.col("artist_key").is_in(known.filter(pl.col("duration_ms").is_null())["artist_key"].unique().implode()))
    return [_build_blocks(untimed, block) for block in _BY_TITLE_END]


def block_timed_by_title(shared: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the blocks of atoms with duration by title and a credited name, or an end of the lead artist's name."""
    by_name = shared.with_columns(name="names").explode("name", empty_as_null=False)
    return [_add_slots(by_name, hash_columns(("title_key", "name"))), *(_add_slots(shared, block) for block in _BY_ARTIST_END)]


def block_untimed_by_title(shared: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the blocks by title and an end of the lead artist's name."""
    return [_build_blocks(shared, block) for block in _BY_ARTIST_END]


def _add_slots(atoms: pl.DataFrame, block: pl.Expr) -> pl.DataFrame:
    """Return block number, duration slot and place among the atoms; neighbours in duration are in one slot or the next."""
    timed = atoms.with_row_index("place").filter(pl.col("duration_ms").is_not_null())
    return timed.select("place", "atom_id", "duration_ms", block=block, slot=DURATION_SLOT)


def _build_blocks(atoms: pl.DataFrame, block: pl.Expr) -> pl.DataFrame:
    return atoms.select("atom_id", "duration_ms", block=block)


def _find_close_pairs(blocked: pl.DataFrame, titles: TitleNumbers | None = None) -> pl.DataFrame:
    """Return all pairs of atoms in one block with close durations: sorted by duration they are side by side.

    Pairs that `titles` (by `place`) rule out are dropped as they are found: nearly all of two and a half million in a typical bucket.
    """
    blocks, durations = blocked["block"].to_numpy(), blocked["duration_ms"].to_numpy()
    order = sort_places(pack_with_duration(blocks, durations), blocks, durations)
    blocks, durations, ids = blocks[order], durations[order], blocked["atom_id"].to_numpy()[order]
    # Size is measured in slots of one search width: a block of many atoms spread over all durations is cheap to search.
    starts = find_run_starts(blocks, durations // TYPO_DURATION_MS)
    sizes = np.diff(starts, append=len(ids))
    is_searched = np.repeat(sizes <= LARGEST_BLOCK, sizes)
    blocks, durations, ids = blocks[is_searched], durations[is_searched], ids[is_searched]
    here = titles.select(blocked["place"].to_numpy()[order][is_searched]) if titles else None
    place, step, found = np.arange(len(ids)), 1, [np.empty((2, 0), dtype=np.int64)]
    # Each round compares the rows `step` apart. Rows are sorted by duration, so a row whose neighbour is out of reach
    # has no match further on and leaves for good. The rounds end with the most crowded slot, not with the block.
    while len(place):
        place = place[: np.searchsorted(place, len(ids) - step)]
        beyond = place + step
        place = place[(blocks[place] == blocks[beyond]) & (durations[beyond] - durations[place] <= TYPO_DURATION_MS)]
        worth = place if here is None else place[here.can_match(place, place + step)]
        found.append(ids[np.stack([worth, worth + step])])
        step += 1
    one, other = np.concatenate(found, axis=1)
    return pl.DataFrame({"a": np.minimum(one, other), "b": np.maximum(one, other)})


def find_untimed_pairs(blocked: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs with a missing duration, in blocks that hold an end of the name that may be misspelt."""
    untimed = blocked.filter(pl.col("duration_ms").is_null())
    if untimed.is_empty():
        return untimed.select(a="atom_id", b="atom_id")
    pairs = untimed.join(blocked.filter(pl.len().over("block") <= LARGEST_BLOCK), on="block", suffix="_b")
    return order_pairs(pairs.filter(pl.col("atom_id") != pl.col("atom_id_b"))).unique()


def order_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return a < b of the pairs atom_id, atom_id_b."""
    return pairs.select(a=pl.min_horizontal("atom_id", "atom_id_b"), b=pl.max_horizontal("atom_id", "atom_id_b"))


class TitleNumbers(NamedTuple):
    """Numbers that rule out pairs of atoms as one misspelt title, or a title and its stem: texts cost a hundred times as much."""

    title: npt.NDArray[np.uint64]
    stem: npt.NDArray[np.uint64]
    number: npt.NDArray[np.uint64]
    variant: npt.NDArray[np.uint64]
    letters: Letters

    @classmethod
    def of(cls, atoms: pl.DataFrame) -> TitleNumbers:
        """Return the numbers of atoms, by their place."""
        title, stem, number, variant = (atoms[name].hash().to_numpy() for name in ("title_key", "stem_key", "number_key", "variant"))
        return cls(title, stem, number, variant, Letters.of(atoms["title_key"]))

    def select(self, places: Places) -> TitleNumbers:
        """Return the numbers at these places."""
        letters = Letters(self.letters.lengths[places], self.letters.sets[places])
        return TitleNumbers(self.title[places], self.stem[places], self.number[places], self.variant[places], letters)

    def are_stems(self, one: Places, other: Places) -> npt.NDArray[np.bool_]:
        """Mark the pairs in which one title is the other without its subtitle."""
        found: npt.NDArray[np.bool_] = (self.stem[one] == self.title[other]) | (self.stem[other] == self.title[one])
        return found

    def can_match(self, one: Places, other: Places) -> npt.NDArray[np.bool_]:
        """Mark the pairs that can be typing errors of one another, or stems; equal titles only with different variants."""
        alike = self.letters.can_be_typos(one, other) | self.are_stems(one, other)
        same = self.title[one] == self.title[other]
        found: npt.NDArray[np.bool_] = (
            alike & ~(same & (self.variant[one] == self.variant[other])) & (self.number[one] == self.number[other])
        )
        return found


def _filter_alike_titles(pairs: pl.DataFrame, atoms: pl.DataFrame, titles: TitleNumbers) -> pl.DataFrame:
    """Return the pairs a, b that can be one misspelt title, or a title and its stem, with `is_typo`. `titles`: those of `atoms`."""
    # A binary search for the places: a join would carry the texts of both sides along.
    order = atoms["atom_id"].arg_sort()
    ids = atoms["atom_id"].gather(order)
    one, other = (order.gather(ids.search_sorted(pairs[side])).to_numpy() for side in ("a", "b"))
    worth = titles.can_match(one, other)
    pairs, one, other = pairs.filter(pl.Series(worth)), one[worth], other[worth]
    found = pairs.with_columns(
        is_typo=is_typo(atoms["title_key"].gather(one), atoms["title_key"].gather(other)), stems=pl.Series(titles.are_stems(one, other))
    )
    return found.filter(pl.col("is_typo") | pl.col("stems")).drop("stems")


def _is_close_or_unknown() -> pl.Expr:
    return (compute_duration_gap() <= TYPO_DURATION_MS).fill_null(value=True)


def _is_long_or_timed(key: str) -> pl.Expr:
    shorter = pl.min_horizontal(pl.col(f"a_{key}").str.len_chars(), pl.col(f"b_{key}").str.len_chars())
    return compute_duration_gap().is_not_null() | (shorter >= UNTIMED_CHARACTERS)


def _score_edges(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return a, b, score, evidence of the compared pairs whose variants match."""
    # `Radio Edit` beside nothing at one length: one side has left the words out.
    is_one_length = (pl.col("a_title_key") == pl.col("b_title_key")) & mark_length_differences(pairs)
    pairs = pairs.filter(pl.lit(has_compatible_variants(pairs)) | is_one_length)
    # An artist has a `Live` of each show, often of one length. Only a code or an album shows which it is.
    is_live = pl.any_horizontal(is_unplaced_live(pl.col(f"{side}_variant")) for side in ("a", "b"))
    # A movement without its work is one of many: `I. Allegro`, `V. Allegro`.
    is_movement = pl.any_horizontal(is_movement_title(pl.col(f"{side}_title_key")) for side in ("a", "b"))
    pairs = add_similarities(pairs.filter(~is_live & ~is_movement & ~mark_other_performers()))
    described = pl.concat_str("a_artist_key", pl.lit(" / "), "a_title_key", pl.lit(" ~ "), "b_artist_key", pl.lit(" / "), "b_title_key")
    return pairs.select("a", "b", score=(pl.col("title_similarity") + pl.col("artist_similarity")) / 2, evidence=described)
