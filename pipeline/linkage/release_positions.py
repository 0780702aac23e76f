"""Positions on releases: a barcode, a disc and a track number name one position, whichever platform lists it.

All releases and tracks are read, as numbers. Only contested positions are kept, those with several atoms: on most positions all platforms
have records of one atom. Out of scope: what two records in one position mean (position_edges.py); how a night reuses known
positions (incremental/position_changes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import GOLDEN
from catalog_store.record_keys.place_numbers import DISC_BITS, TRACK_BITS
from pipeline.linkage.sorted_runs import SUM_BITS, find_repeated, mark_known, mark_mixed_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    Frames = Callable[[], Iterable[pl.DataFrame]]

ROWS_AT_A_TIME = 10_000_000
"""Tracks, or members: 180 MB."""
MOST_FEW = 0.05
"""Share of members below which a lookup beats a join."""
PLATFORM = pl.Enum(CATALOG_PLATFORMS)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""Odd: barcodes of one publisher are side by side."""
_HALF = np.uint64(32)


class Positions(NamedTuple):
    """Contested positions of a build, and the sums by which the next night finds the barcodes that changed.

    `contested`: place (the number of a position), platform, atom_id, distinct, sorted: of the positions with several atoms.
    `sums`: over all releases, in slots by their barcode, and over all tracks, in slots by their release.
    `judged`: a, b, score of pairs of atoms with a verdict of the guards, rejected ones without score: atoms never change.
    """

    contested: pl.DataFrame
    sums: npt.NDArray[np.uint64]
    judged: pl.DataFrame


CODED_SCHEMA = pl.Schema({"release": pl.UInt64(), "gtin": pl.Int64(), "platform": PLATFORM})
CONTESTED_SCHEMA = pl.Schema({"place": pl.Int64(), "platform": pl.String(), "atom_id": pl.Int64()})
NOT_JUDGED = pl.DataFrame(schema={"a": pl.Int64, "b": pl.Int64, "score": pl.Float64})
NO_POSITIONS = Positions(CONTESTED_SCHEMA.to_frame(), np.zeros((2, 1 << SUM_BITS), dtype=np.uint64), NOT_JUDGED)


def find_positions(releases: Frames, tracks: Frames, members: Frames, buckets: int = 1) -> Positions:
    """Return the contested positions of these releases; no pair is judged yet.

    Args:
        releases: yields release, gtin (as `place_numbers.select_barcoded`) and platform (PLATFORM) of all releases.
        tracks: yields release, record, spot (as `place_numbers.select_placed`) of all tracks.
        members: yields record (as `numbers.record_number`), atom_id of all members of atoms.
        buckets: parts into which the barcodes are cut; tracks and members are read once for each.
    """
    # Releases are held, because each bucket needs them; tracks are read again for each, because they are too many.
    coded = [CODED_SCHEMA.to_frame(), *releases()]
    sums = sum_positions(coded, tracks(), buckets)
    rows = [CONTESTED_SCHEMA.to_frame(), *find_contested_rows(coded, tracks, members, buckets)]
    return Positions(pl.concat(rows).sort("place", "platform", "atom_id"), sums, NOT_JUDGED)


def find_contested_rows(coded: list[pl.DataFrame], tracks: Frames, members: Frames, buckets: int) -> Iterator[pl.DataFrame]:
    """Yield rows of CONTESTED_SCHEMA of these releases (CODED_SCHEMA), a bucket of barcodes at a time."""
    for bucket in range(buckets):
        # Only positions of several platforms are evidence.
        shared = _filter_shared_barcodes(pl.concat([frame.filter(pl.col("gtin") % buckets == bucket) for frame in coded]))
        yield _find_contested(_place_tracks(shared, tracks), members)


def sum_positions(coded: list[pl.DataFrame], tracks: Iterable[pl.DataFrame], buckets: int) -> npt.NDArray[np.uint64]:
    """Return `Positions.sums`. Each row is hashed whole, or two tracks that swap their positions would leave the sum as it is."""
    sums = np.zeros((2, buckets << SUM_BITS), dtype=np.uint64)
    for frame in coded:
        # Only sums are kept, and addition has no order: frames may come in any.
        rows = frame.select((pl.col("release") + pl.col("gtin").reinterpret(signed=False) * GOLDEN).hash()).to_series()
        np.add.at(sums[0], find_sum_slots(frame["gtin"], sums.shape[1]), rows.to_numpy())
    for frame in tracks:
        rows = frame.select((pl.col("release") * GOLDEN + pl.col("record") + pl.col("spot")).hash()).to_series()
        np.add.at(sums[1], find_sum_slots(frame["release"], sums.shape[1]), rows.to_numpy())
    return sums


def find_sum_slots(numbers: pl.Series, slots: int) -> npt.NDArray[np.intp]:
    """Return the slot, 0..slots-1, in which each number is summed."""
    return ((numbers.to_numpy().view(np.uint64) * _SPREAD >> _HALF) * np.uint64(slots) >> _HALF).astype(np.intp)


def _filter_shared_barcodes(coded: pl.DataFrame) -> pl.DataFrame:
    """Return the releases whose barcode several platforms give."""
    coded = coded[coded["gtin"].arg_sort()]
    return coded.filter(pl.Series(mark_mixed_runs(coded["gtin"].to_numpy(), coded["platform"].to_physical().to_numpy())))


def _place_tracks(releases: pl.DataFrame, tracks: Frames) -> pl.DataFrame:
    """Return record, platform, place of the tracks of these releases."""
    place = pl.col("gtin") * (1 << DISC_BITS + TRACK_BITS) + pl.col("spot")
    # Two names share a number once in 2^64; the guards reject the pair.
    found = [rows.join(releases, on="release").select("record", "platform", place=place) for rows in _merge_frames(tracks())]
    none = pl.DataFrame(schema={"record": pl.UInt64, "platform": PLATFORM, "place": pl.Int64})
    return pl.concat([none, *found])


def _find_contested(placed: pl.DataFrame, members: Frames) -> pl.DataFrame:
    # A position with one record has one atom.
    placed = placed.filter(mark_known(placed["place"], find_repeated([placed["place"].to_numpy()])))
    standing = pl.concat([placed.join(_filter_placed(placed, rows), on="record").drop("record") for rows in _merge_frames(members())])
    # Sorted by position, one comparison with the next row finds several atoms, where a group-by would build every
    # group.
    standing = standing[standing["place"].arg_sort()]
    several = mark_mixed_runs(standing["place"].to_numpy(), standing["atom_id"].to_numpy())
    return standing.filter(pl.Series(several)).select("place", pl.col("platform").cast(pl.String), "atom_id").unique()


def _filter_placed(placed: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the members that are in a position, if they are few: a lookup takes a third of the time of a join. Else all."""
    return members.filter(pl.col("record").is_in(placed["record"].implode())) if placed.height < MOST_FEW * members.height else members


def _merge_frames(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield frames of at least ROWS_AT_A_TIME: all positions are searched once for each."""
    held: list[pl.DataFrame] = []
    for frame in frames:
        held.append(frame)
        if sum(rows.height for rows in held) >= ROWS_AT_A_TIME:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)
