"""Ids of entities whose source keys come in order: artists, labels and releases. Texts are held a block at a time.

The blocks are matched with the last registry, vote for their groups (group_ids.py), and get the ids back in the same order.
Out of scope: the rules (id_rules.py); keys that come in any order (record_ids.py).
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import polars as pl

from pipeline.engine.pool import Pool
from pipeline.linkage.group_ids import count_group_buckets, decide_ids, find_group_redirects, read_ids, send_votes
from pipeline.linkage.id_registry import LINK, RegistryWriter, StoredRegistry, get_work_folder, write_redirects_and_next_id
from pipeline.linkage.id_rules import Resolution, assign_homes, match_members, tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pipeline.paths import BuildPaths

_MEMBER = {"node": pl.Int64, "group": pl.Int64, "source_key": pl.String}


def assign_sorted_members(paths: BuildPaths, kind: str, count: int, members: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Give each group of a kind its id, and yield node, entity_id in blocks. Once all are taken, the ids are saved for the registry.

    Args:
        paths: the build.
        kind: the kind of entity.
        count: about the number of members.
        members: blocks of node, group, source_key, in order of source_key.

    Raises:
        ValueError: when the keys are not in order, or one occurs twice.
        RegistryError: when the live snapshot's registry is lost.
    """
    spill = paths.root / "work" / "linkage" / f"{kind}_ids.spill"
    # The remains of a build that was killed.
    shutil.rmtree(spill, ignore_errors=True)
    spill.mkdir(parents=True)
    stored = StoredRegistry(paths, kind)
    heights = []
    for number, (start, rows, end) in enumerate(_find_bounds(members)):
        found = match_members(rows.select("source_key", "group"), stored.read_keys(start, end))
        send_votes(spill, count_group_buckets(count), number, tally(found))
        found.write_parquet(_get_file(spill, number, "matched"), compression="lz4")
        rows.select("node").write_parquet(_get_file(spill, number, "node"), compression="lz4")
        heights.append(found.height)
    ids = decide_ids(spill, stored, heights, Pool(1, None))
    folder, doubtful = get_work_folder(paths, kind), [pl.Series("home", dtype=pl.Int64)]
    are_links_written = False
    with RegistryWriter(folder / "id_registry") as writer:
        for number in range(len(heights)):
            resolution = Resolution(read_ids(spill, number, ids.first_new_id), ids.links, ids.first_new_id)
            rows = assign_homes(pl.read_parquet(_get_file(spill, number, "matched")), resolution)
            keys = rows.select("source_key", entity_id="home")
            # Links are among the keys, at the place of `id:`.
            is_behind = number == len(heights) - 1 or (keys.height > 0 and keys["source_key"][-1] > LINK)
            writer.write(kind, keys, ids.links if is_behind and not are_links_written else None)
            are_links_written |= is_behind
            doubtful.append(rows.filter(pl.col("entity_id").ne_missing(pl.col("home")))["home"].unique())
            yield pl.read_parquet(_get_file(spill, number, "node")).hstack(rows.filter(pl.col("group").is_not_null()).select("entity_id"))
    write_redirects_and_next_id(folder, kind, find_group_redirects(pl.concat(doubtful), ids), ids.next_id)
    shutil.rmtree(spill)


def _get_file(spill: Path, number: int, name: str) -> Path:
    return spill / f"{name}-{number:05d}.parquet"


def _find_bounds(blocks: Iterable[pl.DataFrame]) -> Iterator[tuple[str, pl.DataFrame, str | None]]:
    """Yield each block with the key from which its range begins and the one before which it ends (None: the last); one block at least."""
    waiting, start = pl.DataFrame(schema=_MEMBER), ""
    for block in blocks:
        if block.is_empty():
            continue
        rows = block.select(pl.col(name).cast(dtype) for name, dtype in _MEMBER.items())
        first = rows["source_key"][0]
        if not rows["source_key"].is_sorted() or (waiting.height and first <= waiting["source_key"][-1]):
            raise ValueError(f"the source keys from {first!r} on are not in order: sort the members by source_key")
        if waiting.height:
            yield start, waiting, first
            start = first
        waiting = rows
    yield start, waiting, None
