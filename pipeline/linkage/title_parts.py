"""Titles of which one is a part of the other: cut by a platform, without the work above a movement, or after a track number.

A pair has columns `a_title_key`, `a_number_key` and those of `b`. The numbers of the part must be those at the same end of the whole.
Out of scope: how much more must agree (guards.py, weak_edges.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.linkage.generic_titles import is_movement_title

if TYPE_CHECKING:
    from collections.abc import Callable

CUT_CHARACTERS = 12
"""Shortest key of a title that a platform has cut: ID3v1 keeps 30 characters with their blanks, some shops fewer."""
NUMBERED_CHARACTERS = 4
TRACK_NUMBER = r"^(?:track|[a-h])?[0-9]{1,3}$"
"""The track number that a file or a list puts in front of a compact title: `03`, `a2`, `track7`."""


def is_cut_title() -> pl.Expr:
    """Return whether one title is the other, cut at its end together with the numbers there."""
    return _is_either(_is_cut)


def is_movement_of() -> pl.Expr:
    """Return whether one title is a movement without its work, and ends or is the other title."""
    return _is_either(_is_movement)


def is_numbered_title() -> pl.Expr:
    """Return whether one title is the other behind a track number."""
    return _is_either(_is_behind_number)


def is_part_of_title() -> pl.Expr:
    """Return whether one title is cut, a movement of the other, or the other without its track number."""
    return is_cut_title() | is_movement_of() | is_numbered_title()


def sort_letters(text: pl.Expr) -> pl.Expr:
    """Return the characters of a text in order: equal for two texts whose words are transposed."""
    return text.str.split("").list.sort().list.join("")


def _is_cut(title: pl.Expr, longer: pl.Expr, numbers: pl.Expr, all_numbers: pl.Expr) -> pl.Expr:
    begins = longer.str.starts_with(title) & _pad(all_numbers).str.starts_with(_pad(numbers))
    return (title != longer) & begins & (title.str.len_chars() >= CUT_CHARACTERS)


def _is_movement(title: pl.Expr, longer: pl.Expr, numbers: pl.Expr, all_numbers: pl.Expr) -> pl.Expr:
    ends = longer.str.ends_with(title) & _pad(all_numbers).str.ends_with(_pad(numbers))
    return ends & is_movement_title(title) & ((title == longer) | ~is_movement_title(longer))


def _is_behind_number(title: pl.Expr, longer: pl.Expr, numbers: pl.Expr, all_numbers: pl.Expr) -> pl.Expr:
    ends = longer.str.ends_with(title) & _pad(all_numbers).str.ends_with(_pad(numbers))
    return ends & longer.str.strip_suffix(title).str.contains(TRACK_NUMBER) & (title.str.len_chars() >= NUMBERED_CHARACTERS)


def _pad(numbers: pl.Expr) -> pl.Expr:
    # `ii` is not part of `iii`.
    return pl.when(numbers == "").then(pl.lit("")).otherwise(pl.concat_str(pl.lit(" "), numbers, pl.lit(" ")))


def _is_either(compare: Callable[[pl.Expr, pl.Expr, pl.Expr, pl.Expr], pl.Expr]) -> pl.Expr:
    one, other = (tuple(pl.col(f"{side}_{name}_key") for name in ("title", "number")) for side in ("a", "b"))
    return compare(one[0], other[0], one[1], other[1]) | compare(other[0], one[0], other[1], one[1])
