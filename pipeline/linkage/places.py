"""What stands on the places of releases: a barcode, a disc and a track number name a place, whichever platform lists it.

All releases and tracks are looked at, as numbers. A night that knows what stood on the places of another build looks only at the barcodes
on which something has changed, and takes the others over. What must not live here: what two records on one place mean (position_edges.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import GOLDEN
from catalog_store.record_keys.place_numbers import DISC_BITS, TRACK_BITS
from pipeline.linkage.runs import SUM_BITS, in_mixed_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    Frames = Callable[[], Iterable[pl.DataFrame]]

ROWS_AT_A_TIME = 10_000_000
"""Tracks, or members: 180 MB."""
MOST_FEW = 0.05
PLATFORM = pl.Enum(CATALOG_PLATFORMS)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""Odd: barcodes of one publisher lie side by side."""
_HALF = np.uint64(32)


class Places(NamedTuple):
    """What stands on the places of a build.

    `contested`: place (a number), platform, atom_id, distinct, sorted: of the places on which several atoms stand; most hold one already.
    `sums`: over all releases, in slots by their barcode, and over all tracks, in slots by their release (see `runs.in_differing_sums`).
    `judged`: a, b, score of pairs of atoms that the guards have been asked about, refused ones without score: atoms do not change.
    """

    contested: pl.DataFrame
    sums: npt.NDArray[np.uint64]
    judged: pl.DataFrame


CODED_SCHEMA = pl.Schema({"release": pl.UInt64(), "gtin": pl.Int64(), "platform": PLATFORM})
CONTESTED_SCHEMA = pl.Schema({"place": pl.Int64(), "platform": pl.String(), "atom_id": pl.Int64()})
NOT_JUDGED = pl.DataFrame(schema={"a": pl.Int64, "b": pl.Int64, "score": pl.Float64})
NO_PLACES = Places(CONTESTED_SCHEMA.to_frame(), np.zeros((2, 1 << SUM_BITS), dtype=np.uint64), NOT_JUDGED)


class Before(NamedTuple):
    """What stood on the places of another build, and the numbers of the records whose atoms have come or gone since."""

    places: Places
    records: pl.Series


def contested_places(releases: Frames, tracks: Frames, members: Frames, buckets: int = 1, before: Before | None = None) -> Places:
    """What stands on places, without a judgement.

    Args:
        releases: gives release, gtin (as `place_numbers.barcoded`) and platform (PLATFORM) of all releases, in frames.
        tracks: gives release, record, spot (as `place_numbers.standing`) of all tracks.
        members: gives record (as `numbers.record_number`), atom_id of all members of atoms.
        buckets: into how many parts the barcodes are cut; tracks and members are read once for each.
        before: if known, places of barcodes on which nothing has changed since are taken over, which tells the same.
    """
    coded = [CODED_SCHEMA.to_frame(), *releases()]
    moved = before.records if before is not None else pl.Series(dtype=pl.UInt64)
    sums, touched = _added_up(coded, tracks, moved, buckets)
    rows = [CONTESTED_SCHEMA.to_frame()]
    if before is not None and before.places.sums.shape == sums.shape:
        differ = sums != before.places.sums
        again = pl.concat([frame["gtin"].filter(_are_touched(frame, differ, touched)) for frame in coded]).unique()
        known = before.places.contested
        gtin = known["place"] // (1 << DISC_BITS + TRACK_BITS)
        rows.append(known.filter(pl.Series(~differ[0][_slots(gtin, differ.shape[1])]) & ~gtin.is_in(again.implode())))
        few = [frame.filter(pl.col("gtin").is_in(again.implode())) for frame in coded]
        buckets = 1 + (buckets - 1) * sum(map(len, few)) // max(1, sum(map(len, coded)))
        coded = few
    for bucket in range(buckets):
        shared = _told_by_several(pl.concat([frame.filter(pl.col("gtin") % buckets == bucket) for frame in coded]))
        rows.append(_contested(_placed(shared, tracks), members))
    return Places(pl.concat(rows).sort("place", "platform", "atom_id"), sums, NOT_JUDGED)


def _added_up(coded: list[pl.DataFrame], tracks: Frames, moved: pl.Series, buckets: int) -> tuple[npt.NDArray[np.uint64], pl.Series]:
    """The sums, and the releases on which one of these records stands. A sum tells who swapped places only if each row is hashed whole."""
    sums = np.zeros((2, buckets << SUM_BITS), dtype=np.uint64)
    for frame in coded:
        rows = frame.select((pl.col("release") + pl.col("gtin").reinterpret(signed=False) * GOLDEN).hash()).to_series()
        np.add.at(sums[0], _slots(frame["gtin"], sums.shape[1]), rows.to_numpy())
    touched = [pl.Series("release", [], dtype=pl.UInt64)]
    for frame in tracks():
        rows = frame.select((pl.col("release") * GOLDEN + pl.col("record") + pl.col("spot")).hash()).to_series()
        np.add.at(sums[1], _slots(frame["release"], sums.shape[1]), rows.to_numpy())
        touched.append(frame["release"].filter(frame["record"].is_in(moved.implode())))
    return sums, pl.concat(touched)


def _are_touched(coded: pl.DataFrame, differ: npt.NDArray[np.bool_], touched: pl.Series) -> pl.Series:
    """Which releases have a barcode, or tracks, of which something has changed. `differ`: which sums do; `touched`: further releases."""
    by_sum = [differ[side][_slots(coded[name], differ.shape[1])] for side, name in enumerate(("gtin", "release"))]
    return pl.Series(by_sum[0] | by_sum[1]) | coded["release"].is_in(touched.implode())


def _slots(numbers: pl.Series, slots: int) -> npt.NDArray[np.intp]:
    """Where among the sums a number is counted."""
    return ((numbers.to_numpy().view(np.uint64) * _SPREAD >> _HALF) * np.uint64(slots) >> _HALF).astype(np.intp)


def _told_by_several(coded: pl.DataFrame) -> pl.DataFrame:
    """The releases whose barcode several platforms give."""
    coded = coded[coded["gtin"].arg_sort()]
    return coded.filter(pl.Series(in_mixed_runs(coded["gtin"].to_numpy(), coded["platform"].to_physical().to_numpy())))


def _placed(releases: pl.DataFrame, tracks: Frames) -> pl.DataFrame:
    """What tracks stand on which places of these releases: record, platform, place."""
    place = pl.col("gtin") * (1 << DISC_BITS + TRACK_BITS) + pl.col("spot")
    # That two names share a number (1 in 2^64) makes a pair that the guards throw out.
    found = [rows.join(releases, on="release").select("record", "platform", place=place) for rows in _gathered(tracks())]
    none = pl.DataFrame(schema={"record": pl.UInt64, "platform": PLATFORM, "place": pl.Int64})
    return pl.concat([none, *found])


def _contested(placed: pl.DataFrame, members: Frames) -> pl.DataFrame:
    placed = placed.filter(pl.col("place").is_duplicated())
    standing = pl.concat([placed.join(_of(placed, rows), on="record").drop("record") for rows in _gathered(members())])
    standing = standing[standing["place"].arg_sort()]
    several = in_mixed_runs(standing["place"].to_numpy(), standing["atom_id"].to_numpy())
    return standing.filter(pl.Series(several)).select("place", pl.col("platform").cast(pl.String), "atom_id").unique()


def _of(placed: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Of members, if few are placed, those: to ask each takes a third of the time that a join does."""
    return members.filter(pl.col("record").is_in(placed["record"].implode())) if placed.height < MOST_FEW * members.height else members


def _gathered(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Frames of numbers, put together until they hold ROWS_AT_A_TIME: for each, all places are looked through."""
    held: list[pl.DataFrame] = []
    for frame in frames:
        held.append(frame)
        if sum(rows.height for rows in held) >= ROWS_AT_A_TIME:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)
