"""Folding of whole columns by a table: the result of `folding.fold` for each character, instead of searches for ten patterns.

The table is enough for a text whose characters each become one character or none, whatever their neighbours. The flags of a text report
other cases, which are few, and the caller applies the patterns of `folding` to those. The table is filled from `folding` when a character
first occurs, so there is one definition. The rules of folding do not belong here.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Codes = npt.NDArray[np.uint32]
    Flags = npt.NDArray[np.uint8]
    Places = npt.NDArray[np.int64]

HARD, STYLED, SPACED, SIGN = np.uint8(1), np.uint8(2), np.uint8(4), np.uint8(8)
"""Flags of a text.

HARD: one of its characters becomes several, or a mark that stays and whose order NFKD decides; the text is not folded at all. STYLED: it
has one of `& $ !`, which are read with their neighbours. SPACED: it has spaces at an end or next to each other. SIGN: it has a character
that is neither letter, digit nor space.
"""
_REMOVED, _UNKNOWN = np.uint8(16), np.uint8(128)

_UTF8_WIDENS = (0x80, 0x800, 0x10000)
"""From each of these characters on, UTF-8 needs one more byte."""
# The table has a place for every code point: 4.5 MB.
_ALL_CHARACTERS = 0x110000
_SPACE = ord(" ")
_FLAG_BITS, _CODE = 24, np.uint32((1 << 24) - 1)
"""The position of flags and character in one number of the table."""
TEXTS_PER_CHUNK = 16_384
"""Texts folded at a time: about 400,000 characters, which fit the processor's cache."""


class CharacterTable:
    """The folded form of each character, learned from `fold_letters`, the part of folding that reads one character at a time."""

    def __init__(self, fold_letters: Callable[[str], str], odd_spaces: str, signs: str) -> None:
        """Compile patterns of one character: `odd_spaces`, and `signs`, which matches all but letters, digits and spaces."""
        self._fold_letters = fold_letters
        self._odd_space, self._sign = re.compile(odd_spaces), re.compile(signs)
        self._table = np.full(_ALL_CHARACTERS, int(_UNKNOWN) << _FLAG_BITS, dtype=np.uint32)

    def fold_texts(self, texts: pl.Series) -> tuple[pl.Series, Flags]:
        """Fold the texts (none of them null). Return them with the flags of each; the caller corrects flagged texts."""
        chunks = [self._fold(texts.slice(start, TEXTS_PER_CHUNK)) for start in range(0, len(texts), TEXTS_PER_CHUNK)]
        if not chunks:
            return texts, np.empty(0, dtype=np.uint8)
        return pl.concat([series for series, _ in chunks]), np.concatenate([flags for _, flags in chunks])

    def _fold(self, texts: pl.Series) -> tuple[pl.Series, Flags]:
        codes = np.frombuffer(texts.str.join("").item().encode("utf-32-le"), dtype=np.uint32)
        ends = np.cumsum(texts.str.len_chars().to_numpy(), dtype=np.int64)
        # UTF-32 has one number per character, so one array access folds a whole chunk.
        found = self._table[codes]
        flags = (found >> _FLAG_BITS).astype(np.uint8)
        # New characters are rare after the first chunks, so learning and folding again costs little.
        if (flags & _UNKNOWN).any():
            self._learn(codes[(flags & _UNKNOWN) != 0])
            return self._fold(texts)
        codes = found & _CODE
        stays = (flags & _REMOVED) == 0
        if not stays.all():
            ends = np.concatenate([[0], np.cumsum(stays)])[ends]
            codes, flags = codes[stays], flags[stays]
        # Texts are contiguous: each begins where the one before ends.
        starts = np.concatenate([[0], ends[:-1]])
        return _build_texts(codes, ends), _combine_flags(codes, flags, starts, ends)

    def _learn(self, codes: Codes) -> None:
        for code in np.unique(codes).tolist():
            letters, flags = self._fold_letters(chr(code)), 0
            if not letters:
                flags = int(_REMOVED)
            # The table cannot grow a text, and the order of marks depends on neighbours.
            elif len(letters) > 1 or unicodedata.combining(letters):
                letters, flags = chr(code), int(HARD)
            elif self._odd_space.match(letters):
                letters = " "
            else:
                flags = (int(STYLED) if letters in "&$!" else 0) | (int(SIGN) if self._sign.match(letters) else 0)
            self._table[code] = flags << _FLAG_BITS | (ord(letters) if letters else 0)


def _combine_flags(codes: Codes, flags: Flags, starts: Places, ends: Places) -> Flags:
    is_space = codes == _SPACE
    flags = flags | np.where(np.concatenate([[False], is_space[1:] & is_space[:-1]])[: len(codes)], SPACED, np.uint8(0))
    filled = starts < ends
    first, last = starts[filled], ends[filled] - 1
    found = np.zeros(len(ends), dtype=np.uint8)
    if len(first):
        edges = np.where(is_space[first] | is_space[last], SPACED, np.uint8(0))
        found[filled] = np.bitwise_or.reduceat(flags, first) | edges
    return found


def _build_texts(codes: Codes, ends: Places) -> pl.Series:
    """Build a column from characters and the end of each text among them."""
    data = codes.tobytes().decode("utf-32-le").encode()
    # All-ASCII chunks, the most frequent ones, have as many bytes as characters: the ends need no correction.
    if len(data) > len(codes):
        widths = np.ones(len(codes), dtype=np.uint8)
        for first in _UTF8_WIDENS:
            widths += codes >= first
        ends = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)])[ends]
    offsets = np.concatenate([[0], ends]).astype(np.int64).tobytes()
    texts = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data))
    # Through a table, because pl.from_arrow of a bare array imports pyarrow.compute, which takes 70 ms.
    return cast("pl.DataFrame", pl.from_arrow(pa.table({"text": texts})))["text"]
