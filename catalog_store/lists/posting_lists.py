"""Posting lists: (owner, number) pairs sorted into one list of numbers per owner, in bounded memory.

Pairs are counted, spilled by owner into files of about ROWS_PER_BUCKET pairs, and each file is sorted. The result depends neither on the
order of the pairs nor on the size of buckets. list_build.py produces the pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalog_store.lists.rank_list import find_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.array_files import ArrayWriter

    Pairs = Callable[[], Iterator[tuple[NDArray[np.int64], NDArray[np.uint32]]]]

ROWS_PER_BUCKET = 8_000_000
"""Pairs of one file: 64 MB, and the same again while it is sorted."""
_HALF = np.uint64(32)
_LOWER_HALF = np.uint64(0xFFFF_FFFF)


def write_lists(pairs: Pairs, owners: int, writer: ArrayWriter, scratch: Path) -> NDArray[np.uint32]:
    """Append the list of every owner to `writer`, by owner. Return the length of each list.

    `pairs` is called twice and yields (owners, numbers) of equal length. Owners are below `owners`; `scratch` is an existing folder.
    """
    lengths = np.zeros(owners, dtype=np.uint32)
    for _, _, packed in _sort_pairs(pairs, owners, scratch):
        _count_owned(packed, lengths)
        writer.append((packed & _LOWER_HALF).astype(np.uint32))
    return lengths


def compare_lists(
    pairs: Pairs, owners: int, before: NDArray[np.uint32], starts: NDArray[np.unsignedinteger], scratch: Path
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the length of each list, and the pairs that the lists `before` lack and those that only they have.

    The list of id i was before[starts[i]..starts[i+1]]. A pair is the owner above 32 bits of the number. `pairs` and `scratch` are as in
    `write_lists`.
    """
    owners = max(owners, len(starts) - 1)
    lengths = np.zeros(owners, dtype=np.uint32)
    added, removed = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.uint64)]
    for first, end, packed in _sort_pairs(pairs, owners, scratch):
        _count_owned(packed, lengths)
        bounds = starts[first : end + 1].astype(np.int64)
        if not len(bounds):
            bounds = np.zeros(1, dtype=np.int64)
        old = np.repeat(np.arange(first, first + len(bounds) - 1, dtype=np.uint64) << _HALF, np.diff(bounds))
        old |= before[bounds[0] : bounds[-1]]
        added.append(packed[~find_members(old, packed)])
        removed.append(old[~find_members(packed, old)])
    return lengths, np.concatenate(added), np.concatenate(removed)


def _sort_pairs(pairs: Pairs, owners: int, scratch: Path) -> Iterator[tuple[int, int, NDArray[np.uint64]]]:
    """Yield (first owner, end, pairs of these owners): sorted and distinct. All owners are part of one range."""
    rows = np.zeros(owners, dtype=np.int64)
    for keys, _ in pairs():
        rows += np.bincount(keys, minlength=owners)
    # An owner's pairs go to one bucket whole, so sorted buckets one after the other are sorted as a whole. A list longer than a bucket
    # makes its bucket larger.
    bucket_of = (np.cumsum(rows) // ROWS_PER_BUCKET).astype(np.uint16)
    files = [scratch / f"{number:05d}.pairs" for number in range(int(bucket_of[-1]) + 1 if owners else 0)]
    for keys, numbers in pairs():
        # Owner and number in one integer: one sort orders by owner, then by number.
        packed = (keys.astype(np.uint64) << _HALF) | numbers
        buckets = bucket_of[keys]
        packed = packed[np.argsort(buckets, kind="stable")]
        ends = np.cumsum(np.bincount(buckets, minlength=len(files)))
        for file, start, end in zip(files, [0, *ends[:-1]], ends, strict=True):
            if start < end:
                with file.open("ab") as spilled:
                    spilled.write(packed[start:end].data)
    for bucket, file in enumerate(files):
        packed = np.fromfile(file, dtype=np.uint64) if file.exists() else np.empty(0, dtype=np.uint64)
        file.unlink(missing_ok=True)
        packed.sort()
        first, end = np.searchsorted(bucket_of, [bucket, bucket + 1]).tolist()
        # Drop repeats: an artist credited twice on a track, or a track on two releases of a label.
        yield first, end, packed[np.diff(packed, prepend=packed[:1] - np.uint64(1)) != 0]


def _count_owned(packed: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> None:
    """Add the pairs of each owner to its length."""
    if len(packed):
        owned = (packed >> _HALF).astype(np.int64)
        lengths[owned[0] : owned[-1] + 1] += np.bincount(owned - owned[0]).astype(np.uint32)
