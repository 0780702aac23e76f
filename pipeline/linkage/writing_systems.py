"""Writing systems of names: `Кино` and `kino` share no letter, so only their sounds can be compared.

Add a script to SCRIPTS when platforms of a market write it. Out of scope: limits (guards.py), and how a script sounds
(catalog_store/name_keys/romanisation.py).
"""

from __future__ import annotations

import polars as pl

from catalog_store.name_keys import fold_series
from catalog_store.name_keys.romanisation import compare_sounds

SCRIPTS = (
    "a-z",
    r"\p{Cyrillic}",
    r"\p{Greek}",
    r"\p{Armenian}",
    r"\p{Georgian}",
    r"\p{Hebrew}",
    r"\p{Arabic}",
    r"\p{Thai}",
    r"\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Tamil}\p{Telugu}\p{Kannada}\p{Malayalam}",
    r"\p{Hangul}",
    r"\p{Han}\p{Hiragana}\p{Katakana}",
)
"""Letters of folded text, as contents of character classes. Scripts that one text mixes count as one."""


CHINESE_AND_KOREAN = r"[\p{Han}\p{Hangul}]"
"""Letters of names that are translated rather than spelled in another script: `五月天` is `Mayday`."""


_PART = r"[^()\[\]\u{FF08}\u{FF09}=]"
_TWO_PARTS = rf"^({_PART}*[^()\[\]\u{{FF08}}\u{{FF09}}= ]) *(?:[(\[\u{{FF08}}] *({_PART}+?) *[)\]\u{{FF09}}]| = ({_PART}+)) *$"


def split_scripts(texts: pl.Series) -> pl.DataFrame:
    """Return text, one, other of the distinct texts that say the same in two scripts: `周杰倫 (Jay Chou)`, `Кино = Kino`."""
    parts = pl.DataFrame({"text": texts.filter(texts.str.len_bytes() > texts.str.len_chars()).unique().sort()})
    parts = parts.with_columns(found=pl.col("text").str.extract_groups(_TWO_PARTS)).unnest("found").drop_nulls("1")
    parts = parts.select("text", one="1", other=pl.coalesce("2", "3"))
    one, other = (fold_series(parts[name]) for name in ("one", "other"))
    return parts.filter(mark_unlike_scripts(one, other))


def compare_scripts(pairs: pl.DataFrame, least: float) -> dict[str, pl.Series]:
    """Return `titles_are_unlike` (no common script), `titles_sound_alike` (`least` of 1 or more), and the same for artists."""
    columns = {}
    for name in ("title", "artist"):
        one, other = pairs[f"a_{name}_key"], pairs[f"b_{name}_key"]
        unlike = columns[f"{name}s_are_unlike"] = mark_unlike_scripts(one, other)
        columns[f"{name}s_sound_alike"] = mark_alike_sounds(one, other, unlike, least)
    return columns


def mark_unlike_scripts(one: pl.Series, other: pl.Series) -> pl.Series:
    """Mark the pairs in which both texts have letters, but none of a common script. A text of digits and signs has no script. No nulls."""
    pairs = pl.DataFrame({"one": one, "other": other})
    # Folded Latin text has one byte for each character: two lengths rule out nearly all pairs.
    has_other_letters = pl.col("one").str.len_bytes() + pl.col("other").str.len_bytes() > (
        pl.col("one").str.len_chars() + pl.col("other").str.len_chars()
    )
    is_candidate = pairs.select(has_other_letters).to_series()
    places = is_candidate.arg_true()
    marks = pl.repeat(value=False, n=pairs.height, dtype=pl.Boolean, eager=True)
    if places.is_empty():
        return marks
    few = pairs[places]
    ones, others = ([few[name].str.contains(f"[{letters}]") for letters in SCRIPTS] for name in ("one", "other"))
    shared = pl.select(pl.any_horizontal(a & b for a, b in zip(ones, others, strict=True))).to_series()
    lettered = pl.select(pl.any_horizontal(ones) & pl.any_horizontal(others)).to_series()
    return marks.scatter(places, lettered & ~shared)


def mark_alike_sounds(one: pl.Series, other: pl.Series, unlike: pl.Series, least: float) -> pl.Series:
    """Mark the pairs whose texts sound alike, `least` of 1 or more, if `unlike` marks them or only one of them is all Latin. No nulls."""
    # Both `Попытка No. 5` and `Popytka No. 5` have Latin letters. Two texts of one other script may be homophones: `公园`, `公元`.
    places = (unlike | ((one.str.len_bytes() > one.str.len_chars()) ^ (other.str.len_bytes() > other.str.len_chars()))).arg_true()
    # Few pairs differ in another script, so a loop over them costs little beside the other comparisons.
    pairs = zip(one.gather(places), other.gather(places), strict=True)
    found = pl.Series([compare_sounds(*pair) >= least for pair in pairs], dtype=pl.Boolean)
    return pl.repeat(value=False, n=len(one), dtype=pl.Boolean, eager=True).scatter(places, found)
