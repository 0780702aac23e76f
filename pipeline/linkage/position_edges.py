"""Edges from release positions: records of several platforms that stand in one place (disc, track) of releases with one barcode.

A barcode names a product and a place on it names a recording, whatever its title is spelt like and whichever code it carries there. But
barcodes are mistyped and reused, and some platforms number otherwise: names must agree as for a shared code, durations as closely as for a
typing error. A platform that has several records in one place says nothing about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from pipeline.linkage.guards import TYPO_DURATION_MS, compared, duration_gap, verdict
from pipeline.linkage.normalise import record_number
from pipeline.linkage.runs import SUM_BITS, hashed, in_mixed_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    Frames = Callable[[], Iterable[pl.DataFrame]]

DISC_BITS, TRACK_BITS = 6, 10
"""Of a place, behind the barcode. No real release has more discs or tracks; what claims to is no evidence."""
ROWS_AT_A_TIME = 10_000_000
"""Members: 160 MB."""
_PLATFORM = pl.Enum(CATALOG_PLATFORMS)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""Odd: barcodes of one publisher lie side by side."""


class Places(NamedTuple):
    """What stands on the places of a build.

    `contested`: place (a number), platform, atom_id, distinct, sorted: of the places on which several atoms stand; most hold one already.
    `sums`: a row for each bucket of barcodes; over all that stands on places, contested or not (see `runs.in_differing_sums`).
    `judged`: a, b, score of pairs of atoms that the guards have been asked about, refused ones without score: atoms do not change.
    """

    contested: pl.DataFrame
    sums: npt.NDArray[np.uint64]
    judged: pl.DataFrame


CONTESTED_SCHEMA = pl.Schema({"place": pl.Int64(), "platform": pl.String(), "atom_id": pl.Int64()})
NOT_JUDGED = pl.DataFrame(schema={"a": pl.Int64, "b": pl.Int64, "score": pl.Float64})
NO_PLACES = Places(CONTESTED_SCHEMA.to_frame(), np.zeros((1, 1 << SUM_BITS), dtype=np.uint64), NOT_JUDGED)


class Before(NamedTuple):
    """What stood on the places of another build, and the numbers of the records whose atoms have come or gone since."""

    places: Places
    records: pl.Series


def contested_places(releases: Frames, tracks: Frames, members: Frames, buckets: int = 1, before: Before | None = None) -> Places:
    """What stands on places, without a judgement.

    Args:
        releases: gives the rows of `source_release` (platform, release_id, gtin), in frames.
        tracks: those of `source_release_track` (platform, release_id, external_id, disc_number, track_number).
        members: those of `atom_member` (record, as `normalise.record_number` gives, and atom_id).
        buckets: into how many parts the barcodes are cut; tracks and members are read once for each.
        before: if known, places on which nothing has changed since are taken over, which tells the same.
    """
    shared = _told_by_several(pl.concat([_coded(frame) for frame in releases()]))
    if before is not None and len(before.places.sums) != buckets:
        before = None
    rows, sums = [CONTESTED_SCHEMA.to_frame()], []
    for bucket in range(buckets):
        placed = _placed(shared.filter(pl.col("gtin") % buckets == bucket), tracks)
        slots = _slots(placed["place"])
        sums.append(np.zeros(1 << SUM_BITS, dtype=np.uint64))
        np.add.at(sums[-1], slots, placed.select(hashed(("place", "record"))).to_series().to_numpy())
        if before is not None:
            differ = sums[-1] != before.places.sums[bucket]
            known = before.places.contested.filter((pl.col("place") // (1 << DISC_BITS + TRACK_BITS)) % buckets == bucket)
            touched = pl.Series(differ[slots]) | placed["record"].is_in(before.records.implode())
            again = pl.col("place").is_in(placed["place"].filter(touched).unique().implode())
            rows.append(known.filter(pl.Series(~differ[_slots(known["place"])]), ~again))
            placed = placed.filter(again)
        rows.append(_contested(placed, members))
    return Places(pl.concat(rows).sort("place", "platform", "atom_id"), np.stack(sums), NOT_JUDGED)


def _slots(places: pl.Series) -> npt.NDArray[np.intp]:
    """Where among the sums a place is counted."""
    return (places.to_numpy().view(np.uint64) * _SPREAD >> np.uint64(64 - SUM_BITS)).astype(np.intp)


def _coded(releases: pl.DataFrame) -> pl.DataFrame:
    known = releases.filter(pl.col("gtin").is_not_null())
    return known.select(
        release=hashed(("platform", "release_id")), gtin=pl.col("gtin").cast(pl.Int64), platform=pl.col("platform").cast(_PLATFORM)
    )


def _told_by_several(coded: pl.DataFrame) -> pl.DataFrame:
    """The releases whose barcode several platforms give."""
    coded = coded[coded["gtin"].arg_sort()]
    return coded.filter(pl.Series(in_mixed_runs(coded["gtin"].to_numpy(), coded["platform"].to_physical().to_numpy())))


def _placed(releases: pl.DataFrame, tracks: Frames) -> pl.DataFrame:
    """What tracks stand on which places of these releases: record, platform, place."""
    disc, track = pl.col("disc_number").fill_null(1).cast(pl.Int64), pl.col("track_number").cast(pl.Int64)
    numbered = disc.is_between(0, (1 << DISC_BITS) - 1) & track.is_between(0, (1 << TRACK_BITS) - 1)
    spot = pl.when(numbered).then(disc * (1 << TRACK_BITS) + track)
    place = pl.col("gtin") * (1 << DISC_BITS + TRACK_BITS) + pl.col("spot")
    # That two names share a number (1 in 2^64) makes a pair that the guards throw out.
    return pl.concat(
        [
            frame.select(release=hashed(("platform", "release_id")), record=record_number(), spot=spot)
            .drop_nulls("spot")
            .join(releases.filter(pl.col("platform").is_in(frame["platform"].unique().implode())), on="release")
            .select("record", "platform", place=place)
            for frame in tracks()
        ]
    )


def _contested(placed: pl.DataFrame, members: Frames) -> pl.DataFrame:
    placed = placed.filter(pl.col("place").is_duplicated())
    standing = pl.concat([placed.join(frame, on="record").drop("record") for frame in _gathered(members(), ["record", "atom_id"])])
    standing = standing[standing["place"].arg_sort()]
    several = in_mixed_runs(standing["place"].to_numpy(), standing["atom_id"].to_numpy())
    return standing.filter(pl.Series(several)).select("place", pl.col("platform").cast(pl.String), "atom_id").unique()


def _gathered(frames: Iterable[pl.DataFrame], columns: list[str]) -> Iterator[pl.DataFrame]:
    """Frames of numbers, put together until they hold ROWS_AT_A_TIME: for each, all places are looked through."""
    held: list[pl.DataFrame] = []
    for frame in frames:
        held.append(frame.select(columns))
        if sum(rows.height for rows in held) >= ROWS_AT_A_TIME:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)


def _place_text() -> pl.Expr:
    place, track = pl.col("place") // (1 << TRACK_BITS), pl.col("place") % (1 << TRACK_BITS)
    gtin = (place // (1 << DISC_BITS)).cast(pl.String).str.zfill(14)
    return pl.format("{} {}-{}", gtin, place % (1 << DISC_BITS), track)


def position_pairs(contested: pl.DataFrame) -> pl.DataFrame:
    """Pairs of atoms on one place: a, b (once), evidence (the smallest place, for a reader).

    `contested`: as in Places; any subset that holds all rows of each of its places.
    """
    alone = contested.filter(pl.len().over("place", "platform") == 1)
    support = alone.group_by("place", "atom_id").agg(platforms=pl.len())
    support = support.sort("place", -pl.col("platforms").cast(pl.Int64), "atom_id")
    support = support.with_columns(best=pl.col("atom_id").first().over("place")).filter(pl.col("best") != pl.col("atom_id"))
    pairs = support.group_by(a=pl.min_horizontal("best", "atom_id"), b=pl.max_horizontal("best", "atom_id")).agg(pl.col("place").min())
    return pairs.select("a", "b", evidence=_place_text())


def judged(pairs: pl.DataFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    """a, b, score of each pair; no score where the guards refuse it. `atoms`: rows of `atom`, at least those in the pairs."""
    near = (duration_gap() <= TYPO_DURATION_MS).fill_null(value=True)
    return verdict(compared(pairs, atoms)).select("a", "b", score=pl.when(pl.col("reason").is_null() & near).then("score"))


def position_edges(pairs: pl.DataFrame, judged_: pl.DataFrame) -> pl.DataFrame:
    """Edges of kind `position`, not sorted: of `pairs`, as `position_pairs` gives and all judged, those that the guards let pass."""
    passed = pairs.join(judged_.drop_nulls("score"), on=["a", "b"])
    return TABLES["edge"].conform(passed.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("position"), score="score", evidence="evidence"))
