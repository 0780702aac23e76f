"""Owners of codes that several recordings claim, and the guard that kept the other claimants apart.

Support decides: platforms, then records, then the smallest recording id. The other claimants are in `isrc_conflict` with the first guard
that they failed against the owner; `outvoted` if they failed none and yet no chain of evidence joined them.
"""

from __future__ import annotations

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.guards import add_compared_columns, add_verdict


def assign_isrc_owners(claims: pl.DataFrame, atoms: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return tables `isrc_owner` and `isrc_conflict`.

    Args:
        claims: isrc, atom_id, platforms, record_count (rows of `atom_isrc`) with the recording_id of each atom.
        atoms: rows of `atom`, at least those that claim a contested code.
    """
    is_contested = claims["isrc"].is_duplicated()
    contested = claims.filter(is_contested)
    support = _rank_claims(contested)
    # Sorted by support, the first row of each code is its owner.
    is_owner = (pl.col("isrc") != pl.col("isrc").shift(1)).fill_null(value=True)
    support = support.with_columns(owner_recording_id=pl.when(is_owner).then("recording_id").forward_fill())
    lost = support.filter(pl.col("recording_id") != pl.col("owner_recording_id"))
    # Nearly all codes are on one atom: they need neither sums nor a sort.
    alone = claims.filter(~is_contested).with_columns(platform_count=pl.col("platforms").list.len().cast(pl.Int64))
    columns = TABLES["isrc_owner"].column_names
    owners = [alone.select(columns), support.filter(pl.col("recording_id") == pl.col("owner_recording_id")).select(columns)]
    owner = pl.concat([TABLES["isrc_owner"].conform(frame) for frame in owners]).sort("isrc")
    return owner, _explain_conflicts(lost.drop("platform_count"), contested, atoms)


def _rank_claims(claims: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each code and recording, best supported first: isrc, recording_id, record_count, platforms, platform_count."""
    # Two atoms of a recording may both have a record of one platform; it counts once.
    voices = claims.select("isrc", "recording_id", platform="platforms").explode("platform", empty_as_null=False).unique()
    platforms = voices.group_by("isrc", "recording_id").agg(platforms=pl.col("platform").sort())
    support = claims.group_by("isrc", "recording_id").agg(pl.col("record_count").sum()).join(platforms, on=["isrc", "recording_id"])
    support = support.with_columns(platform_count=pl.col("platforms").list.len().cast(pl.Int64))
    return support.sort("isrc", -pl.col("platform_count"), -pl.col("record_count").cast(pl.Int64), "recording_id")


def _explain_conflicts(lost: pl.DataFrame, claims: pl.DataFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    contested = claims.join(lost.select("isrc").unique(), on="isrc", how="semi")
    most = (-pl.col("platforms").list.len().cast(pl.Int64), -pl.col("record_count").cast(pl.Int64))
    # One atom speaks for each side: the best-supported one that carries the code.
    representatives = contested.sort("isrc", "recording_id", *most, "atom_id").unique(
        ["isrc", "recording_id"], keep="first", maintain_order=True
    )
    representatives = representatives.select("isrc", "recording_id", "atom_id")
    pairs = lost.join(representatives.rename({"atom_id": "a"}), on=["isrc", "recording_id"])
    pairs = pairs.join(representatives.rename({"atom_id": "b", "recording_id": "owner_recording_id"}), on=["isrc", "owner_recording_id"])
    judged = add_verdict(add_compared_columns(pairs, atoms)).with_columns(pl.col("reason").fill_null("outvoted"))
    return TABLES["isrc_conflict"].conform(judged.select(TABLES["isrc_conflict"].column_names).sort("isrc", "recording_id"))
