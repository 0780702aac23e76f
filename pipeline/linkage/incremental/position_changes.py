"""Positions on releases of a night that builds on a snapshot: only barcodes on which something changed are searched.

Sums over releases by barcode and over tracks by release tell where something changed. All releases and tracks are still read, once, as
numbers. Out of scope: how positions are found (release_positions.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.record_keys.place_numbers import DISC_BITS, TRACK_BITS
from pipeline.linkage.release_positions import (
    CODED_SCHEMA,
    CONTESTED_SCHEMA,
    Positions,
    find_contested_rows,
    find_sum_slots,
    sum_positions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from pipeline.linkage.release_positions import Frames


class Before(NamedTuple):
    """Positions of the base, and the numbers of the records whose atoms came or went since."""

    positions: Positions
    records: pl.Series


def find_changed_positions(releases: Frames, tracks: Frames, members: Frames, before: Before, buckets: int = 1) -> Positions:
    """Return what `find_positions` returns, with the positions of unchanged barcodes and all verdicts from `before`.

    Sums of another number of buckets cannot be compared: then all positions are searched.
    """
    coded = [CODED_SCHEMA.to_frame(), *releases()]
    # Filled while the tracks are summed: they are read once for both.
    moved = [pl.Series("release", [], dtype=pl.UInt64)]

    def read_tracks() -> Iterator[pl.DataFrame]:
        for frame in tracks():
            moved.append(frame["release"].filter(frame["record"].is_in(before.records.implode())))
            yield frame

    sums = sum_positions(coded, read_tracks(), buckets)
    rows = [CONTESTED_SCHEMA.to_frame()]
    if before.positions.sums.shape == sums.shape:
        # A change without trace in the sums is possible: a record keeps its position and moves to another atom. So
        # releases of such records count as well.
        differ, touched = sums != before.positions.sums, pl.concat(moved)
        again = pl.concat([frame["gtin"].filter(_is_touched(frame, differ, touched)) for frame in coded]).unique()
        known = before.positions.contested
        gtin = known["place"] // (1 << DISC_BITS + TRACK_BITS)
        # Known rows of a differing slot go even if no release has their barcode tonight: that is a barcode that vanished.
        rows.append(known.filter(pl.Series(~differ[0][find_sum_slots(gtin, differ.shape[1])]) & ~gtin.is_in(again.implode())))
        few = [frame.filter(pl.col("gtin").is_in(again.implode())) for frame in coded]
        # Few releases need fewer passes over the tracks.
        buckets = 1 + (buckets - 1) * sum(map(len, few)) // max(1, sum(map(len, coded)))
        coded = few
    rows += find_contested_rows(coded, tracks, members, buckets)
    return Positions(pl.concat(rows).sort("place", "platform", "atom_id"), sums, before.positions.judged)


def _is_touched(coded: pl.DataFrame, differ: npt.NDArray[np.bool_], touched: pl.Series) -> pl.Series:
    """Mark the releases with a change to their barcode or tracks.

    `differ`: which slots of the sums differ; `touched`: releases with a record whose atom changed.
    """
    by_sum = [differ[side][find_sum_slots(coded[name], differ.shape[1])] for side, name in enumerate(("gtin", "release"))]
    return pl.Series(by_sum[0] | by_sum[1]) | coded["release"].is_in(touched.implode())
