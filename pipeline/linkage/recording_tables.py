"""Clusters -> tables `recording_member`, `isrc_owner`, `isrc_conflict`, and the ids for the registry: the full path.

Claims of codes ask for the ids of their groups and are then shuffled into ranges of codes, in which the owners are settled.
Out of scope: who gets which id (id_rules.py); how a night reuses ids (incremental/recording_changes.py).
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.row_shuffle import read_bucket, write_run
from catalog_store.tables import TABLES
from catalog_store.tables.files import EvenTableWriter, count_rows, list_parts
from pipeline.engine.pool import map_ordered, start_workers
from pipeline.linkage.group_ids import ask_ids, count_group_buckets, read_ids
from pipeline.linkage.isrc_owners import assign_isrc_owners
from pipeline.linkage.mapped_atoms import open_tonight
from pipeline.linkage.record_ids import assign_records, cut_ranges, find_groups

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.linkage.record_ids import RecordIds
    from pipeline.paths import BuildPaths

CLAIMS_PER_RANGE = 500_000
"""Claims of codes that one range holds on average: some 200 MB at the widest point."""
RECORDS_FOR_A_POOL = 4_000_000
"""Below this number, two workers cost more than they save: they take 1.9 CPU seconds to start, and the step takes 3.1 for a million."""
_SAMPLE_STEP = 1_000
_PLATFORMS = sorted(CATALOG_PLATFORMS)
_BITS = {platform: 1 << place for place, platform in enumerate(_PLATFORMS)}
_PLATFORM_LISTS = pl.Series(
    [[platform for platform, bit in _BITS.items() if bits & bit] for bits in range(1 << len(_PLATFORMS))], dtype=pl.List(pl.String)
)
"""The sorted list of platforms for each sum of their bits: a list costs thirty times the bytes in a shuffle."""
_CLAIM = {"isrc": pl.String, "atom_id": pl.Int64, "platforms": pl.UInt8, "record_count": pl.Int32, "recording_id": pl.Int64}


def write_all_recordings(paths: BuildPaths) -> RecordIds:
    """Write the three tables out of `cluster` and the tables of atoms, and save the ids for the registry."""
    spill = paths.root / "work" / "linkage" / "record_ids.spill"
    # The remains of a build that was killed.
    shutil.rmtree(spill, ignore_errors=True)
    spill.mkdir(parents=True)
    records = count_rows(paths.table("atom_member"))
    buckets, ranges = count_group_buckets(records), cut_ranges(paths)
    # Receivers of ids: the ranges of records, then the parts of claims.
    claims = list(enumerate(list_parts(paths.table("atom_isrc")), len(ranges)))
    with start_workers(is_small=records < RECORDS_FOR_A_POOL) as pool:
        samples = list(map_ordered(partial(_ask_for_claimants, paths.table("cluster"), spill, buckets), claims, pool=pool))
        assigned, ids = assign_records(paths, ranges, spill, buckets, pool)
        cuts = _cut_codes(pl.concat(samples), count_rows(paths.table("atom_isrc")))
        send = partial(_send_claims, paths.table("cluster"), spill, ids.first_new_id, cuts)
        for _ in map_ordered(send, claims, pool=pool):
            pass
        _write_owners(paths, map_ordered(partial(_settle_range, paths, spill), range(len(cuts) + 1), pool=pool))
    shutil.rmtree(spill)
    return assigned


def _ask_for_claimants(cluster: Path, spill: Path, buckets: int, job: tuple[int, Path]) -> pl.Series:
    """Ask for the ids of all groups in one part of `atom_isrc`, and return some of its codes."""
    receiver, part = job
    claims = pl.read_parquet(part, columns=["isrc", "atom_id"])
    if claims.height:
        ask_ids(spill, buckets, receiver, find_groups(cluster, claims["atom_id"]))
    return claims["isrc"].gather_every(_SAMPLE_STEP)


def _cut_codes(samples: pl.Series, claims: int) -> pl.Series:
    """Return the first codes of all ranges but the first."""
    every = max(1, len(samples) * CLAIMS_PER_RANGE // max(1, claims))
    return samples.sort().gather_every(every, every).unique(maintain_order=True)


def _send_claims(cluster: Path, spill: Path, first_new_id: int, cuts: pl.Series, job: tuple[int, Path]) -> None:
    """Send the claims of one part, with the recordings of their atoms, to the ranges of their codes."""
    receiver, part = job
    claims = pl.read_parquet(part)
    if claims.is_empty():
        return
    ids = read_ids(spill, receiver, first_new_id).sort("group")
    place = ids["group"].search_sorted(find_groups(cluster, claims["atom_id"]))
    bits = pl.col("platforms").list.eval(pl.element().replace_strict(_BITS, return_dtype=pl.UInt8)).list.sum()
    rows = claims.with_columns(bits.cast(pl.UInt8).alias("platforms"), recording_id=ids["entity_id"].gather(place))
    write_run(spill / "claim", receiver, rows.select(_CLAIM.keys()), cuts.search_sorted(rows["isrc"], side="right"))


class _Settled(NamedTuple):
    """Rows of `isrc_owner` and `isrc_conflict` of one range of codes."""

    owner: pl.DataFrame
    conflict: pl.DataFrame


def _settle_range(paths: BuildPaths, spill: Path, number: int) -> _Settled:
    rows = read_bucket(spill / "claim", number)
    rows = rows if rows.width else pl.DataFrame(schema=_CLAIM)
    return _Settled(*settle_owners(open_tonight(paths), rows.with_columns(platforms=_PLATFORM_LISTS.gather(rows["platforms"]))))


def _write_owners(paths: BuildPaths, settled: Iterable[_Settled]) -> None:
    owner, conflict = (EvenTableWriter(TABLES[name], paths.table(name)) for name in ("isrc_owner", "isrc_conflict"))
    with owner, conflict:
        for rows in settled:
            owner.append(rows.owner)
            conflict.append(rows.conflict)


def settle_owners(atoms: MappedAtoms, claimed: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return rows of `isrc_owner` and `isrc_conflict` for the codes in `claimed`: rows of `atom_isrc` with recording_id."""
    # Texts of atoms are read only for codes of several recordings; two atoms of one recording share a code in peace.
    shared = claimed.filter(pl.col("isrc").is_duplicated()).select("isrc", "recording_id").unique()
    contested = shared.filter(pl.col("isrc").is_duplicated()).select("isrc").unique()
    involved = claimed.join(contested, on="isrc", how="semi")["atom_id"].unique()
    return assign_isrc_owners(claimed, atoms.read_atom_rows("atom", involved))
