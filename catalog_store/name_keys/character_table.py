"""Folding over whole columns: what `folding.fold` makes of each character, looked up in a table instead of searched for by ten patterns.

Of a text the table can say what it becomes as long as each of its characters becomes one or none whatever stands around it. Where that is
not so, the text's flags tell: the caller mends what is flagged with the patterns of `folding`, which are few texts. The table is filled
from `folding` itself, a character when it is first met, so there is one definition. What must not live here: what folding means.
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
"""Flags of a text. HARD: a character of it becomes several, or a mark that stays, whose order NFKD decides; the text is not folded at all.
STYLED: one of `& $ !`, which are read with their neighbours. SPACED: spaces at an end or beside another. SIGN: a character that is neither
letter, digit nor space."""
_GONE, _UNMET = np.uint8(16), np.uint8(128)

_UTF8_WIDENS = (0x80, 0x800, 0x10000)
"""From these characters on UTF-8 takes one byte more."""
_ALL_CHARACTERS = 0x110000
_SPACE = ord(" ")
_FLAG_BITS, _CODE = 24, np.uint32((1 << 24) - 1)
"""How flags and character stand in one number of the table."""
TEXTS_PER_CHUNK = 16_384
"""Folded at a time: some 400,000 characters, which stay in the processor's cache."""


class CharacterTable:
    """What characters become, learnt from `lettered`, the part of folding that looks at one character at a time."""

    def __init__(self, lettered: Callable[[str], str], odd_spaces: str, signs: str) -> None:
        """`odd_spaces`, `signs`: patterns of one character; the latter of all that is no letter, digit or space."""
        self._lettered = lettered
        self._odd_space, self._sign = re.compile(odd_spaces), re.compile(signs)
        self._table = np.full(_ALL_CHARACTERS, int(_UNMET) << _FLAG_BITS, dtype=np.uint32)

    def fold_texts(self, texts: pl.Series) -> tuple[pl.Series, Flags]:
        """The texts (none of them null), folded, and the flags of each; flagged ones are for the caller to mend."""
        chunks = [self._fold(texts.slice(start, TEXTS_PER_CHUNK)) for start in range(0, len(texts), TEXTS_PER_CHUNK)]
        if not chunks:
            return texts, np.empty(0, dtype=np.uint8)
        return pl.concat([series for series, _ in chunks]), np.concatenate([flags for _, flags in chunks])

    def _fold(self, texts: pl.Series) -> tuple[pl.Series, Flags]:
        codes = np.frombuffer(texts.str.join("").item().encode("utf-32-le"), dtype=np.uint32)
        ends = np.cumsum(texts.str.len_chars().to_numpy(), dtype=np.int64)
        found = self._table[codes]
        flags = (found >> _FLAG_BITS).astype(np.uint8)
        if (flags & _UNMET).any():
            self._learn(codes[(flags & _UNMET) != 0])
            return self._fold(texts)
        codes = found & _CODE
        stays = (flags & _GONE) == 0
        if not stays.all():
            ends = np.concatenate([[0], np.cumsum(stays)])[ends]
            codes, flags = codes[stays], flags[stays]
        starts = np.concatenate([[0], ends[:-1]])
        return _build_texts(codes, ends), _combine_flags(codes, flags, starts, ends)

    def _learn(self, codes: Codes) -> None:
        for code in np.unique(codes).tolist():
            letters, flags = self._lettered(chr(code)), 0
            if not letters:
                flags = int(_GONE)
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
    """Characters, and where each text ends among them, as a column."""
    data = codes.tobytes().decode("utf-32-le").encode()
    if len(data) > len(codes):
        widths = np.ones(len(codes), dtype=np.uint8)
        for first in _UTF8_WIDENS:
            widths += codes >= first
        ends = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)])[ends]
    offsets = np.concatenate([[0], ends]).astype(np.int64).tobytes()
    texts = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data))
    # By way of a table: Polars imports pyarrow.compute, 70 ms, to take over a column by itself.
    return cast("pl.DataFrame", pl.from_arrow(pa.table({"text": texts})))["text"]
