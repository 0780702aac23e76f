"""Blocking for typing errors around changed atoms: the pairs of typo_edges.py with at least one changed atom.

A block above `typo_edges.LARGEST_BLOCK` is not searched. So an atom that comes or goes can switch a whole block on or off, and with it
pairs between unchanged atoms: `find_toggled_blocks` finds these blocks, and their artist or title is searched completely.
"""

from __future__ import annotations

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
    find_untimed_pairs,
    order_pairs,
)


def has_common_block(changed: pl.DataFrame) -> pl.Expr:
    """Return whether an atom shares a block with one of `changed`, neighbours in duration included.

    Both sides need the columns of `typo_edges.BLOCKS` and duration_ms.
    """
    # Slots are as wide as the search, so a match is in the atom's slot or the next on either side.
    slots = [changed.select(hash_columns(("timed_block", DURATION_SLOT + step))).to_series() for step in (-1, 0, 1)]
    near = hash_columns(("timed_block", DURATION_SLOT)).is_in(pl.concat(slots).unique().implode()) & pl.col("duration_ms").is_not_null()
    for name in ("title", "title_start_block", "title_end_block"):
        near |= pl.col(name).is_in(changed[name].unique().implode())
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


def find_toggled_blocks(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return the blocks that are too large on one side only: by (artist_key or title_key), name, block, slot.

    Both sides hold at least every atom that shares a block with an atom in which the sides differ.
    """
    crowded = pl.concat([_find_crowded_blocks(before), _find_crowded_blocks(after)])
    # Blocks that are too large on both sides appear twice and toggle nothing.
    return crowded.filter(crowded.is_unique())


def _find_crowded_blocks(atoms: pl.DataFrame) -> pl.DataFrame:
    found = [pl.DataFrame(schema={"name": pl.String, "block": pl.UInt64, "slot": pl.Int32, "by": pl.String})]
    for by, timed, untimed in (
        ("artist_key", block_timed_by_artist, block_untimed_by_artist),
        ("title_key", block_timed_by_title, block_untimed_by_title),
    ):
        hashes = atoms[by].hash()
        # A crowded block needs a crowded artist or title, and counting hashes is cheap.
        times = hashes.value_counts().filter(pl.col("count") > typo_edges.LARGEST_BLOCK)[by]
        if times.is_empty():
            continue
        many = atoms.filter(hashes.is_in(times.implode()), pl.col("artist_key") != "")
        names = many.select("atom_id", name=by)
        many = many if by == "artist_key" else filter_shared_titles(many)
        blocks = [*timed(many), *(blocked.with_columns(slot=pl.lit(None, pl.Int32)) for blocked in untimed(many))]
        found.append(pl.concat(map(_filter_crowded, blocks)).join(names, on="atom_id").select("name", "block", "slot", by=pl.lit(by)))
    return pl.concat(found).unique()


def _filter_crowded(blocked: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id, block, slot of the atoms in blocks that are too large."""
    blocks = blocked.select(block=hash_columns(("block", "slot"))).to_series()
    full = blocks.value_counts().filter(pl.col("count") > typo_edges.LARGEST_BLOCK)["block"]
    return blocked.filter(blocks.is_in(full.implode())).select("atom_id", "block", "slot")
