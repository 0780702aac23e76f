"""Posting lists: (owner, rank) pairs sorted into one list of ranks per owner, in bounded memory.

Pairs are counted, spilled by owner into files of about ROWS_PER_BUCKET pairs, and each file is sorted. The result depends neither on the
order of the pairs nor on the size of buckets. list_build.py produces the pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.array_files import ArrayWriter

    Pairs = Callable[[], Iterator[tuple[NDArray[np.int64], NDArray[np.uint32]]]]

ROWS_PER_BUCKET = 8_000_000
"""Pairs of one file: 64 MB, and the same again while it is sorted."""
_RANK_BITS = np.uint64(32)
_RANK_MASK = np.uint64(0xFFFF_FFFF)


def write_lists(pairs: Pairs, owners: int, writer: ArrayWriter, scratch: Path) -> NDArray[np.uint32]:
    """Append the list of every owner to `writer`, by owner. Return the length of each list.

    `pairs` is called twice and yields (owners, ranks) of equal length. Owners are below `owners`; `scratch` is an existing folder.
    """
    rows = np.zeros(owners, dtype=np.int64)
    for keys, _ in pairs():
        rows += np.bincount(keys, minlength=owners)
    # An owner's pairs go to one bucket whole, so sorted buckets one after the other are sorted as a whole. A list longer than a bucket
    # makes its bucket larger.
    bucket_of = (np.cumsum(rows) // ROWS_PER_BUCKET).astype(np.uint16)
    files = [scratch / f"{number:05d}.pairs" for number in range(int(bucket_of[-1]) + 1 if owners else 0)]
    for keys, ranks in pairs():
        # Owner and rank in one integer: one sort orders by owner, then by rank.
        packed = (keys.astype(np.uint64) << _RANK_BITS) | ranks
        buckets = bucket_of[keys]
        packed = packed[np.argsort(buckets, kind="stable")]
        ends = np.cumsum(np.bincount(buckets, minlength=len(files)))
        for file, start, end in zip(files, [0, *ends[:-1]], ends, strict=True):
            if start < end:
                with file.open("ab") as spilled:
                    spilled.write(packed[start:end].data)
    lengths = np.zeros(owners, dtype=np.uint32)
    for file in files:
        if file.exists():
            packed = np.fromfile(file, dtype=np.uint64)
            file.unlink()
            packed.sort()
            # Drop repeats: an artist credited twice on a track, or a track on two releases of a label.
            packed = packed[np.diff(packed, prepend=packed[:1] - np.uint64(1)) != 0]
            writer.append((packed & _RANK_MASK).astype(np.uint32))
            owned = (packed >> _RANK_BITS).astype(np.int64)
            lengths[owned[0] : owned[-1] + 1] += np.bincount(owned - owned[0]).astype(np.uint32)
    return lengths
