"""Words that people write in several ways: `Maroon Five` and `Maroon 5`, `Saint` and `St`, `4 U` and `For You`.

Linkage compares keys in one spelling, and stems without a leading article. Search keeps the words as written: whoever types `four t` has
not finished `Four Tops`. Out of scope: numbers after a counting word (part_numbers.py), letters (folding.py), typing errors.
"""

from __future__ import annotations

import re

import polars as pl

from catalog_store.name_keys.part_numbers import COUNTING_WORDS

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen"),
    *("fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_BELOW_100 = (*_UNITS, *(f"{ten} {unit}".removesuffix(" zero") for ten in _TENS for unit in _UNITS[:10]))
_NUMBERS = {name: str(value) for value, name in enumerate(_BELOW_100)}
_WORDS = {
    "st": "saint",
    "ste": "sainte",
    "dr": "doctor",
    "mr": "mister",
    "sgt": "sergeant",
    "capt": "captain",
    "prof": "professor",
    "mt": "mount",
    "bros": "brothers",
    "vs": "versus",
    "sr": "senior",
    "ok": "okay",
    "u": "you",
    "ur": "your",
    "luv": "love",
    "tonite": "tonight",
    "2nite": "tonight",
    "thru": "through",
    "gonna": "goingto",
    "wanna": "wantto",
    "gotta": "gotto",
    "cuz": "because",
    "coz": "because",
    "cause": "because",
    "em": "them",
}
"""One spelling for each word: the longer one, because a longer name is distinct from others in spite of an error."""
_SOUNDS = {"2": "to", "4": "for"}
_OBJECTS = frozenset({"you", "me", "the", "be", "my", "your", "us", "love", "life", "real", "sure", "ever", "always"})
"""Words after a number that stands for `to` or `for`: `Nothing Compares 2 U`, `4 Ever`. `2 Hearts` keeps its number."""

_MAY_DIFFER = rf"(?:^| )(?:part [0-9]|{'|'.join([*_UNITS, *_TENS, *_WORDS, *_SOUNDS])})(?:[ 0-9]|$)"
"""Matches each text that `unify_spellings` changes. Rust and Python read it alike."""
_MAY_DIFFER_RE = re.compile(_MAY_DIFFER)


def unify_spellings(words: str) -> str:
    """Return words (a key with spaces) in one spelling: `fifty ways 2 say u` -> `50 ways to say you`."""
    if not _MAY_DIFFER_RE.search(words):
        return words
    written: list[str] = []
    rest = [_WORDS.get(word, word) for word in words.split(" ")]
    while rest:
        number, used = _read_number(rest)
        word = number or rest[0]
        rest = rest[used or 1 :]
        # `The Wall, Part 2` is also `The Wall 2`.
        if word == "part" and written and rest and rest[0].isdigit():
            written.append(rest.pop(0))
            continue
        # The number of a volume is never a word: `Vol 2 the Return`.
        is_word = rest[:1] and rest[0] in _OBJECTS and (not written or written[-1] not in COUNTING_WORDS)
        written.append(_SOUNDS.get(word, word) if is_word else word)
    return " ".join(written)


def drop_article_expr(words: pl.Expr) -> pl.Expr:
    """Return titles without a leading `the`, `a` or `an`, unless nothing else is left."""
    return words.str.replace("^(?:the|an?) (.*[^ ].*)$", "${1}")


def unify_spellings_series(words: pl.Series) -> pl.Series:
    """Return the column form of `unify_spellings`. Some five texts in a hundred need Python."""
    found = words.str.contains(_MAY_DIFFER)
    if not found.any():
        return words
    changed = pl.Series(words.name, [unify_spellings(text) for text in words.filter(found)], dtype=pl.String)
    # Polars cannot assign by mask. Changed values are appended, and one gather puts each in its place.
    places = pl.select(pl.when(found).then(len(words) + found.cast(pl.Int64).cum_sum() - 1).otherwise(pl.int_range(len(words))))
    return pl.concat([words, changed]).gather(places.to_series())


def _read_number(words: list[str]) -> tuple[str, int]:
    """Return the number below 1000 that the words begin with, in digits, and how many they are; 0 if they begin with none.

    A single `one` is a pronoun more often than a number.
    """
    name, used = _read_below_100(words)
    if not used:
        return "", 0
    if words[used : used + 1] == ["hundred"] and len(name) == 1:
        is_joined = words[used + 1 : used + 2] == ["and"]
        rest, more = _read_below_100(words[used + 1 + is_joined :])
        return (f"{name}{rest:0>2}", used + 1 + is_joined + more) if more else (f"{name}00", used + 1)
    return ("", 0) if words[:used] == ["one"] else (name, used)


def _read_below_100(words: list[str]) -> tuple[str, int]:
    for used in (2, 1):
        if len(words) >= used and (number := _NUMBERS.get(" ".join(words[:used]))):
            return number, used
    return "", 0
