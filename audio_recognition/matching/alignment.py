"""The comparison of a query with a place: the share of differing bits over the overlapping items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.layout import STORE_STRIDE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audio_recognition.index.fingerprint_index import Segment

BITS = 32


def compare(
    segment: Segment,
    query: NDArray[np.uint32],
    rows: NDArray[np.int64],
    ordinals: NDArray[np.int64],
    offsets: NDArray[np.int64],
    *,
    every: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return bit error rates and overlaps (in items of the query) with item 0 of query[rows[i]] on item offsets[i] of ordinals[i].

    query: uint32 [phases, items]. Only one in `every` stored items is compared. Without an overlap the rate is 1.
    """
    starts = segment.store_starts[ordinals].astype(np.int64)
    stored = segment.store_starts[ordinals + 1].astype(np.int64) - starts
    items = query.shape[1]
    # The first stored item at or after item 0 of the query; only every STORE_STRIDEth item is stored.
    first = -(-offsets // STORE_STRIDE)
    in_query = (first * STORE_STRIDE - offsets)[:, None] + np.arange(0, items, STORE_STRIDE * every)
    in_store = first[:, None] + np.arange(0, -(-items // STORE_STRIDE), every)
    inside = (in_store >= 0) & (in_store < stored[:, None]) & (in_query < items)
    # Positions outside read item 0 and are masked below: an array index must be valid.
    at = np.where(inside, starts[:, None] + in_store, 0)
    differing = np.bitwise_count(segment.store[at] ^ query[rows[:, None], np.minimum(in_query, items - 1)])
    compared = inside.sum(axis=1)
    errors = (differing * inside).sum(axis=1, dtype=np.int64)
    rates = np.where(compared > 0, errors / (BITS * np.maximum(compared, 1)), 1.0)
    lengths = stored * STORE_STRIDE
    overlaps = np.minimum(items, lengths - offsets) - np.maximum(0, -offsets)
    return rates, np.maximum(overlaps, 0)


def estimate_chance(segment: Segment, query: NDArray[np.uint32], ordinal: int, offset: int) -> float:
    """Return the bit error rate that unrelated pieces with such shares of ones, bit by bit, have by chance; query: uint32 [items]."""
    start = int(segment.store_starts[ordinal])
    stored = segment.store[start : int(segment.store_starts[ordinal + 1])]
    first = max(0, -(-offset // STORE_STRIDE))
    theirs = stored[first : max(first, (offset + len(query) - 1) // STORE_STRIDE + 1)]
    ours = query[first * STORE_STRIDE - offset :: STORE_STRIDE][: len(theirs)]
    return compute_chance(ours, theirs)


def compute_chance(ours: NDArray[np.uint32], theirs: NDArray[np.uint32]) -> float:
    """Return the bit error rate that two unrelated pieces with the shares of ones of these items have by chance."""
    one, other = _compute_shares_of_ones(ours), _compute_shares_of_ones(theirs)
    # Two independent bits differ with probability p(1-q) + q(1-p).
    return float((one + other - 2 * one * other).mean())


def _compute_shares_of_ones(items: NDArray[np.uint32]) -> NDArray[np.float64]:
    bits = np.unpackbits(np.ascontiguousarray(items, dtype="<u4").view(np.uint8).reshape(-1, BITS // 8), axis=1)
    shares: NDArray[np.float64] = bits.mean(axis=0)
    return shares
