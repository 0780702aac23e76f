"""Which recording carries a code when several claim it, and what kept the others from being that recording.

Support decides: platforms, then records, then the smallest recording id. The losers stand in `isrc_conflict` with the first guard that they
failed against the owner; `outvoted` when none did (no chain of evidence joined them all the same).
"""

from __future__ import annotations

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.guards import compared, verdict


def isrc_owners(claims: pl.DataFrame, atoms: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tables `isrc_owner` and `isrc_conflict`.

    Args:
        claims: isrc, platform, recording_id, atom_id, record_count: how many records of the atom on the platform carry the code.
        atoms: rows of `atom`, at least those that claim a contested code.
    """
    support = claims.group_by("isrc", "recording_id").agg(
        platform_count=pl.col("platform").n_unique(), record_count=pl.col("record_count").sum()
    )
    support = support.sort("isrc", -pl.col("platform_count").cast(pl.Int64), -pl.col("record_count").cast(pl.Int64), "recording_id")
    owners = support.unique("isrc", keep="first", maintain_order=True)
    lost = support.join(owners.select("isrc", owner_recording_id="recording_id"), on="isrc").filter(
        pl.col("recording_id") != pl.col("owner_recording_id")
    )
    return TABLES["isrc_owner"].conform(owners.sort("isrc")), _conflicts(lost, claims, atoms)


def _conflicts(lost: pl.DataFrame, claims: pl.DataFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    contested = claims.join(lost.select("isrc").unique(), on="isrc", how="semi")
    by_atom = contested.group_by("isrc", "recording_id", "atom_id").agg(
        platforms=pl.col("platform").n_unique(), records=pl.col("record_count").sum()
    )
    most = (-pl.col("platforms").cast(pl.Int64), -pl.col("records").cast(pl.Int64))
    speakers = by_atom.sort("isrc", "recording_id", *most, "atom_id").unique(["isrc", "recording_id"], keep="first", maintain_order=True)
    speakers = speakers.select("isrc", "recording_id", "atom_id")
    pairs = lost.join(speakers.rename({"atom_id": "a"}), on=["isrc", "recording_id"])
    pairs = pairs.join(speakers.rename({"atom_id": "b", "recording_id": "owner_recording_id"}), on=["isrc", "owner_recording_id"])
    judged = verdict(compared(pairs.drop("platform_count"), atoms)).with_columns(pl.col("reason").fill_null("outvoted"))
    platforms = contested.select("isrc", "recording_id", "platform").unique().sort("isrc", "recording_id", "platform")
    platforms = platforms.group_by("isrc", "recording_id", maintain_order=True).agg(platforms="platform")
    columns = TABLES["isrc_conflict"].column_names
    return TABLES["isrc_conflict"].conform(judged.join(platforms, on=["isrc", "recording_id"]).select(columns).sort("isrc", "recording_id"))
