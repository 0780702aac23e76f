"""Records that agree on lead artist, title, variant and (within seconds) duration: atoms, the units that edges join.

A pure function of one bucket of normalised records; a known artist never straddles buckets. Durations are cut where neighbours lie further
apart than GAP_MS, and chains longer than SPAN_MS are cut again. A record without duration joins when its key leaves no choice: one atom, or
one that shares its ISRC, or one that outweighs the others by DOMINANCE; else it waits in an atom of its own for an edge. Namesakes whom a
platform tells apart are parted (namesakes.py).

An atom's id is made of its bucket (the first BUCKET_BITS of the hash of its artist) and the smallest hash of a member's name. So it depends
on nothing but the atom: the same for any number of buckets, and from night to night for whoever was not touched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from pipeline.linkage.namesakes import part_namesakes

GAP_MS = 4_000
"""Platforms of one recording differ by encoder delay, trailing silence and whole seconds: up to 3 s in real quadruples, 4 with jitter."""
SPAN_MS = 10_000
DOMINANCE = 0.8
"""Share of a key's records with duration that one atom must hold to take in those without."""

BUCKET_BITS, HASH_BITS = 16, 47
"""Of an atom id. Two atoms of 90 million share an id with a chance of 1 in 4,000."""
ATOM_SEED = 0
"""Another value gives every atom another id: the way out of such a collision."""

NO_DURATION = (1 << 31) - 1
"""Stands for an unknown duration while rows are sorted: a sort that minds nulls costs six times as much."""

_KEY = ["artist_key", "title_key", "variant"]
_PLATFORM_BIT = pl.col("platform").replace_strict(
    {platform: 1 << place for place, platform in enumerate(CATALOG_PLATFORMS)}, return_dtype=pl.UInt8
)


class Atoms(NamedTuple):
    """Tables `atom`, `atom_member` and `atom_isrc` of one bucket, each in its declared order."""

    atom: pl.DataFrame
    member: pl.DataFrame
    isrc: pl.DataFrame


def make_atoms(records: pl.DataFrame, moves: pl.DataFrame | None = None) -> Atoms:
    """Atoms of normalised records.

    Args:
        records: as `normalise` gives; all records of each (artist key, title key, variant) that is among them.
        moves: platform, external_id, atom_id, part (as `overrides.apart` gives): records that leave their atom, one new atom for each part.

    ValueError when two keys or two atoms have one hash (see ATOM_SEED).
    """
    placed = part_namesakes(_placed(_numbers(records), records["isrcs"]), records)
    if moves is not None:
        placed = _moved(placed, records, moves)
    placed = _named(placed).sort("atom_id", "name_hash").set_sorted("atom_id")
    by_row = np.empty(placed.height, dtype=np.int64)
    by_row[placed["row"].to_numpy()] = placed["atom_id"].to_numpy()
    rows = records.with_columns(atom_id=pl.Series(by_row))
    member = rows.select(pl.col(TABLES["atom_member"].column_names).gather(placed["row"]))
    return Atoms(_atom_rows(rows, placed), member, _isrc_rows(rows))


def _numbers(records: pl.DataFrame) -> pl.DataFrame:
    """What places a record, in numbers, because strings cost ten times as much to sort.

    row, key and check (two hashes of the key), name_hash, artist_hash, duration_ms (unknown: NO_DURATION). A record without a known artist
    shares a key only with those that share its first ISRC.
    """
    salt = pl.when(pl.col("artist_key") == "").then(stand_in_artist()).otherwise(pl.lit(""))
    return records.with_columns(salt=salt).select(
        "artist_hash",
        pl.col("duration_ms").fill_null(NO_DURATION),
        row=pl.int_range(pl.len(), dtype=pl.UInt32),
        key=_combined([*_KEY, "salt"], ATOM_SEED),
        check=_combined([*_KEY, "salt"], ATOM_SEED + 1),
        name_hash=_combined(["platform", "external_id"], ATOM_SEED),
    )


def _combined(columns: list[str], seed: int) -> pl.Expr:
    """A 64-bit hash over several columns."""
    found = pl.lit(seed, dtype=pl.UInt64)
    for column in columns:
        found = found * pl.lit(0x9E3779B97F4A7C15, dtype=pl.UInt64) + pl.col(column).hash(seed)
    return found


def _placed(numbers: pl.DataFrame, isrcs: pl.Series) -> pl.DataFrame:
    """Add `part`: rows of one part are one atom. `isrcs`: the codes of each `row`."""
    numbers = numbers.sort("key", "duration_ms")
    timed = _cut_by_duration(numbers.filter(pl.col("duration_ms") != NO_DURATION))
    return pl.concat([timed, _place_untimed(numbers.filter(pl.col("duration_ms") == NO_DURATION), timed, isrcs)])


def _moved(placed: pl.DataFrame, records: pl.DataFrame, moves: pl.DataFrame) -> pl.DataFrame:
    """Give the records that leave a `part` of their own, below all others."""
    rows = records.select("platform", "external_id", row=pl.int_range(pl.len(), dtype=pl.UInt32)).join(
        moves, on=["platform", "external_id"]
    )
    apart = rows.select("row", own=-(1 << 40) - pl.struct("atom_id", "part").rank("dense").cast(pl.Int64))
    return placed.join(apart, on="row", how="left", maintain_order="left").with_columns(part=pl.coalesce("own", "part")).drop("own")


def _named(placed: pl.DataFrame) -> pl.DataFrame:
    """Add `atom_id`."""
    prefix = (pl.col("artist_hash") // (1 << (32 - BUCKET_BITS))).cast(pl.Int64).first() * (1 << HASH_BITS)
    tail = (pl.col("name_hash").min() // (1 << (64 - HASH_BITS))).cast(pl.Int64)
    ids = placed.group_by("part").agg(atom_id=prefix + tail, is_one=pl.col("check").min() == pl.col("check").max())
    if not ids["is_one"].all() or ids["atom_id"].n_unique() < ids.height:
        raise ValueError("two keys or two atoms have one hash: give ATOM_SEED in pipeline/linkage/atoms.py another value and build again")
    return placed.join(ids.drop("is_one"), on="part", how="left", maintain_order="left")


def bucket_range(bucket: int, buckets: int) -> tuple[int, int]:
    """The smallest and the largest atom id of bucket 0..buckets-1: all buckets in order hold the same rows for any number of them."""
    first, behind = (-(-(number << BUCKET_BITS) // buckets) for number in (bucket, bucket + 1))
    return first << HASH_BITS, (behind << HASH_BITS) - 1


def source_key() -> pl.Expr:
    """The record's name over all platforms, `<platform>:<external id>`."""
    return pl.concat_str("platform", pl.lit(":"), "external_id")


def stand_in_artist() -> pl.Expr:
    """What keeps records without a known artist apart: their first ISRC, else the record itself."""
    return pl.coalesce(pl.col("isrcs").list.first(), source_key())


def _cut_by_duration(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `part`, the number of the atom; rows come sorted by key and duration."""
    new_key = (pl.col("key") != pl.col("key").shift(1)).fill_null(value=True)
    gap = pl.col("duration_ms") - pl.col("duration_ms").shift(1) > GAP_MS
    rows = rows.with_columns(part=(new_key | gap.fill_null(value=False)).cum_sum().cast(pl.Int64))
    extent = pl.col("duration_ms") - pl.col("duration_ms").min().over("part")
    rows = rows.with_columns(slot=extent // SPAN_MS)
    new_slot = ((pl.col("slot") != pl.col("slot").shift(1)) | (pl.col("part") != pl.col("part").shift(1))).fill_null(value=True)
    return rows.with_columns(part=new_slot.cum_sum().cast(pl.Int64)).drop("slot")


def _place_untimed(rows: pl.DataFrame, timed: pl.DataFrame, isrcs: pl.Series) -> pl.DataFrame:
    """Add `part` to the records without duration; negative parts are atoms of their own."""
    beside = timed.join(rows, on="key", how="semi")
    rows, beside = (numbers.with_columns(isrcs=isrcs.gather(numbers["row"])) for numbers in (rows, beside))
    sizes = beside.group_by("key", "part").agg(held=pl.len())
    of_key = sizes.group_by("key").agg(
        largest=pl.col("part").sort_by(["held", "part"], descending=[True, False]).first(),
        share=pl.col("held").max() / pl.col("held").sum(),
    )
    codes = beside.select("key", "part", isrc="isrcs").explode("isrc", empty_as_null=False).drop_nulls().unique()
    by_code = rows.select("row", "key", isrc="isrcs").explode("isrc", empty_as_null=False).drop_nulls().join(codes, on=["key", "isrc"])
    by_code = by_code.group_by("row").agg(coded=pl.col("part").first(), choices=pl.col("part").n_unique()).filter(pl.col("choices") == 1)
    placed = rows.join(of_key, on="key", how="left").join(by_code.select("row", "coded"), on="row", how="left")
    dominant = pl.when(pl.col("share") >= DOMINANCE).then("largest")
    alone = placed.select(waits=pl.when(pl.col("largest").is_not_null()).then(pl.col("isrcs").list.first())).to_series()
    placed = placed.with_columns(waits=alone).with_columns(waiting=-(pl.struct("key", "waits").rank("dense").cast(pl.Int64)))
    return placed.with_columns(part=pl.coalesce("coded", dominant, "waiting")).select(timed.columns)


def _atom_rows(rows: pl.DataFrame, placed: pl.DataFrame) -> pl.DataFrame:
    """Table `atom`. `placed`: the rows in numbers, sorted by atom. Strings are only touched once an atom: they are what costs."""
    numbers = rows.select(bit=_PLATFORM_BIT, form=_combined(["stem_key", "number_key"], ATOM_SEED), credit=pl.col("names").hash())
    atoms = (
        pl.concat([placed, numbers[placed["row"]]], how="horizontal")
        .with_columns(pl.col("duration_ms").replace(NO_DURATION, None))
        .group_by("atom_id", maintain_order=True)
        .agg(
            pl.col("row").first(),
            duration_ms=pl.col("duration_ms").median().round().cast(pl.Int32),
            record_count=pl.len(),
            platform_count=pl.col("bit").bitwise_or().bitwise_count_ones(),
            one_form=pl.col("form").min() == pl.col("form").max(),
            one_credit=pl.col("credit").min() == pl.col("credit").max(),
        )
    )
    keys = rows.select(pl.col("artist_key", "title_key", "variant", "stem_key", "number_key", "names").gather(atoms["row"]))
    atoms = pl.concat([atoms.drop("row"), keys], how="horizontal")
    for name, several in (("one_form", _smallest_forms), ("one_credit", _all_names)):
        mixed = atoms.filter(~pl.col(name))
        settled = several(rows.join(mixed.select("atom_id"), on="atom_id", how="semi"))
        atoms = pl.concat([atoms.filter(name), mixed.update(settled, on="atom_id")])
    atoms = atoms.sort("atom_id")
    return TABLES["atom"].conform(atoms.drop("one_form", "one_credit"))


def _smallest_forms(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("atom_id").agg(pl.col("stem_key", "number_key").min())


def _all_names(rows: pl.DataFrame) -> pl.DataFrame:
    """atom_id, names: whoever is credited on a member; sorted."""
    names = rows.select("atom_id", name="names").explode("name", empty_as_null=False).drop_nulls().unique()
    return names.sort("atom_id", "name").group_by("atom_id", maintain_order=True).agg(names="name")


def _isrc_rows(rows: pl.DataFrame) -> pl.DataFrame:
    claims = rows.select("atom_id", bit=_PLATFORM_BIT, isrc="isrcs").explode("isrc", empty_as_null=False).drop_nulls()
    claims = claims.with_columns(code=pl.col("isrc").hash())
    counted = claims.group_by("code", "atom_id").agg(pl.col("isrc").first(), pl.col("bit").bitwise_or(), record_count=pl.len())
    counted = counted.drop("code").sort("atom_id", "isrc")
    sets = {
        bits: sorted(name for place, name in enumerate(CATALOG_PLATFORMS) if bits >> place & 1)
        for bits in range(1 << len(CATALOG_PLATFORMS))
    }
    platforms = pl.DataFrame(
        {"bit": list(sets), "platforms": list(sets.values())}, schema={"bit": pl.UInt8, "platforms": pl.List(pl.String)}
    )
    return TABLES["atom_isrc"].conform(counted.join(platforms, on="bit", how="left", maintain_order="left").drop("bit"))
