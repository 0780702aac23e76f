"""Lookup keys as 64-bit hashes: ISRCs and the ids of every platform; name keys; ISWCs as integers.

A hash exists once for a single value (queries) and once over a column (build); tests hold both equal. It only says where to look: whoever
finds something compares the text itself. Values reach these functions normalised and checked by catalog_store/identifiers.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalog_store.platforms import CATALOG_B, LINK_SOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

ISRC = "isrc"
KEY_SPACES = (ISRC, *LINK_SOURCES)
NAME_KINDS = ("artist", "label", "genre")

_WORD_BYTES, _WORD_BITS = 8, 64
_SPREAD = 0x9E3779B97F4A7C15
_MIX = 0xD6E8FEB86659FD93
_HALF = 32
_LONGEST_TOGETHER = 64
_MASK = (1 << 64) - 1
_SPACE_BITS = 8
_NAME_SPACE = len(KEY_SPACES)


def spelled(space: str, text: str) -> str:
    """A key as the catalog stores it: UUIDs in lower case; half a surrogate pair, which is in no id, replaced."""
    return (text.lower() if space == CATALOG_B else text).encode(errors="replace").decode()


def key_hash(space: int, text: str) -> int:
    """Hash of a key; `space` is an index in KEY_SPACES."""
    raw = text.encode()
    left = len(raw)
    mixed = ((left << _SPACE_BITS | space) * _SPREAD) & _MASK
    words = int.from_bytes(raw, "little")  # of which the lowest 64 bits count
    while left > 0:
        mixed = ((mixed ^ words) * _MIX) & _MASK
        mixed ^= mixed >> _HALF
        words >>= _WORD_BITS
        left -= _WORD_BYTES
    return (mixed * _SPREAD) & _MASK


def few_hashes(space: int, texts: Sequence[str]) -> NDArray[np.uint64]:
    """The same of the keys of a query."""
    raw = [text.encode() for text in texts]
    longest = max(map(len, raw), default=0)
    if longest > _LONGEST_TOGETHER:
        return np.array([key_hash(space, text) for text in texts], dtype=np.uint64)
    width = -(-longest // _WORD_BYTES)
    words = np.frombuffer(b"".join([one.ljust(width * _WORD_BYTES, b"\0") for one in raw]), dtype="<u8").reshape(len(raw), width)
    lengths = np.array([len(one) for one in raw], dtype=np.uint64)
    mixed = (lengths << np.uint64(_SPACE_BITS) | np.uint64(space)) * np.uint64(_SPREAD)
    for number, word in enumerate(words.T):
        further = (mixed ^ word) * np.uint64(_MIX)
        further ^= further >> np.uint64(_HALF)
        mixed = np.where(lengths > number * _WORD_BYTES, further, mixed)
    mixed *= np.uint64(_SPREAD)
    return mixed


def key_hashes(space: int, texts: pl.Series) -> NDArray[np.uint64]:
    """The same over a column without nulls."""
    hashes = np.empty(len(texts), dtype=np.uint64)
    lengths = texts.str.len_bytes().to_numpy()
    for length in np.unique(lengths).tolist():
        alike = np.flatnonzero(lengths == length)
        words = np.zeros((len(alike), -(-length // _WORD_BYTES) * _WORD_BYTES), dtype=np.uint8)
        if length:
            joined = "".join(texts.gather(alike).to_list()).encode()
            words[:, :length] = np.frombuffer(joined, dtype=np.uint8).reshape(len(alike), length)
        hashes[alike] = _mixed((length << _SPACE_BITS | space) * _SPREAD & _MASK, words.view("<u8"))
    return hashes


def _mixed(start: int, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = np.full(len(words), start, dtype=np.uint64)
    for word in words.T:
        mixed ^= word
        mixed *= np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(_HALF)
    mixed *= np.uint64(_SPREAD)
    return mixed


def name_hash(kind: int, key: str) -> int:
    """Hash of a name key that SQLite takes as an integer; `kind` is an index in NAME_KINDS."""
    return key_hash(_NAME_SPACE + kind, key) >> 1


def name_hashes(kind: int, keys: pl.Series) -> NDArray[np.int64]:
    """The same over a column."""
    return (key_hashes(_NAME_SPACE + kind, keys) >> np.uint64(1)).astype(np.int64)


def iswc_code(iswc: str) -> int:
    """A bare ISWC as integer: its ten digits."""
    return int(iswc[1:])


def iswc_text(code: int) -> str:
    """The bare ISWC of a stored code."""
    return f"T{code:010d}"
