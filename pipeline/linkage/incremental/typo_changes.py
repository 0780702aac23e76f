"""Blocking for typing errors around changed atoms: the pairs of typo_edges.py with at least one changed atom.

A block above `typo_edges.LARGEST_BLOCK` is not searched. So an atom that comes or goes can switch a whole block on or off, and with it
pairs between unchanged atoms: `find_toggled_names` finds their artist or title, which is searched completely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.record_keys.numbers import hash_columns
from pipeline.linkage import typo_edges
from pipeline.linkage.guards import TYPO_DURATION_MS
from pipeline.linkage.typo_edges import (
    DURATION_SLOT,
    TitleNumbers,
    block_timed_by_artist,
    block_timed_by_title,
    block_untimed_by_artist,
    block_untimed_by_title,
    compare_artists,
    compare_titles,
    filter_shared_titles,
    find_same_artist_edges,
    find_same_title_edges,
    find_untimed_pairs,
    order_pairs,
)

if TYPE_CHECKING:
    from pipeline.linkage.incremental.changed_atoms import ChangedAtoms


class TypoSearch(NamedTuple):
    """Candidates around the atoms that differ: frames of a, b, score, evidence.

    `searched`: atoms of the artists or titles that were searched completely, because pairs of unchanged atoms appear or vanish there:
    atom_id, artist, title (hashes of their keys), by_artist (else by title).
    """

    candidates: list[pl.DataFrame]
    searched: pl.DataFrame

    def drop_searched(self, typos: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of `edge` that are not within one of these artists or titles."""
        ends = typos
        for end in ("a", "b"):
            named = self.searched.rename({name: f"{end}_{name}" for name in self.searched.columns})
            ends = ends.join(named, left_on=f"atom_id_{end}", right_on=f"{end}_atom_id", how="left", maintain_order="left")
        is_one_artist = pl.col("a_artist") == pl.col("b_artist")
        # Pairs of one artist are found by the artist, also where they share the title.
        is_within = pl.when("a_by_artist").then(is_one_artist).otherwise(~is_one_artist & (pl.col("a_title") == pl.col("b_title")))
        return typos.filter(~ends.select(is_within.fill_null(value=False)).to_series())


def search_artists(changed: ChangedAtoms) -> TypoSearch:
    """Search the pairs of one lead artist around the atoms that differ."""
    near = changed.atoms.read_rows("atom", ["atom_id"], _shares_artist_block(changed))["atom_id"]
    found, searched = [], [_SEARCHED.to_frame()]
    for around in changed.read_artists(near):
        found.append(find_changed_artist_edges(around.atoms, around.made))
        toggled = find_toggled_names(around.before, around.atoms, "artist_key")
        if len(toggled):
            # Only some of an artist's atoms share a block with one that differs.
            is_toggled = pl.col("artist_key").is_in(toggled.implode())
            crowd = changed.read_bucket_mates(pl.concat([around.atoms, around.gone]).filter(is_toggled)).filter(is_toggled)
            found.append(find_same_artist_edges(crowd))
            searched.append(_number_searched(crowd, by_artist=True))
    return TypoSearch(found, pl.concat(searched))


def search_titles(changed: ChangedAtoms) -> TypoSearch:
    """Search the pairs of one title around the atoms that differ."""
    found, searched = [], [_SEARCHED.to_frame()]
    for around in changed.read_titles():
        found.append(find_changed_title_edges(around.atoms, around.made))
        toggled = find_toggled_names(around.before, around.atoms, "title_key")
        if len(toggled):
            crowd = around.atoms.filter(pl.col("title_key").is_in(toggled.implode()))
            found.append(find_same_title_edges(crowd))
            searched.append(_number_searched(crowd, by_artist=False))
    return TypoSearch(found, pl.concat(searched))


_SEARCHED = pl.Schema({"atom_id": pl.Int64, "artist": pl.UInt64, "title": pl.UInt64, "by_artist": pl.Boolean})


def _number_searched(crowd: pl.DataFrame, *, by_artist: bool) -> pl.DataFrame:
    return crowd.select("atom_id", artist=pl.col("artist_key").hash(), title=pl.col("title_key").hash(), by_artist=pl.lit(value=by_artist))


def _shares_artist_block(changed: ChangedAtoms) -> pl.Expr:
    """Return whether an atom shares an artist's block with one that differs, neighbours in duration included."""
    # Atoms that are gone count too: without them a block may fall below the limit and be searched tonight.
    blocks = changed.read_columns("atom", ["timed_block", "title_start_block", "title_end_block", "duration_ms"])
    # Slots are as wide as the search, so a match is in the atom's slot or the next on either side.
    slots = [blocks.select(hash_columns(("timed_block", DURATION_SLOT + step))).to_series() for step in (-1, 0, 1)]
    near = hash_columns(("timed_block", DURATION_SLOT)).is_in(pl.concat(slots).unique().implode()) & pl.col("duration_ms").is_not_null()
    for name in ("title_start_block", "title_end_block"):
        near |= pl.col(name).is_in(blocks[name].unique().implode())
    return near


def find_changed_artist_edges(atoms: pl.DataFrame, changed: pl.Series) -> pl.DataFrame:
    """Return the rows of `typo_edges.find_same_artist_edges` with one of these atoms (ids)."""
    known = atoms.filter(pl.col("artist_key") != "")
    pairs = [_find_changed_close_pairs(blocked, changed) for blocked in block_timed_by_artist(known)]
    pairs += [_find_changed_untimed_pairs(blocked, changed) for blocked in block_untimed_by_artist(known)]
    found = pl.concat(pairs)
    # Few atoms are in a pair: only their titles are worth turning into numbers.
    known = known.filter(pl.col("atom_id").is_in(found["a"].implode()) | pl.col("atom_id").is_in(found["b"].implode()))
    return compare_titles(found, known, TitleNumbers.of(known))


def find_changed_title_edges(atoms: pl.DataFrame, changed: pl.Series) -> pl.DataFrame:
    """Return the rows of `typo_edges.find_same_title_edges` with one of these atoms (ids)."""
    known = filter_shared_titles(atoms)
    pairs = [_find_changed_close_pairs(blocked, changed) for blocked in block_timed_by_title(known)]
    pairs += [_find_changed_untimed_pairs(blocked, changed) for blocked in block_untimed_by_title(known)]
    return compare_artists(pl.concat(pairs), known)


def _find_changed_close_pairs(blocked: pl.DataFrame, changed: pl.Series) -> pl.DataFrame:
    """Return the pairs with close durations in blocks that are small enough; none twice."""
    blocked = _filter_blocks(blocked, changed).filter(pl.len().over("block", "slot") <= typo_edges.LARGEST_BLOCK)
    few = blocked.filter(pl.col("atom_id").is_in(changed.implode()))
    # A join and no walk over neighbours: few atoms have changed, and the block must not be sorted for them.
    around = [few.with_columns(pl.col("slot") + step).join(blocked, on=["block", "slot"], suffix="_b") for step in (-1, 0, 1)]
    pairs = pl.concat(around).filter(pl.col("atom_id") != pl.col("atom_id_b"))
    return order_pairs(pairs.filter((pl.col("duration_ms") - pl.col("duration_ms_b")).abs() <= TYPO_DURATION_MS)).unique()


def _find_changed_untimed_pairs(blocked: pl.DataFrame, changed: pl.Series) -> pl.DataFrame:
    pairs = find_untimed_pairs(_filter_blocks(blocked, changed))
    return pairs.filter(pl.any_horizontal(pl.col(name).is_in(changed.implode()) for name in ("a", "b")))


def _filter_blocks(blocked: pl.DataFrame, changed: pl.Series) -> pl.DataFrame:
    """Return the blocks that hold one of these atoms."""
    blocks = blocked.filter(pl.col("atom_id").is_in(changed.implode()))["block"].unique()
    return blocked.filter(pl.col("block").is_in(blocks.implode()))


def find_toggled_names(before: pl.DataFrame, after: pl.DataFrame, by: str) -> pl.Series:
    """Return the values of `by` (artist_key or title_key) with a block that is too large on one side only.

    Both sides hold at least every atom that shares a block with an atom in which the sides differ.
    """
    crowded = pl.concat([_find_crowded_blocks(before, by), _find_crowded_blocks(after, by)])
    # Blocks that are too large on both sides appear twice and toggle nothing.
    return crowded.filter(crowded.is_unique())["name"].unique()


def _find_crowded_blocks(atoms: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return name (value of `by`), block, slot of the blocks above LARGEST_BLOCK; slot is null in blocks without durations."""
    hashes = atoms[by].hash()
    # A crowded block needs a crowded artist or title, and counting hashes is cheap.
    times = hashes.value_counts().filter(pl.col("count") > typo_edges.LARGEST_BLOCK)[by]
    many = atoms.filter(hashes.is_in(times.implode()), pl.col("artist_key") != "")
    names = many.select("atom_id", name=by)
    if by == "artist_key":
        timed, untimed = block_timed_by_artist(many), block_untimed_by_artist(many)
    else:
        shared = filter_shared_titles(many)
        timed, untimed = block_timed_by_title(shared), block_untimed_by_title(shared)
    blocks = [*timed, *(blocked.with_columns(slot=pl.lit(None, pl.Int32)) for blocked in untimed)]
    return pl.concat(map(_filter_crowded, blocks)).join(names, on="atom_id").select("name", "block", "slot").unique()


def _filter_crowded(blocked: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id, block, slot of the atoms in blocks that are too large."""
    blocks = blocked.select(block=hash_columns(("block", "slot"))).to_series()
    full = blocks.value_counts().filter(pl.col("count") > typo_edges.LARGEST_BLOCK)["block"]
    return blocked.filter(blocks.is_in(full.implode())).select("atom_id", "block", "slot")
