"""Names that are damaged beyond a few typing errors, under evidence that already says one recording (a code, a place, a link).

Of two such records the names need not be alike: a cut title with a typing error behind a track number still is part of the other. So the
length must be equal here, and what is left of the names must not contradict. Out of scope: names that are alike by themselves
(guards.py), and names without such evidence (weak_names.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Postfix, Prefix

from pipeline.linkage.generic_titles import is_generic_title, is_work_title
from pipeline.linkage.title_parts import CUT_CHARACTERS, sort_letters

if TYPE_CHECKING:
    from collections.abc import Callable

    _Comparison = Callable[[pl.DataFrame], pl.Series]

EXACT_MS = 1_000
"""Milliseconds between two lengths that count as equal: two tracks of an album are as near once in a hundred pairs."""
PART_CHARACTERS = 6
PART_SIMILARITY, MOST_CHANGED = 80.0, 4
"""Points of rapidfuzz.fuzz.partial_ratio, and letters removed or added: the shorter title stands in the longer one, but for two typing
errors. `I. Rondo` and `II. Andante` of one concerto differ by more."""
TRACK_NUMBER_IN_FRONT = r"^(?:track|[a-h])?[0-9]{1,3}"
MINUTE_MS, HALF_MINUTE_MS = 60_000, 30_000
ABBREVIATED_CHARACTERS = 5
"""Shortest title that another one may hold but for one gap."""
INITIAL_FROM = 6
"""Letters after an initial that must agree: `P. Collins`."""
NAMELESS_ARTISTS = ("artist", "artistname", "interpret", "performer")
"""Labels of a field that are in it where the artist is unknown. They stay names, because they may be."""
COVERING = "tribute|karaoke|cover|(?:hits|songs|music|versions|style|best)of|salute|famous|lullab|sings|plays|performs"
"""In names of ensembles that play the songs of the artist whom they name."""


def mark_initials(one: pl.Series, other: pl.Series) -> pl.Series:
    """Mark the names of which one has an initial where the other has a word: `P. Collins`."""
    shorter = np.minimum(*(texts.str.len_chars().cast(pl.Int64).to_numpy() for texts in (one, other)))
    texts = one.to_list(), other.to_list()
    front, back = (process.cpdist(*texts, scorer=scorer, dtype=np.int64) for scorer in (Prefix.similarity, Postfix.similarity))
    return pl.Series((front > 0) & (back == shorter - 1) & (back >= INITIAL_FROM))


def mark_damaged_titles(pairs: pl.DataFrame, is_artist_near: pl.Series) -> pl.Series:
    """Mark compared pairs of one length whose titles are parts of each other, with errors, and whose numbers do not contradict.

    `is_artist_near`: whether the artists are known and alike. For other artists a title says who recorded it.
    """
    is_equal = pairs.select(_is_equal_length()).to_series()
    return _look_at(pairs, is_equal & is_artist_near, _are_parts)


def mark_unlike_artists(pairs: pl.DataFrame) -> pl.Series:
    """Mark compared pairs whose artists say nothing against one recording.

    Either one of them has an initial or stands for no name, or one is the composer of a work of equal title and length. Another song of
    equal length under the same code may be a copied code: `Supercalifragilisticexpialidocious` by two casts.
    """
    one, other = pl.col("a_artist_key"), pl.col("b_artist_key")
    is_nameless = one.is_in(NAMELESS_ARTISTS) | other.is_in(NAMELESS_ARTISTS)
    is_same_work = (pl.col("a_title_key") == pl.col("b_title_key")) & is_work_title(pl.col("a_title_key"))
    is_same_work &= ~is_generic_title(pl.col("a_title_key"))
    is_covered = one.str.contains(COVERING) | other.str.contains(COVERING)
    found = pairs.select(is_nameless | (is_same_work & _is_equal_length() & ~is_covered)).to_series()
    return found | mark_initials(pairs["a_artist_key"], pairs["b_artist_key"])


def is_rounded_to_minutes() -> pl.Expr:
    """Return whether one length of compared pairs is one of whole minutes, and the other within half a minute of it."""
    lengths = [pl.col(f"{side}_duration_ms") for side in ("a", "b")]
    is_whole = pl.any_horizontal(length % MINUTE_MS == 0 for length in lengths)
    return (is_whole & ((lengths[0] - lengths[1]).abs() <= HALF_MINUTE_MS)).fill_null(value=False)


def _is_equal_length() -> pl.Expr:
    return ((pl.col("a_duration_ms") - pl.col("b_duration_ms")).abs() <= EXACT_MS).fill_null(value=False)


def _look_at(pairs: pl.DataFrame, doubtful: pl.Series, compare: _Comparison) -> pl.Series:
    """Return what `compare` says of the doubtful pairs, False for all others: few are, and texts are slow to compare."""
    marks = pl.repeat(value=False, n=pairs.height, dtype=pl.Boolean, eager=True)
    places = doubtful.arg_true()
    return marks.scatter(places, compare(pairs[places])) if len(places) else marks


def _are_parts(pairs: pl.DataFrame) -> pl.Series:
    one, other = pairs["a_title_key"], pairs["b_title_key"]
    points = pl.Series(process.cpdist(one.to_list(), other.to_list(), scorer=fuzz.partial_ratio, dtype=np.float64))
    shorter = pairs.select(pl.min_horizontal(pl.col(f"{side}_title_key").str.len_chars() for side in ("a", "b"))).to_series()
    is_part = (shorter >= PART_CHARACTERS) & (points >= PART_SIMILARITY) & (shorter * 2 * (100 - points) <= 100 * MOST_CHANGED)
    is_part |= (shorter >= ABBREVIATED_CHARACTERS) & _lack_one_run(one, other, shorter)
    has_same_letters = pairs.select(sort_letters(pl.col("a_title_key")) == sort_letters(pl.col("b_title_key"))).to_series()
    numbers = [_agree(*row) for row in pairs.select("a_title_key", "b_title_key", "a_number_key", "b_number_key").iter_rows()]
    return (is_part | has_same_letters) & pl.Series(numbers, dtype=pl.Boolean)


def _lack_one_run(one: pl.Series, other: pl.Series, shorter: pl.Series) -> pl.Series:
    """Mark the texts of which one is the other without some letters in one place: `N. Else Matters`, `Nothing Else Mat.`."""
    texts = one.to_list(), other.to_list()
    front, back = (process.cpdist(*texts, scorer=scorer, dtype=np.int64) for scorer in (Prefix.similarity, Postfix.similarity))
    return pl.Series((front > 0) & (front + back >= shorter.to_numpy()))


def _agree(title: str, other_title: str, numbers: str, other_numbers: str) -> bool:
    """Return whether all numbers of the shorter title are among those of the other, the last one possibly cut: `K. 31` of `K. 311: III`."""
    if numbers == other_numbers:
        return True
    if len(title) > len(other_title):
        title, other_title, numbers, other_numbers = other_title, title, other_numbers, numbers
    few, many = numbers.split(), other_numbers.split()
    behind_number = re.sub(TRACK_NUMBER_IN_FRONT, "", other_title)
    if behind_number != other_title and few == many[1:]:
        return True
    # A short title is no cut one: `Sonata` is not `Sonata 2`.
    begins = Prefix.similarity(title, other_title) >= PART_CHARACTERS
    if len(title) < CUT_CHARACTERS or not (begins or few):
        return False
    for place, number in enumerate(few):
        may_be_cut = begins and place == len(few) - 1
        found = next((held for held in many if held == number or (may_be_cut and held.startswith(number))), None)
        if found is None:
            return False
        many.remove(found)
    return True
