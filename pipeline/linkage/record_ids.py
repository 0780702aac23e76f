"""Ids of all source records, a range of source keys at a time, in memory that does not grow with the catalog.

Records come in any order. A pool of processes shuffles them into ranges of (platform, external id), sorts each range, matches it with its
range of the last registry and sends votes to the groups. group_ids.py gives the groups their ids. Then the ranges are written in order as
tables `recording_member` and `id_registry`. The limits of the ranges do not change the tables. Out of scope: the rules
(id_rules.py); ids of a night that builds on a snapshot (incremental/recording_changes.py).
"""

from __future__ import annotations

import shutil
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.pending_files import write_aside
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.row_shuffle import read_bucket, write_run
from catalog_store.tables import TABLES
from catalog_store.tables.files import EvenTableWriter, count_part_rows, list_parts, scan_table
from pipeline.engine.pool import map_ordered
from pipeline.linkage.group_ids import GroupIds, decide_ids, find_group_redirects, read_ids, send_votes
from pipeline.linkage.id_registry import (
    LINK,
    RegistryWriter,
    StoredKeys,
    StoredRegistry,
    get_work_folder,
    is_exception,
    write_redirects_and_next_id,
)
from pipeline.linkage.id_rules import KEY_SCHEMA, Resolution, assign_homes, match_members, tally

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.engine.pool import Pool
    from pipeline.paths import BuildPaths

KIND = "recording"
ROWS_PER_RANGE = 1_000_000
"""Records that one range holds on average: some 250 MB at the widest point."""
_SAMPLES_PER_RANGE = 50
_NO_KEYS = pl.DataFrame(schema=KEY_SCHEMA)
_NO_RECORDS = pl.DataFrame(schema={"external_id": pl.String, "group": pl.Int64})
# The registry is sorted by source key, and links sort as `id:`. So they are written with the first platform after
# that.
_FIRST_AFTER_LINKS = min(platform for platform in CATALOG_PLATFORMS if platform > LINK)
_PREFIX = 16
"""Bytes that are compared as one number: a string comparison costs ten times as much."""


class RecordIds(NamedTuple):
    """Figures of assigned ids: the number of new ids, the number of redirects."""

    new_ids: int
    redirects: int


class KeyRange(NamedTuple):
    """Source keys of one platform from `start` on, up to `end` (None: to the last)."""

    number: int
    platform: str
    start: str
    end: str | None


def cut_ranges(paths: BuildPaths) -> list[KeyRange]:
    """Cut the space of keys into ranges of about ROWS_PER_RANGE at most; every platform begins one."""
    members = list_parts(paths.table("atom_member"))
    # Samples give the ranges nearly equal sizes, whatever the ids of a platform look like.
    step = max(1, min(ROWS_PER_RANGE, sum(map(count_part_rows, members))) // _SAMPLES_PER_RANGE)
    samples = pl.concat([pl.read_parquet(part, columns=["platform", "external_id"]).gather_every(step) for part in members])
    found = []
    for platform in sorted(CATALOG_PLATFORMS):
        names = samples.filter(pl.col("platform") == platform)["external_id"].sort()
        every = max(1, ROWS_PER_RANGE // step)
        cuts = names.gather_every(every, every).unique(maintain_order=True).to_list()
        found += [(platform, f"{platform}:{cut}") for cut in ["", *cuts]]
    ends = [start for _, start in found[1:]]
    return [KeyRange(number, *place, end) for number, (place, end) in enumerate(zip(found, [*ends, None], strict=True))]


def find_groups(cluster: Path, atom_ids: pl.Series) -> pl.Series:
    """Return the group of each of these atoms, which are close together: table `cluster` is in order of atoms."""
    # Their part of the table alone is read, and searched: a join would hash it.
    within = pl.col("atom_id").is_between(atom_ids.min(), atom_ids.max())
    rows = scan_table(TABLES["cluster"], cluster).filter(within).collect()
    place = rows["atom_id"].search_sorted(atom_ids).clip(upper_bound=max(0, rows.height - 1))
    if not rows["atom_id"].gather(place).equals(atom_ids):
        raise ValueError(f"table cluster at {cluster} lacks an atom: run the step of clusters again")
    return rows["cluster_id"].gather(place).rename("group")


def assign_records(paths: BuildPaths, ranges: list[KeyRange], spill: Path, buckets: int, pool: Pool) -> tuple[RecordIds, GroupIds]:
    """Write `recording_member` out of `atom_member` and `cluster`, and save the ids of recordings for the registry.

    The folder `spill` keeps the ids of the groups; others may have asked for some there (`group_ids.ask_ids`, with receivers from the
    number of ranges on). ValueError when a record appears twice, RegistryError when the live snapshot's registry is lost.
    """
    stored = StoredRegistry(paths, KIND)
    members = list(enumerate(list_parts(paths.table("atom_member"))))
    for _ in map_ordered(partial(_spill_records, paths.table("cluster"), ranges, spill), members, pool=pool):
        pass
    heights = list(map_ordered(partial(_match_range, paths, spill, buckets), ranges, pool=pool))
    shutil.rmtree(spill / "record", ignore_errors=True)
    ids = decide_ids(spill, stored, heights, pool)
    shutil.rmtree(spill / "vote", ignore_errors=True)
    redirects = _write_tables(paths, spill, map_ordered(partial(_finish_range, spill, ids.links, ids.first_new_id), ranges, pool=pool), ids)
    return RecordIds(ids.next_id - ids.first_new_id, redirects), ids


def _spill_records(cluster: Path, ranges: list[KeyRange], spill: Path, job: tuple[int, Path]) -> None:
    """Send the records of one part of `atom_member` to their ranges."""
    number, part = job
    rows = pl.read_parquet(part, columns=["platform", "external_id", "atom_id"])
    if rows.is_empty():
        return
    rows = rows.with_columns(find_groups(cluster, rows["atom_id"]))
    placed = []
    for (platform,), here in rows.partition_by("platform", as_dict=True).items():
        own = [place for place in ranges if place.platform == platform]
        cuts = pl.Series([place.start.removeprefix(f"{platform}:") for place in own[1:]], dtype=pl.String)
        at = cuts.search_sorted(here["external_id"], side="right") if len(cuts) else pl.Series([0]).new_from_index(0, here.height)
        placed.append(here.select(*_NO_RECORDS.columns, at.cast(pl.UInt32).alias("range") + own[0].number))
    found = pl.concat(placed)
    write_run(spill / "record", number, found.drop("range"), found["range"])


def _match_range(paths: BuildPaths, spill: Path, buckets: int, place: KeyRange) -> int:
    """Match one range with the registry and send its votes; return the number of its keys."""
    rows = read_bucket(spill / "record", place.number)
    rows = sort_by_external_id(rows if rows.width else _NO_RECORDS)
    members = rows.select(source_key=pl.lit(f"{place.platform}:") + pl.col("external_id"), group="group")
    found = match_members(members, StoredKeys(paths, KIND).read_keys(place.start, place.end))
    send_votes(spill, buckets, place.number, tally(found))
    with write_aside(_get_matched_path(spill, place)) as pending:
        found.write_parquet(pending, compression="lz4")
    return found.height


def _get_matched_path(spill: Path, place: KeyRange) -> Path:
    return spill / f"matched-{place.number:05d}.parquet"


def sort_by_external_id(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `rows` sorted by `external_id`, in a fifth of the time of a string sort."""
    # NUL sorts before every other character, as the end of a shorter id does.
    padded = pl.col("external_id").str.pad_end(_PREFIX, "\0").cast(pl.Binary).bin.slice(0, _PREFIX)
    rows = rows.with_columns(prefix=padded.bin.reinterpret(dtype=pl.UInt128, endianness="big")).sort("prefix")
    tied = (rows["prefix"] == rows["prefix"].shift(1)) | (rows["prefix"] == rows["prefix"].shift(-1))
    tied = tied.fill_null(value=False)
    rows = rows.drop("prefix").with_row_index("_place")
    if tied.any():
        # Rows with equal first bytes come together: sorted among themselves they fill the same places.
        reordered = rows.filter(tied)
        reordered = reordered.drop("_place").sort("external_id").with_columns(reordered["_place"])
        rows = pl.concat([rows.filter(~tied), reordered.select(rows.columns)]).sort("_place")
    return rows.drop("_place")


class _Finished(NamedTuple):
    """One range of the tables. `member`: external_id, recording_id; `keys`: rows for the registry; `doubtful`: homes that may be unused."""

    place: KeyRange
    member: pl.DataFrame
    keys: pl.DataFrame
    doubtful: pl.Series


def _finish_range(spill: Path, links: pl.DataFrame, first_new_id: int, place: KeyRange) -> _Finished:
    # Only the ids of this range: no key or link of another matters to it.
    resolution = Resolution(read_ids(spill, place.number, first_new_id), links, first_new_id)
    rows = assign_homes(pl.read_parquet(_get_matched_path(spill, place)), resolution)
    present = rows.filter(pl.col("group").is_not_null())
    return _Finished(
        place,
        present.select(external_id=pl.col("source_key").str.slice(len(place.platform) + 1), recording_id="entity_id"),
        rows.filter(is_exception()).select("source_key", entity_id="home"),
        # A home that is the id of its own key is in use; only other homes can need a redirect.
        rows.filter(pl.col("entity_id").ne_missing(pl.col("home")))["home"].unique(),
    )


def _write_tables(paths: BuildPaths, spill: Path, finished: Iterable[_Finished], ids: GroupIds) -> int:
    """Write `recording_member`, whose platforms each begin a part, and the registry; return the number of redirects."""
    folder, table = get_work_folder(paths, KIND), TABLES["recording_member"]
    doubtful = [pl.Series("home", dtype=pl.Int64)]
    with EvenTableWriter(table, paths.table(table.name)) as member, RegistryWriter(folder / "id_registry") as keys:
        for platform, ranges in groupby(finished, key=lambda found: found.place.platform):
            member.end_part()
            keys.write(KIND, _NO_KEYS, ids.links if platform == _FIRST_AFTER_LINKS else None)
            for found in ranges:
                member.append(found.member.with_columns(platform=pl.lit(platform)))
                keys.write(KIND, found.keys)
                doubtful.append(found.doubtful)
                # Here and not by the call that read it, because a cluster may run that call twice.
                _get_matched_path(spill, found.place).unlink()
    redirects = find_group_redirects(pl.concat(doubtful), ids)
    write_redirects_and_next_id(folder, KIND, redirects, ids.next_id)
    return redirects.height
