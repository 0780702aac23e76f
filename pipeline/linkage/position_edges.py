"""Edges from release positions: records of several platforms that stand in one place (disc, track) of releases with one barcode.

A barcode names a product and a place on it names a recording, whatever its title is spelt like and whichever code it carries there. But
barcodes are mistyped and reused, and some platforms number otherwise: names must agree as for a shared code, durations as closely as for a
typing error. A platform that has several records in one place says nothing about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from pipeline.linkage.guards import TYPO_DURATION_MS, compared, duration_gap, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Frames = Callable[[], Iterable[pl.DataFrame]]

DISC_BITS, TRACK_BITS = 6, 10
"""Of a place, behind the barcode. No real release has more discs or tracks; what claims to is no evidence."""
_PLATFORM = pl.Enum(CATALOG_PLATFORMS)
NO_PLACES = pl.DataFrame(schema={"place": pl.String, "platform": pl.String, "atom_id": pl.Int64})


def contested_places(releases: Frames, tracks: Frames, members: Frames, buckets: int = 1) -> pl.DataFrame:
    """Places on which several atoms stand: place (text for a reader), platform, atom_id, sorted; most places hold one already.

    Args:
        releases: gives the rows of `source_release` (platform, release_id, gtin), in frames.
        tracks: those of `source_release_track` (platform, release_id, external_id, disc_number, track_number).
        members: those of `atom_member` (platform, external_id, atom_id).
        buckets: into how many parts the barcodes are cut; tracks and members are read once for each.
    """
    coded = pl.concat([_coded(frame) for frame in releases()])
    told_twice = coded.group_by("gtin").agg(one=pl.col("platform").min(), other=pl.col("platform").max())
    shared = coded.join(told_twice.filter(pl.col("one") != pl.col("other")), on="gtin", how="semi").drop("platform")
    found = [_contested(shared.filter(pl.col("gtin") % buckets == bucket), tracks, members) for bucket in range(buckets)]
    return pl.concat(found).sort("place", "platform", "atom_id")


def _coded(releases: pl.DataFrame) -> pl.DataFrame:
    known = releases.filter(pl.col("gtin").is_not_null())
    return known.select(release=_named("release_id"), gtin=pl.col("gtin").cast(pl.Int64), platform=pl.col("platform").cast(_PLATFORM))


def _named(column: str) -> pl.Expr:
    """A number for the id of a platform's entity; that two share one (1 in 2^64) makes a pair that the guards throw out."""
    return pl.col("platform").hash() * pl.lit(0x9E3779B97F4A7C15, dtype=pl.UInt64) + pl.col(column).hash()


def _contested(releases: pl.DataFrame, tracks: Frames, members: Frames) -> pl.DataFrame:
    disc, track = pl.col("disc_number").fill_null(1).cast(pl.Int64), pl.col("track_number").cast(pl.Int64)
    numbered = disc.is_between(0, (1 << DISC_BITS) - 1) & track.is_between(0, (1 << TRACK_BITS) - 1)
    spot = pl.when(numbered).then(disc * (1 << TRACK_BITS) + track)
    place = pl.col("gtin") * (1 << DISC_BITS + TRACK_BITS) + pl.col("spot")
    placed = pl.concat(
        [
            frame.select(release=_named("release_id"), record=_named("external_id"), spot=spot)
            .drop_nulls("spot")
            .join(releases, on="release")
            .select("record", place=place)
            for frame in tracks()
        ]
    )
    placed = placed.filter(pl.col("place").is_duplicated())
    standing = pl.concat(
        [
            placed.join(
                frame.select("atom_id", record=_named("external_id"), platform=pl.col("platform").cast(_PLATFORM)), on="record"
            ).drop("record")
            for frame in members()
        ]
    )
    several = standing.group_by("place").agg(one=pl.col("atom_id").min(), other=pl.col("atom_id").max())
    several = several.filter(pl.col("one") != pl.col("other")).select("place")
    return standing.join(several, on="place", how="semi").select(_place_text(), pl.col("platform").cast(pl.String), "atom_id").unique()


def _place_text() -> pl.Expr:
    place, track = pl.col("place") // (1 << TRACK_BITS), pl.col("place") % (1 << TRACK_BITS)
    gtin = (place // (1 << DISC_BITS)).cast(pl.String).str.zfill(14)
    return pl.format("{} {}-{}", gtin, place % (1 << DISC_BITS), track).alias("place")


def position_edges(atoms: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Guarded edges of kind `position`, not sorted; an atom pair stands once.

    Args:
        atoms: rows of `atom`, at least those in the places.
        places: place (text for a reader), platform, atom_id; any subset that holds all rows of each of its places.
    """
    told = places.unique().filter(pl.len().over("place", "platform") == 1)
    support = told.group_by("place", "atom_id").agg(platforms=pl.len())
    support = support.sort("place", -pl.col("platforms").cast(pl.Int64), "atom_id")
    support = support.with_columns(best=pl.col("atom_id").first().over("place")).filter(pl.col("best") != pl.col("atom_id"))
    pairs = support.select(a=pl.min_horizontal("best", "atom_id"), b=pl.max_horizontal("best", "atom_id"), evidence="place")
    pairs = pairs.sort("a", "b", "evidence").unique(["a", "b"], keep="first", maintain_order=True)
    near = (duration_gap() <= TYPO_DURATION_MS).fill_null(value=True)
    passed = verdict(compared(pairs, atoms)).filter(pl.col("reason").is_null(), near)
    return TABLES["edge"].conform(passed.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("position"), score="score", evidence="evidence"))
