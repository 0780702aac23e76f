"""Records that agree on lead artist, title, variant and (within seconds) duration: atoms, the units that edges join.

A pure function of one bucket of normalised records; artists never straddle buckets. Durations are cut where neighbours lie further apart
than GAP_MS, and chains longer than SPAN_MS are cut again. A record without duration joins when its key leaves no choice: one atom, or one
that shares its ISRC, or one that outweighs the others by DOMINANCE; else it waits in an atom of its own for an edge.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from catalog_store.tables import TABLES

GAP_MS = 4_000
"""Platforms of one recording differ by encoder delay, trailing silence and whole seconds: up to 3 s in real quadruples, 4 with jitter."""
SPAN_MS = 10_000
DOMINANCE = 0.8
"""Share of a key's records with duration that one atom must hold to take in those without."""

_AFTER_TIMED = (1 << 62) - 1
_KEY = ["artist_hash", "artist_key", "title_key", "variant", "salt"]


class Atoms(NamedTuple):
    """Tables `atom`, `atom_member` and `atom_isrc` of one bucket, each in its declared order."""

    atom: pl.DataFrame
    member: pl.DataFrame
    isrc: pl.DataFrame


def make_atoms(records: pl.DataFrame, first_id: int) -> Atoms:
    """Atoms of one bucket of normalised records, numbered from `first_id` in the order of (artist hash, key, duration)."""
    rows = _keyed(records)
    timed = _cut_by_duration(rows.filter(pl.col("duration_ms").is_not_null()))
    rows = pl.concat([timed, _place_untimed(rows.filter(pl.col("duration_ms").is_null()), timed)])
    rows = rows.join(_numbered(rows, first_id), on=["group", "part"], how="left", maintain_order="left").sort(
        "atom_id", maintain_order=True
    )
    return Atoms(_atom_rows(rows), rows.select(TABLES["atom_member"].column_names), _isrc_rows(rows))


def _numbered(rows: pl.DataFrame, first_id: int) -> pl.DataFrame:
    """Atom ids of (group, part): keys in order, inside a key by duration, atoms without any duration last, by their smallest source."""
    timed = pl.col("part") > 0
    with_duration = rows.filter(timed).select("group", "part").unique().with_columns(place="part", first=pl.lit(""))
    without = rows.filter(~timed).group_by("group", "part").agg(place=pl.lit(_AFTER_TIMED, pl.Int64).first(), first=pl.col("source").min())
    order = pl.concat([with_duration, without]).sort("group", "place", "first")
    return order.select("group", "part", atom_id=pl.int_range(pl.len(), dtype=pl.Int64) + first_id)


def _keyed(records: pl.DataFrame) -> pl.DataFrame:
    """Number the keys. A record without a known artist shares a key only with those that share its first ISRC."""
    source = pl.concat_str("platform", pl.lit(":"), "external_id")
    lone = pl.coalesce(pl.col("isrcs").list.first(), source)
    rows = records.with_columns(source=source, salt=pl.when(pl.col("artist_key") == "").then(lone).otherwise(pl.lit("")))
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
