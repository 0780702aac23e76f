"""Keys of whole names as they sound: by them a query finds the recordings of one artist, or of one title, without a pair of right words.

`vingz` and `wings`, `daviid bovie` and `David Bowie` have one key. The index pairs each artist and each title with the word `ANY`
(search_build.py). Keys are in no vocabulary: a query asks for the hash alone. Each key has a column form (build) and a plain form
(queries); both must agree.
"""

from __future__ import annotations

import re
from functools import lru_cache

import polars as pl

from catalog_store.name_keys.romanisation import CONSONANTS, HEARD, replace_consonants
from catalog_store.search.layout import FIELD_SEPARATOR

ANY = f"{FIELD_SEPARATOR}*"
"""The word beside a whole name. It is a word of no title and of no artist."""
_MOST_CONSONANTS, _LEAST_CONSONANTS = 8, 6
"""Consonants of a key: more would make the ends of long titles count, fewer name too many titles."""
_DOUBLED = re.compile(r"(.)\1")
_PASSES = 2
"""Four equal letters in a row become one."""
_LETTERS = "abcdefghijklmnopqrstuvwxyzSC"
_VOWELS = str.maketrans("iu", "eo")
_LOOSELY_HEARD = {letters: heard.translate(_VOWELS) for letters, heard in HEARD.items()} | {"i": "e", "u": "o"}
"""Letters of one sound as one, and vowels that people exchange: `morchiba`, `Morcheeba`."""
_HEARD_RE = re.compile("|".join(_LOOSELY_HEARD))


def build_whole_key(name: str) -> str:
    """Return the key of a name: its first consonants; if it has few, all its letters as heard; its letters if they are not Latin."""
    letters = name.replace(" ", "")
    if not letters.isascii():
        return letters
    consonants = _join_doubled(replace_consonants(letters))
    if len(consonants) >= _LEAST_CONSONANTS:
        return consonants[:_MOST_CONSONANTS]
    return write_as_heard(letters)


@lru_cache(maxsize=16_384)
def write_as_heard(letters: str) -> str:
    """Return Latin letters without spaces as they sound: `lowe` and `love` are one."""
    return _join_doubled(_HEARD_RE.sub(lambda match: _LOOSELY_HEARD[match[0]], letters))


def build_whole_keys(names: pl.Series) -> pl.Series:
    """Return the keys of many names, as `build_whole_key` does for one."""
    letters = pl.col("letters")
    is_latin = letters.str.len_bytes() == letters.str.len_chars()
    frame = pl.DataFrame({"letters": names.str.replace_all(" ", "", literal=True)})
    consonants, heard = (
        _join_doubled_expr(letters.str.replace_many(list(table), list(table.values()), leftmost=True), kept)
        for table, kept in ((CONSONANTS, "kmnprt"), (_LOOSELY_HEARD, _LETTERS))
    )
    has_enough = consonants.str.len_bytes() >= _LEAST_CONSONANTS
    key = pl.when(~is_latin).then(letters).when(has_enough).then(consonants.str.slice(0, _MOST_CONSONANTS)).otherwise(heard)
    return frame.select(key.alias("key")).to_series()


def _join_doubled(text: str) -> str:
    for _ in range(_PASSES):
        if not _DOUBLED.search(text):
            break
        text = _DOUBLED.sub(r"\1", text)
    return text


def _join_doubled_expr(text: pl.Expr, letters: str) -> pl.Expr:
    for _ in range(_PASSES):
        text = text.str.replace_many([letter * 2 for letter in letters], list(letters))
    return text
