"""Random numbers that depend on names and numbers only: a generator for each (seed, purpose, block), and ids hashed from counters.

Every purpose has its own stream, so that a new kind of dirt on one platform leaves the files of other platforms unchanged.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

_BASE62 = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", dtype=np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_HALF_ID = 11
_UUID_HYPHENS = (8, 13, 18, 23)


def make_generator(seed: int, purpose: str, block: int = 0) -> np.random.Generator:
    """Return the generator of one purpose in one block."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), block])


def hash_keys(keys: npt.NDArray[np.int64], salt: str) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of every key (splitmix64, a bijection: distinct keys stay distinct under one salt)."""
    with np.errstate(over="ignore"):
        # The constants are those of splitmix64 (Steele, Lea, Flood 2014).
        value = keys.astype(np.uint64) + np.uint64(zlib.crc32(salt.encode()) + 1) * np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def hash_names(rows: pl.DataFrame, *columns: str) -> npt.NDArray[np.int64]:
    """Return a number for the name of each row, which is in several columns."""
    named = rows.select(pl.concat_str(columns, separator=":")).to_series()
    return np.fromiter((zlib.crc32(text.encode()) for text in named), dtype=np.int64, count=rows.height)


def draw_numbers(hashes: npt.NDArray[np.int64], purpose: str) -> npt.NDArray[np.float64]:
    """Return a number in [0, 1) for each hash."""
    drawn: npt.NDArray[np.float64] = hash_keys(hashes, purpose) / 2.0**64
    return drawn


def build_fixed_text(characters: npt.NDArray[np.uint8]) -> pl.Series:
    """Return a matrix of ASCII codes, a row for each text, as a text column, without Python strings."""
    rows, width = characters.shape
    offsets = np.arange(rows + 1, dtype=np.int64) * width
    # Offsets and bytes are Arrow's own layout: a million ids without a million Python strings.
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(np.ascontiguousarray(characters).tobytes())]
    return pl.Series(pa.Array.from_buffers(pa.large_string(), rows, buffers))


def split_digits(values: npt.NDArray[np.uint64], base: int, width: int) -> npt.NDArray[np.int64]:
    """Return the last `width` digits of each value in `base`, most significant first: shape (rows, width)."""
    out = np.empty((len(values), width), dtype=np.int64)
    rest = values.copy()
    for column in range(width - 1, -1, -1):
        out[:, column] = rest % np.uint64(base)
        rest //= np.uint64(base)
    return out


def make_base62_ids(keys: npt.NDArray[np.int64], salt: str) -> pl.Series:
    """Return 22 base-62 characters for each key."""
    halves = [split_digits(hash_keys(keys, f"{salt}{half}"), 62, _HALF_ID) for half in (0, 1)]
    return build_fixed_text(_BASE62[np.hstack(halves)])


def make_uuids(keys: npt.NDArray[np.int64], salt: str) -> pl.Series:
    """Return a version-4-shaped UUID for each key, lower case with hyphens."""
    nibbles = np.hstack([split_digits(hash_keys(keys, f"{salt}{half}"), 16, 16) for half in (0, 1)])
    # Version 4, variant 10xx (RFC 9562).
    nibbles[:, 12] = 4
    nibbles[:, 16] = 8 + nibbles[:, 16] % 4
    out = np.full((len(keys), 36), ord("-"), dtype=np.uint8)
    out[:, [column for column in range(36) if column not in _UUID_HYPHENS]] = _HEX[nibbles]
    return build_fixed_text(out)


def draw_flags(rng: np.random.Generator, count: int, share: float) -> npt.NDArray[np.bool_]:
    """Return true for a random `share` of the rows."""
    return rng.random(count) < share


def draw_weighted(rng: np.random.Generator, weights: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Draw `count` positions in `weights` with replacement, in proportion to the weights."""
    edges = np.cumsum(np.asarray(weights, dtype=np.float64))
    return np.searchsorted(edges / edges[-1], rng.random(count), side="right").clip(0, len(edges) - 1).astype(np.int64)
