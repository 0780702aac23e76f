"""Edges -> clusters: connected components, cut where a chain of good edges joins atoms that no single edge would.

A component is sound if its durations span little, its variants agree pairwise and it holds no cannot-link. The duration of a single record
does not count beside atoms of several records: the guards accept such a record with a wrong duration. An unsound component is built again
edge by edge, best evidence first, without every edge that would make it unsound (Kruskal with a constraint). That is 1 in 5,000 on
simulated worlds. Nor is a component sound with two tracks of one release that share no code (release_mates.py), or with two atoms whose
audio differs (audio_edges.py).

Reviewed decisions (kind `override`, and `cannot`) rank above the guards. A must-link joins two atoms whatever they look like; a later edge
to one of them is measured against that one alone. A cannot-link holds against every edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.linkage import EDGE_KINDS
from pipeline.linkage.atoms import DOMINANCE
from pipeline.linkage.connected_components import add_components, find_linked_atoms, label_components
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.guards import (
    SAME_KEY_DURATION_MS,
    SAME_KEY_DURATION_SHARE,
    are_guards_on,
    can_be_one_recording,
    is_length_difference,
)
from pipeline.linkage.live_takes import adopt_concerts
from pipeline.linkage.sorted_runs import mark_known
from pipeline.linkage.version_edges import adopt_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

OVERRIDE = EDGE_KINDS[0]
FOUND_SCHEMA = {"atom_id": pl.Int64, "cluster_id": pl.Int64}
NO_PAIRS = pl.DataFrame(schema={"atom_id_a": pl.Int64, "atom_id_b": pl.Int64})


def build_clusters(
    atoms: pl.DataFrame,
    edges: pl.DataFrame,
    cannot: pl.DataFrame | None = None,
    *,
    find_mates: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
    parted: pl.DataFrame = NO_PAIRS,
) -> pl.DataFrame:
    """Return rows of table `cluster`, in order: each of the atoms with the smallest atom id of its cluster.

    Args:
        atoms: atom_id, duration_ms, variant, record_count; at least of the atoms at the ends of edges.
        edges: atom_id_a, atom_id_b, kind, score; the edges between them.
        cannot: atom_id_a, atom_id_b; pairs that never share a cluster.
        find_mates: takes components (as `find_components`) and returns atom_id_a, atom_id_b of the tracks of one release that are in one.
        parted: atom_id_a, atom_id_b; pairs that only a reviewed decision joins.

    Raises:
        FailingRowsError: names the atoms of the first cluster that cannot be examined.
    """
    edges = drop_undecided(edges, atoms) if are_guards_on() else edges
    found = find_components(atoms["atom_id"], edges)
    placed = add_components(atoms.filter(mark_known(atoms["atom_id"], find_linked_atoms(edges)["atom_id"].to_numpy())), found)
    placed = adopt_concerts(placed, edges.filter(pl.col("kind") == "weak"))
    placed = adopt_versions(placed, edges.filter(pl.col("kind") == "version"))
    # The guards join a lone record with a wrong duration to an atom of several. So beside such an atom its duration
    # does not count, or the cluster would be cut again here.
    several = (pl.col("record_count") > 1) & pl.col("duration_ms").is_not_null()
    counts = several | ~several.any().over("cluster_id")
    placed = placed.with_columns(duration_ms=pl.when(counts).then("duration_ms"))
    cannot_links = NO_PAIRS if cannot is None else cannot.select(NO_PAIRS.columns)
    # Cannot-links hold with the guards off, too: they are decisions and no thresholds.
    failing = run_on_rows(placed if are_guards_on() else placed.clear(), _find_unsound, ("atom_id",), "cluster_id")
    mates = pl.concat([parted, find_mates(found) if find_mates is not None else NO_PAIRS]).unique() if are_guards_on() else NO_PAIRS
    unsound = pl.concat([failing, _find_cannot_links(found, cannot_links), _find_cannot_links(found, mates)]).unique()
    bad = edges.join(found.join(unsound, on="cluster_id", how="semi"), left_on="atom_id_a", right_on="atom_id", how="semi")
    if bad.height:
        involved = found.join(unsound, on="cluster_id", how="semi")
        joined = placed.join(involved, on="atom_id", how="semi")
        rebuilt = run_on_rows(joined, lambda rows: _rebuild(rows, bad, cannot_links, mates), ("atom_id",), "cluster_id")
        ids = found["cluster_id"].to_numpy(writable=True)
        # Few atoms are rebuilt: they are written into their places, where a join would touch all of them.
        ids[found["atom_id"].search_sorted(rebuilt["atom_id"]).to_numpy()] = rebuilt["cluster_id"].to_numpy()
        found = found.with_columns(cluster_id=pl.Series(ids))
    return TABLES["cluster"].conform(found)


def find_components(atom_ids: pl.Series, edges: pl.DataFrame) -> pl.DataFrame:
    """Return the connected components: atom_id, cluster_id (the smallest atom id), sorted by atom_id."""
    ids = np.sort(atom_ids.to_numpy(), kind="stable")  # the ids come in a few sorted runs: a tenth of the time of another sort
    labels = label_components(ids, edges["atom_id_a"].to_numpy(), edges["atom_id_b"].to_numpy())
    return pl.DataFrame({"atom_id": ids, "cluster_id": labels}, schema=FOUND_SCHEMA)


def _compute_span_limit(longest: pl.Expr) -> pl.Expr:
    return pl.max_horizontal(pl.lit(SAME_KEY_DURATION_MS), longest * SAME_KEY_DURATION_SHARE)


def _find_unsound(atoms: pl.DataFrame) -> pl.DataFrame:
    """Return cluster_id of the components that span too much or hold variants that exclude each other."""
    # Numbers first: variants as texts are read only for components that hold several.
    variant = pl.col("variant").hash()
    numbers = atoms.select("cluster_id", "duration_ms", variant=variant).group_by("cluster_id")
    shapes = numbers.agg(
        shortest=pl.col("duration_ms").min(),
        longest=pl.col("duration_ms").max(),
        is_mixed=pl.col("variant").min() != pl.col("variant").max(),
    )
    long = shapes.filter(pl.col("longest") - pl.col("shortest") > _compute_span_limit(pl.col("longest"))).select("cluster_id")
    mixed = atoms.join(shapes.filter("is_mixed"), on="cluster_id", how="semi")
    several = mixed.group_by("cluster_id").agg(variants=pl.col("variant").unique().sort())
    kinds = several["variants"].to_list()
    agree = {variants: _are_compatible(variants) for variants in set(map(tuple, kinds))}  # few distinct sets occur
    clashing = [not agree[tuple(variants)] for variants in kinds]
    return pl.concat([long, several.filter(pl.Series(clashing, dtype=pl.Boolean)).select("cluster_id")]).unique()


def _find_cannot_links(found: pl.DataFrame, cannot_links: pl.DataFrame) -> pl.DataFrame:
    """Return cluster_id of the components that hold a cannot-link."""
    first = cannot_links.join(found, left_on="atom_id_a", right_on="atom_id")
    return first.join(found, left_on=["atom_id_b", "cluster_id"], right_on=["atom_id", "cluster_id"]).select("cluster_id").unique()


def _are_compatible(variants: Sequence[str]) -> bool:
    return all(can_be_one_recording(one, other) or is_length_difference(one, other) for one, other in combinations(variants, 2))


@dataclass
class _Part:
    """A growing part of a cluster: atoms joined by evidence, not by decisions."""

    shortest: int | None
    longest: int | None
    variants: set[str]

    def can_absorb(self, other: _Part) -> bool:
        """Return whether both parts together would be sound."""
        shortest = min((part.shortest for part in (self, other) if part.shortest is not None), default=0)
        longest = max((part.longest for part in (self, other) if part.longest is not None), default=0)
        if longest - shortest > max(SAME_KEY_DURATION_MS, longest * SAME_KEY_DURATION_SHARE):
            return False
        return _are_compatible(sorted(self.variants | other.variants))

    def absorb(self, other: _Part) -> None:
        """Add the other part."""
        durations = [value for part in (self, other) for value in (part.shortest, part.longest) if value is not None]
        self.shortest, self.longest = (min(durations), max(durations)) if durations else (None, None)
        self.variants |= other.variants


class _Forest:
    """Union-find whose roots are the smallest members."""

    def __init__(self, members: Iterable[int]) -> None:
        self.root = {member: member for member in members}

    def find(self, member: int) -> int:
        while self.root[member] != member:
            self.root[member] = self.root[self.root[member]]
            member = self.root[member]
        return member

    def join(self, one: int, other: int) -> None:
        # The smaller root wins, so the root of a tree is the id of its cluster.
        low, high = sorted((self.find(one), self.find(other)))
        self.root[high] = low


def drop_undecided(edges: pl.DataFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    """Return edges without typing errors between an atom of unknown duration and atoms of several recordings: only ids would choose.

    A recording that outweighs the others by DOMINANCE keeps its edges. A single record is seldom another recording than the rest and leaves
    no choice as long as the lengths could be those of one. `atoms`: as for `build_clusters`.
    """
    ends = edges.filter(pl.col("kind") == "typo").select("atom_id_a", "atom_id_b")
    beside = atoms.filter(mark_known(atoms["atom_id"], find_linked_atoms(ends)["atom_id"].to_numpy()))
    for side in ("a", "b"):
        durations = beside.select(pl.col("atom_id").alias(f"atom_id_{side}"), pl.col("duration_ms").alias(side))
        ends = ends.join(durations, on=f"atom_id_{side}")
    doubtful = pl.concat(
        ends.filter(pl.col(one).is_null(), pl.col(other).is_not_null()).select(
            "atom_id_a", "atom_id_b", kind=pl.lit("typo"), untimed=f"atom_id_{one}", timed=f"atom_id_{other}", duration_ms=other
        )
        for one, other in (("a", "b"), ("b", "a"))
    ).filter(pl.len().over("untimed") > 1)
    if doubtful.is_empty():
        return edges
    others = edges.join(doubtful, on=["atom_id_a", "atom_id_b", "kind"], how="anti")
    components = find_components(pl.concat([find_linked_atoms(others)["atom_id"], doubtful["timed"]]).unique(), others)
    doubtful = doubtful.join(components, left_on="timed", right_on="atom_id")
    held = components.join(doubtful, on="cluster_id", how="semi").join(atoms.select("atom_id", "record_count"), on="atom_id")
    doubtful = doubtful.join(held.group_by("cluster_id").agg(records=pl.col("record_count").sum()), on="cluster_id")
    choices = doubtful.unique(["untimed", "cluster_id"]).group_by("untimed")
    of_atom = choices.agg(all=pl.col("records").sum(), second=pl.col("records").sort().get(-2, null_on_oob=True))
    doubtful = doubtful.join(of_atom, on="untimed")
    longest = pl.col("duration_ms").max().over("untimed")
    is_close = longest - pl.col("duration_ms").min().over("untimed") <= _compute_span_limit(longest)
    is_chosen = pl.col("records") >= DOMINANCE * pl.col("all")
    is_harmless = is_close & (pl.col("second") == 1) & ~is_chosen.any().over("untimed")
    undecided = doubtful.filter(~is_chosen & ~is_harmless)
    return edges.join(undecided, on=["atom_id_a", "atom_id_b", "kind"], how="anti", maintain_order="left")


def _list_by_atom(pairs: pl.DataFrame, atom_ids: Collection[int]) -> dict[int, set[int]]:
    """Return for each of these atoms the atoms at the other ends of its pairs."""
    found: dict[int, set[int]] = {atom: set() for atom in atom_ids}
    for one, other in pairs.select("atom_id_a", "atom_id_b").iter_rows():
        if one in found and other in found:
            found[one].add(other)
            found[other].add(one)
    return found


def _rebuild(atoms: pl.DataFrame, edges: pl.DataFrame, cannot_links: pl.DataFrame, mates: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id, cluster_id of the atoms of unsound components. Decisions join clusters; all other edges join parts of clusters.

    `edges`, `cannot_links`, `mates`: those of these components, and possibly of others. Cannot-links part clusters; mates part only what
    evidence joins, because a reviewer may know that a release has one recording twice.
    """
    edges = edges.join(atoms, left_on="atom_id_a", right_on="atom_id", how="semi")
    parts = {row["atom_id"]: _Part(row["duration_ms"], row["duration_ms"], {row["variant"]}) for row in atoms.iter_rows(named=True)}
    # Two forests: a must-link joins clusters and leaves their parts apart. A later edge is then measured against one
    # side alone.
    part_of, cluster_of = _Forest(parts), _Forest(parts)
    apart, mates_of = _list_by_atom(cannot_links, parts), _list_by_atom(mates, parts)

    trust = pl.col("kind").replace_strict({kind: rank for rank, kind in enumerate(EDGE_KINDS)}, return_dtype=pl.Int8)
    # The result does not depend on the order in which edges were found: of two that this sort leaves equal, the second changes nothing.
    ordered = edges.with_columns(trust=trust).sort("trust", -pl.col("score"), "atom_id_a", "atom_id_b")
    for one, other, kind in ordered.select("atom_id_a", "atom_id_b", "kind").iter_rows():
        low, high = sorted((cluster_of.find(one), cluster_of.find(other)))
        # Only `high` is checked, because cannot-links are stored in both directions.
        if any(cluster_of.find(atom) == low for atom in apart[high]):
            continue
        if kind != OVERRIDE:
            a, b = sorted((part_of.find(one), part_of.find(other)))
            if a == b or any(part_of.find(atom) == a for atom in mates_of[b]) or not parts[a].can_absorb(parts[b]):
                continue
            parts[a].absorb(parts[b])
            part_of.join(a, b)
            mates_of[a] |= mates_of[b]
        if low != high:
            cluster_of.join(low, high)
            # `low` stays the root, so it takes over what `high` must stay apart from.
            apart[low] |= apart[high]
    ids = sorted(parts)
    return pl.DataFrame(
        {"atom_id": ids, "cluster_id": [cluster_of.find(atom) for atom in ids]}, schema={"atom_id": pl.Int64, "cluster_id": pl.Int64}
    )
