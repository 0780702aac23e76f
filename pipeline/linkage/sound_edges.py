"""Edges between atoms without a common code whose artist and title are written in two scripts and sound alike: `Кино`, `Kino`.

Each build finds them again: few atoms have names in another script, and a stored number of the sounds of artist and title brings their
counterparts together. Both names must sound alike at one length, because nothing else speaks for a pair. Out of scope: how a
name sounds (catalog_store/name_keys/romanisation.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.name_keys.romanisation import build_sound_key_series, compare_sounds, extract_latin_name
from catalog_store.record_keys.numbers import hash_columns
from catalog_store.tables import TABLES
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.generic_titles import is_generic_title, is_work_title
from pipeline.linkage.guards import OTHER_SCRIPT_DURATION_MS, add_compared_columns, compute_duration_gap, has_compatible_variants
from pipeline.linkage.live_takes import is_unplaced_live
from pipeline.linkage.sorted_runs import mark_known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Pieces = Callable[[], Iterable[pl.DataFrame]]

SOUND_SIMILARITY = 0.75
"""More than under a code, and of both names: `Юлия` and `Yulia` are equal, `Giannis` and `Yannis` .83."""
LEAST_CONSONANTS = 6
"""Fewest consonants of artist and title together: from 3 on, two of 811 edges of a world of 1,000,000 recordings were wrong, from 6 on none
of 776."""
LARGEST_BLOCK = 200
"""In atoms. Sounds that more atoms share are too common to prove anything."""
ATOMS_AT_A_TIME = 250_000
"""Atoms that are paired at a time. All those of 30 million recordings took 2.5 GB."""
_IS_OTHER_SCRIPT = 1


def _number_sounds(names: pl.Series) -> pl.Series:
    artists, titles = (build_sound_key_series(names.struct.field(field)) for field in ("artist_key", "title_key"))
    sounds = pl.DataFrame({"artist": artists, "title": titles})
    # The last bit marks names that are not all Latin, so that a search need not read the names.
    is_other = names.struct.field("artist_key").str.len_bytes() + names.struct.field("title_key").str.len_bytes() > (
        names.struct.field("artist_key").str.len_chars() + names.struct.field("title_key").str.len_chars()
    )
    number = sounds.select(hash_columns(("artist", "title"))).to_series().to_numpy() & ~np.uint64(_IS_OTHER_SCRIPT)
    is_enough = (sounds["artist"] != "") & (sounds["title"] != "") & (artists.str.len_chars() + titles.str.len_chars() >= LEAST_CONSONANTS)
    return pl.Series(np.where(is_enough.to_numpy(), number | is_other.to_numpy(), 0), dtype=pl.UInt64)


SOUND = pl.struct("artist_key", "title_key").map_batches(_number_sounds, return_dtype=pl.UInt64)
"""The number of the sounds of an atom's names, 0 if they have too few; stored (mapped_atoms.py)."""
SOUND_COLUMNS = ["atom_id", "sound", "duration_ms"]


def find_sound_pairs(read_pieces: Pieces) -> pl.DataFrame:
    """Return the pairs a, b of atoms (SOUND_COLUMNS) with one sound, at least one in another script, at one length."""
    # Two passes: the numbers of all atoms took 20 bytes of each.
    few = pl.concat([piece["sound"].filter(piece["sound"] % 2 == _IS_OTHER_SCRIPT) for piece in read_pieces()]).unique()
    # The last bit is that of other scripts, so both numbers of a block are looked up as they are stored.
    wanted = pl.concat([few, few - _IS_OTHER_SCRIPT]).sort().to_numpy()
    timed = (piece.filter(pl.col("duration_ms").is_not_null()) for piece in read_pieces())
    numbers = pl.concat([piece.filter(pl.Series(mark_known(piece["sound"], wanted))) for piece in timed])
    numbers = numbers.with_columns(is_other=pl.col("sound") % 2 == _IS_OTHER_SCRIPT, block=pl.col("sound") // 2)
    parts = 1 + numbers.height // ATOMS_AT_A_TIME
    return pl.concat(_pair_atoms(numbers.filter(pl.col("block") % parts == part)) for part in range(parts)).sort("a", "b")


def _pair_atoms(numbers: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of some blocks, as `find_sound_pairs` does, in any order."""
    numbers = numbers.filter(pl.len().over("block") <= LARGEST_BLOCK)
    slots = numbers.with_columns(slot=pl.col("duration_ms") // OTHER_SCRIPT_DURATION_MS)
    others = slots.filter("is_other")
    is_near = (pl.col("duration_ms") - pl.col("duration_ms_b")).abs() <= OTHER_SCRIPT_DURATION_MS
    found = []
    # Atoms at one length are in one slot or in neighbours.
    for step in (-1, 0, 1):
        pairs = others.with_columns(pl.col("slot") + step).join(slots, on=["block", "slot"], suffix="_b")
        pairs = pairs.filter(pl.col("atom_id") != pl.col("atom_id_b"), is_near)
        found.append(pairs.select(a=pl.min_horizontal("atom_id", "atom_id_b"), b=pl.max_horizontal("atom_id", "atom_id_b")))
    return pl.concat(found).unique()


def find_sound_edges(
    read_pieces: Pieces, read_atoms: Callable[[pl.Series], pl.DataFrame], settle: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """Return edges of kind `sound`.

    Args:
        read_pieces: yields SOUND_COLUMNS of all atoms.
        read_atoms: returns the rows of `atom` with these ids.
        settle: returns the candidates (a, b, score, evidence) that neither codes nor releases contradict, as rows of `edge`.
    """
    pairs = find_sound_pairs(read_pieces)
    if pairs.is_empty():
        return TABLES["edge"].build_empty()
    compared = add_compared_columns(pairs, read_atoms(pl.concat([pairs["a"], pairs["b"]]).unique()))
    edges = settle(run_on_rows(compared, _judge_pairs, ("a", "b")))
    return TABLES["edge"].conform(edges.with_columns(kind=pl.lit("sound")))


def _judge_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return a, b, score, evidence of the compared pairs that can be one recording."""
    same = pl.all_horizontal(pl.col(f"a_{name}") == pl.col(f"b_{name}") for name in ("artist_key", "title_key"))
    is_possible = (pl.col("a_number_key") == pl.col("b_number_key")) & ~same
    is_possible &= ~is_generic_title(pl.col("a_title_key")) & ~is_generic_title(pl.col("b_title_key"))
    is_possible &= ~pl.any_horizontal(is_unplaced_live(pl.col(f"{side}_variant")) for side in ("a", "b"))
    pairs = pairs.filter(is_possible & (compute_duration_gap() <= OTHER_SCRIPT_DURATION_MS))
    pairs = pairs.filter(has_compatible_variants(pairs))
    pairs = pairs.filter(~mark_performers_of_other_sounds(pairs))
    for name in ("artist", "title"):
        pairs = pairs.with_columns(_measure_names(pairs, f"{name}_key").alias(name)).filter(pl.col(name) >= SOUND_SIMILARITY)
    described = pl.concat_str("a_artist_key", pl.lit(" / "), "a_title_key", pl.lit(" ~ "), "b_artist_key", pl.lit(" / "), "b_title_key")
    return pairs.select("a", "b", score=(pl.col("artist") + pl.col("title")) / 2, evidence=described)


def mark_performers_of_other_sounds(pairs: pl.DataFrame) -> pl.Series:
    """Return whether compared pairs are a work under leads in two scripts, and no other credited name is common by letters or by sound.

    Out of scope: equal leads (`performers.mark_other_performers`).
    """
    others = [pl.col(f"{side}_names").list.set_difference(pl.concat_list(f"{side}_artist_key")) for side in ("a", "b")]
    in_other_script = [pl.col(f"{side}_artist_key").str.len_bytes() > pl.col(f"{side}_artist_key").str.len_chars() for side in ("a", "b")]
    is_doubtful = pl.all_horizontal(is_work_title(pl.col(f"{side}_title_key")) for side in ("a", "b")) & (
        in_other_script[0] != in_other_script[1]
    )
    rows = pairs.with_row_index("place").filter(is_doubtful, *(names.list.len() > 0 for names in others)).select("place", *others)
    strangers = [
        place for place, one, other in rows.iter_rows() if all(_measure_sounds(a, b) < SOUND_SIMILARITY for a in one for b in other)
    ]
    return pl.repeat(value=False, n=pairs.height, dtype=pl.Boolean, eager=True).scatter(strangers, values=True)


def _measure_names(pairs: pl.DataFrame, key: str) -> pl.Series:
    found = [_measure_sounds(one, other) for one, other in pairs.select(f"a_{key}", f"b_{key}").iter_rows()]
    return pl.Series(found, dtype=pl.Float64)


def _measure_sounds(one: str, other: str) -> float:
    if one == other:
        return 1.0
    # Between two texts of one script a likeness is the work of typo_edges, or a homophone.
    if one.isascii() == other.isascii():
        return 0.0
    return max(compare_sounds(one, other), float((extract_latin_name(one) or one) == (extract_latin_name(other) or other)))
