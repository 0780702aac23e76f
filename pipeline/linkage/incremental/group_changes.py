"""Groups of atoms, which are the clusters, in the base and tonight: which atoms changed groups, and which atoms share a group.

The id of a cluster is its smallest atom. So most rows of table `cluster` name their own atom, and only the others are held: 16 bytes for
each atom beyond the first of its cluster. The tables themselves are read a range of atoms at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts, scan_table
from pipeline.linkage.connected_components import label_components
from pipeline.linkage.sorted_runs import find_run_starts, mark_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pipeline.linkage.sorted_runs import Numbers


class JoinedAtoms(NamedTuple):
    """The atoms of a night that are not the first of their group, in order, and the first atom of each one's group."""

    atom_ids: Numbers
    first: Numbers

    def find_groups(self, atom_ids: pl.Series) -> pl.Series:
        """Return the group of each of these atoms, which are in order and have one that night."""
        groups = atom_ids.to_numpy(writable=True)
        known = mark_known(pl.Series(self.atom_ids), groups)
        groups[np.searchsorted(groups, self.atom_ids[known])] = self.first[known]
        return pl.Series("group", groups)


class GroupChanges:
    """The groups of both nights. `tonight`: as in JoinedAtoms; `moved`: atoms of both nights whose groups have different ids, in order."""

    def __init__(self, cluster: Path, base: Path, change: pl.DataFrame) -> None:
        """Read both tables `cluster`. ValueError when `change` (table `atom_change`) does not explain how their atoms differ."""
        gone, made = (np.sort(change.filter(pl.col("change") == kind)["atom_id"].to_numpy()) for kind in ("gone", "made"))
        found = [(_find_moved(*both, gone, made), *map(_keep_joined, both)) for both in _read_both(cluster, base)]
        moved, tonight, before = zip(*found, strict=True)
        self.moved = np.concatenate(moved)
        self.tonight = _concatenate(tonight)
        one, other = (np.concatenate(ids) for ids in zip(self.tonight, _concatenate(before), strict=True))
        self._atom_ids = _sort_distinct(one, other)
        self._components = label_components(self._atom_ids, one, other)

    def close_over(self, atom_ids: Numbers) -> Numbers:
        """Return these atoms and all that share a group with one, tonight or in the base, and so on; in order."""
        known = mark_known(pl.Series(self._atom_ids), _sort_distinct(atom_ids))
        reached = mark_known(pl.Series(self._components), _sort_distinct(self._components[known]))
        return _sort_distinct(atom_ids, self._atom_ids[reached])


def _sort_distinct(*columns: Numbers) -> Numbers:
    """Return the ids that occur, in order: `np.unique` takes thirty times as long for ids that come in a few sorted runs."""
    ids = np.sort(np.concatenate(columns), kind="stable")
    return ids[find_run_starts(ids)]


def _find_moved(tonight: pl.DataFrame, before: pl.DataFrame, gone: Numbers, made: Numbers) -> Numbers:
    """Return the atoms with another group, out of the rows of a range in both tables `cluster`."""
    stayed = tonight.filter(~mark_known(tonight["atom_id"], made))
    stood = before.filter(~mark_known(before["atom_id"], gone))
    # Rows are matched by place. A table that does not fit would give wrong ids without an error.
    if not stayed["atom_id"].equals(stood["atom_id"]):
        raise ValueError("table atom_change does not explain how tonight's atoms differ from the snapshot's: materialise `atom` again")
    return stayed["atom_id"].filter(stayed["cluster_id"] != stood["cluster_id"]).to_numpy()


def _keep_joined(rows: pl.DataFrame) -> JoinedAtoms:
    joined = rows.filter(pl.col("cluster_id") != pl.col("atom_id"))
    return JoinedAtoms(joined["atom_id"].to_numpy(), joined["cluster_id"].to_numpy())


def _concatenate(ranges: Iterable[JoinedAtoms]) -> JoinedAtoms:
    return JoinedAtoms(*(np.concatenate(ids) for ids in zip(*ranges, strict=True)))


def _read_both(cluster: Path, base: Path) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the rows of two tables `cluster` a range of atoms at a time: up to the last atom of each part of the first table."""
    *parts, last_part = list_parts(cluster)
    behind = pl.lit(value=True)
    held = scan_table(TABLES["cluster"], base)
    for part in parts:
        rows = pl.read_parquet(part)
        end = rows["atom_id"][-1]
        yield rows, held.filter(behind, pl.col("atom_id") <= end).collect()
        behind = pl.col("atom_id") > end
    yield pl.read_parquet(last_part), held.filter(behind).collect()
