"""The writer of one segment of an index; layout.py defines the format."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.layout import (
    ITEM_POSTINGS,
    LANDMARK_POSTINGS,
    PLACE_BITS,
    SAMPLE_BITS,
    SEGMENT_FILE,
    STORE_STRIDE,
    count_bucket_bits,
    count_ordinal_bits,
    divide_into_buckets,
)
from audio_recognition.index.postings import MOST_FINGERPRINTS, Postings, count_part_bits
from audio_recognition.index.spool import Spool
from audio_recognition.landmarks import CODE_BITS, PAIRS_PER_PEAK, pair_peaks
from catalog_store.array_files import ArrayWriter
from catalog_store.search.layout import choose_unsigned

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from audio_recognition.index.batches import FingerprintBatch

ITEMS_PER_BLOCK = 1 << 19
"""Items read and posted at once: 2 MB, so the results stay in the processor's cache and its memory is reused."""


PEAKS_PER_BLOCK = 1 << 13
"""Peaks paired at once: the passes over them stay in the processor's cache, which saves a third of the time."""


def write_segment(
    batches: Iterable[FingerprintBatch],
    folder: Path,
    *,
    landmarks: Iterable[FingerprintBatch] = (),
    partitions: int | None = None,
) -> NDArray[np.int64]:
    """Write the new folder `folder`. Return the recording ids of the ordinals.

    `landmarks` holds peaks in place of items (audio_recognition/landmarks). They belong to the first fingerprint of their recording id;
    those of other ids are left out.
    `partitions` is the number of parts sorted separately, rounded up to a power of two; the files are the same for any number.
    """
    folder.mkdir(parents=True)
    work = folder / ".parts"
    work.mkdir()
    spool = Spool(batches, work)
    items = int(spool.lengths.sum())
    bits = count_ordinal_bits(len(spool))
    buckets = count_bucket_bits(items, bits)
    parts = count_part_bits(items >> SAMPLE_BITS, buckets) if partitions is None else min((partitions - 1).bit_length(), buckets)
    postings = Postings(work, bits_of_ordinals=bits, bits_of_parts=parts)
    with ArrayWriter(folder / "ids.npy", np.int64) as ids:
        ids.append(spool.recording_ids)
    with ArrayWriter(folder / "seconds.npy", np.uint16) as seconds:
        seconds.append(spool.seconds)
    # Items are read once: what goes into the store is posted on the way.
    stored = _write_store(spool, folder, postings)
    postings.write(folder, buckets, ITEM_POSTINGS)
    shutil.rmtree(work)
    landmark_count, landmark_buckets = _write_landmarks(landmarks, folder, spool.recording_ids, bits)
    content = {
        "recordings": len(spool),
        "items": items,
        "stored": stored,
        "postings": postings.count,
        "bucket_bits": buckets,
        "ordinal_bits": bits,
        "landmarks": landmark_count,
        "landmark_bucket_bits": landmark_buckets,
    }
    # Written last: a segment without it does not open.
    (folder / SEGMENT_FILE).write_text(json.dumps(content) + "\n")
    return spool.recording_ids


def _write_landmarks(landmarks: Iterable[FingerprintBatch], folder: Path, ids: NDArray[np.int64], ordinal_bits: int) -> tuple[int, int]:
    """Post the pairs of peaks of the fingerprints of `ids`, which ascend. Return the number of postings and the bits of a bucket."""
    work = folder / ".landmarks"
    work.mkdir()
    spool = Spool(landmarks, work)
    estimate = int(spool.lengths.sum() * PAIRS_PER_PEAK)
    buckets = divide_into_buckets(estimate, ordinal_bits, CODE_BITS)
    parts = count_part_bits(estimate, buckets, CODE_BITS)
    postings = Postings(work, bits_of_ordinals=ordinal_bits, bits_of_parts=parts, address_bits=CODE_BITS)
    at, is_known = np.searchsorted(ids, spool.recording_ids), np.isin(spool.recording_ids, ids)
    # A recording may have several lists of landmarks. The first one counts, as the first fingerprint does.
    is_known[1:] &= spool.recording_ids[1:] != spool.recording_ids[:-1]
    for first, lengths, peaks in spool.iterate_blocks(PEAKS_PER_BLOCK, MOST_FINGERPRINTS):
        pairs = pair_peaks(peaks, lengths)
        ordinals, known = at[first : first + len(lengths)], is_known[first : first + len(lengths)]
        chosen = np.flatnonzero(known[pairs.pieces])
        pieces, codes, frames = pairs.pieces[chosen], pairs.codes[chosen], pairs.frames[chosen]
        # A block may span many ordinals without landmarks, and a call takes MOST_FINGERPRINTS of them.
        base = 0
        while base < len(lengths):
            last = int(np.searchsorted(ordinals, ordinals[base] + MOST_FINGERPRINTS))
            these = slice(*np.searchsorted(pieces, (base, last)))
            spots = ((ordinals[pieces[these]] - ordinals[base]) << PLACE_BITS | frames[these]).astype(np.uint32)
            postings.add_addresses(int(ordinals[base]), int(ordinals[last - 1] - ordinals[base]) + 1, spots, codes[these])
            base = last
    if postings.count:
        postings.write(folder, buckets, LANDMARK_POSTINGS)
    shutil.rmtree(work)
    return (postings.count, buckets) if postings.count else (0, 0)


def _write_store(spool: Spool, folder: Path, postings: Postings) -> int:
    """Write the store and post everything read on the way. Return the number of stored items."""
    stored_lengths = -(-spool.lengths // STORE_STRIDE)
    stored = int(stored_lengths.sum())
    with ArrayWriter(folder / "store_starts.npy", choose_unsigned(stored)) as starts:
        starts.append(np.cumsum(stored_lengths) - stored_lengths)
        starts.append(np.array([stored]))
    with ArrayWriter(folder / "store.npy", np.uint32) as store:
        for first, lengths, items in spool.iterate_blocks(ITEMS_PER_BLOCK, MOST_FINGERPRINTS):
            postings.add(first, lengths, items)
            store.append(_select_stored(lengths, items))
    return stored


def _select_stored(lengths: NDArray[np.int64], items: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return every STORE_STRIDEth item of each fingerprint."""
    # Every fingerprint then begins at a multiple of the stride, so one slice takes them all.
    if not (lengths % STORE_STRIDE).any():
        every: NDArray[np.uint32] = items[::STORE_STRIDE]
        return every
    counts = -(-lengths // STORE_STRIDE)
    gaps = np.cumsum(lengths) - lengths - STORE_STRIDE * (np.cumsum(counts) - counts)
    chosen: NDArray[np.uint32] = items[STORE_STRIDE * np.arange(counts.sum()) + np.repeat(gaps, counts)]
    return chosen
