"""Records that agree on lead artist, title, variant and (within seconds) duration: atoms, the units that edges join.

A pure function of one bucket of normalised records; a known artist never straddles buckets. Durations are cut where neighbours lie further
apart than GAP_MS, and chains longer than SPAN_MS are cut again. A record without duration joins when its key leaves no choice: one atom, or
one that shares its ISRC, or one that outweighs the others by DOMINANCE; else it waits in an atom of its own for an edge.

An atom's id is made of its bucket (the first BUCKET_BITS of the hash of its artist) and a hash of its smallest source key. So it depends on
nothing but the atom: the same for any number of buckets, and from night to night for whoever was not touched.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import polars as pl

from catalog_store.tables import TABLES

GAP_MS = 4_000
"""Platforms of one recording differ by encoder delay, trailing silence and whole seconds: up to 3 s in real quadruples, 4 with jitter."""
SPAN_MS = 10_000
DOMINANCE = 0.8
"""Share of a key's records with duration that one atom must hold to take in those without."""

BUCKET_BITS, HASH_BITS = 16, 47
"""Of an atom id. Two atoms of 90 million share an id with a chance of 1 in 4,000."""
ATOM_SEED = b""
"""Another value gives every atom another id: the way out of such a collision."""

_KEY = ["artist_hash", "artist_key", "title_key", "variant", "salt"]


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

    ValueError when two atoms get the same id (see ATOM_SEED).
    """
    rows = _keyed(records)
    timed = _cut_by_duration(rows.filter(pl.col("duration_ms").is_not_null()))
    rows = pl.concat([timed, _place_untimed(rows.filter(pl.col("duration_ms").is_null()), timed)])
    if moves is not None:
        rows = _moved(rows, moves)
    rows = rows.join(_named(rows), on=["group", "part"], how="left", maintain_order="left").sort("atom_id", maintain_order=True)
    return Atoms(_atom_rows(rows), rows.select(TABLES["atom_member"].column_names), _isrc_rows(rows))


def _moved(rows: pl.DataFrame, moves: pl.DataFrame) -> pl.DataFrame:
    """Give the records that leave a `part` of their own, below all others."""
    apart = moves.select("platform", "external_id", own=-(1 << 40) - pl.struct("atom_id", "part").rank("dense").cast(pl.Int64))
    rows = rows.join(apart, on=["platform", "external_id"], how="left", maintain_order="left")
    return rows.with_columns(part=pl.coalesce("own", "part")).drop("own")


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


def _named(rows: pl.DataFrame) -> pl.DataFrame:
    """Atom ids of (group, part)."""
    first = rows.group_by("group", "part").agg(pl.col("artist_hash").first(), pl.col("source").min())
    hashes = [int.from_bytes(blake2b(text.encode(), digest_size=8, key=ATOM_SEED).digest()) >> (64 - HASH_BITS) for text in first["source"]]
    prefix = (pl.col("artist_hash") // (1 << (32 - BUCKET_BITS))).cast(pl.Int64) * (1 << HASH_BITS)
    named = first.select("group", "part", atom_id=prefix + pl.Series(hashes, dtype=pl.Int64))
    if named["atom_id"].n_unique() < named.height:
        raise ValueError("two atoms have one id: give ATOM_SEED in pipeline/linkage/atoms.py another value and build again")
    return named


def _keyed(records: pl.DataFrame) -> pl.DataFrame:
    """Number the keys. A record without a known artist shares a key only with those that share its first ISRC."""
    salt = pl.when(pl.col("artist_key") == "").then(stand_in_artist()).otherwise(pl.lit(""))
    rows = records.with_columns(source=source_key(), salt=salt)
    rows = rows.sort(*_KEY, "duration_ms", "source", nulls_last=True)
    starts = pl.any_horizontal(pl.col(name) != pl.col(name).shift(1) for name in _KEY).fill_null(value=True)
    return rows.with_columns(group=starts.cum_sum().cast(pl.Int64))


def _cut_by_duration(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `part`, the number of the atom inside the key; rows come sorted by key and duration."""
    new_key = (pl.col("group") != pl.col("group").shift(1)).fill_null(value=True)
    gap = pl.col("duration_ms") - pl.col("duration_ms").shift(1) > GAP_MS
    rows = rows.with_columns(part=(new_key | gap.fill_null(value=False)).cum_sum().cast(pl.Int64))
    extent = pl.col("duration_ms") - pl.col("duration_ms").min().over("part")
    rows = rows.with_columns(slot=extent // SPAN_MS)
    new_slot = ((pl.col("slot") != pl.col("slot").shift(1)) | (pl.col("part") != pl.col("part").shift(1))).fill_null(value=True)
    return rows.with_columns(part=new_slot.cum_sum().cast(pl.Int64)).drop("slot")


def _place_untimed(rows: pl.DataFrame, timed: pl.DataFrame) -> pl.DataFrame:
    """Add `part` to the records without duration; negative parts are atoms of their own."""
    sizes = timed.group_by("group", "part").agg(held=pl.len())
    of_group = sizes.group_by("group").agg(
        largest=pl.col("part").sort_by(["held", "part"], descending=[True, False]).first(),
        share=pl.col("held").max() / pl.col("held").sum(),
    )
    codes = timed.select("group", "part", isrc="isrcs").explode("isrc", empty_as_null=False).drop_nulls().unique()
    by_code = (
        rows.select("source", "group", isrc="isrcs").explode("isrc", empty_as_null=False).drop_nulls().join(codes, on=["group", "isrc"])
    )
    by_code = by_code.group_by("source").agg(coded=pl.col("part").first(), choices=pl.col("part").n_unique()).filter(pl.col("choices") == 1)
    placed = rows.join(of_group, on="group", how="left").join(by_code.select("source", "coded"), on="source", how="left")
    dominant = pl.when(pl.col("share") >= DOMINANCE).then("largest")
    alone = placed.select(waits=pl.when(pl.col("largest").is_not_null()).then(pl.col("isrcs").list.first())).to_series()
    placed = placed.with_columns(waits=alone).with_columns(waiting=-(pl.struct("group", "waits").rank("dense").cast(pl.Int64)))
    return placed.with_columns(part=pl.coalesce("coded", dominant, "waiting")).select(*rows.columns, "part")


def _atom_rows(rows: pl.DataFrame) -> pl.DataFrame:
    names = rows.select("atom_id", name="names").explode("name", empty_as_null=False).drop_nulls().unique()
    gathered = names.sort("atom_id", "name").group_by("atom_id", maintain_order=True).agg(names="name")
    atoms = rows.group_by("atom_id", maintain_order=True).agg(
        pl.col("artist_key", "title_key", "variant").first(),
        pl.col("stem_key", "number_key").min(),
        duration_ms=pl.col("duration_ms").median().round().cast(pl.Int32),
        record_count=pl.len(),
        platform_count=pl.col("platform").n_unique(),
    )
    atoms = atoms.join(gathered, on="atom_id", how="left", maintain_order="left").with_columns(pl.col("names").fill_null([]))
    return TABLES["atom"].conform(atoms)


def _isrc_rows(rows: pl.DataFrame) -> pl.DataFrame:
    claims = rows.select("atom_id", "platform", isrc="isrcs").explode("isrc", empty_as_null=False).drop_nulls()
    counted = claims.group_by("isrc", "atom_id", "platform").agg(records=pl.len()).sort("atom_id", "isrc", "platform")
    counted = counted.group_by("isrc", "atom_id", maintain_order=True).agg(platforms="platform", record_count=pl.col("records").sum())
    return TABLES["atom_isrc"].conform(counted)
