from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from catalog_store.tables.linkage import EDGE_KINDS
from pipeline.linkage.clusters import build_clusters

if TYPE_CHECKING:
    import random

edge_lists = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=25)


def edge_table(pairs: list[tuple[int, int]], kind: str = "isrc", score: float = 1.0) -> pl.DataFrame:
    rows = [{"atom_id_a": min(pair), "atom_id_b": max(pair), "kind": kind, "score": score, "evidence": ""} for pair in pairs]
    return TABLES["edge"].conform(pl.DataFrame(rows, schema=TABLES["edge"].polars_schema))


def atom_rows(durations: list[int | None], variants: list[str] | None = None, records: list[int] | None = None) -> pl.DataFrame:
    count = len(durations)
    return pl.DataFrame(
        {"atom_id": range(count), "duration_ms": durations, "variant": variants or [""] * count, "record_count": records or [2] * count},
        schema={"atom_id": pl.Int64, "duration_ms": pl.Int32, "variant": pl.String, "record_count": pl.Int32},
    )


def oracle(count: int, pairs: list[tuple[int, int]]) -> dict[int, int]:
    """Return atom -> smallest atom of its component, by a plain union-find."""
    root = list(range(count))

    def find(atom: int) -> int:
        return atom if root[atom] == atom else find(root[atom])

    for one, other in pairs:
        low, high = sorted((find(one), find(other)))
        root[high] = low
    return {atom: find(atom) for atom in range(count)}


@settings(max_examples=60, deadline=None)
@given(
    edge_lists,
    st.lists(st.integers(100, 130), min_size=15, max_size=15),
    st.lists(st.sampled_from(["", "live", "live:a", "live:b"]), min_size=15, max_size=15),
)
def test_clusters_are_sound_connected_and_independent_of_edge_order(
    pairs: list[tuple[int, int]], seconds: list[int], variants: list[str]
) -> None:
    atoms = atom_rows([second * 1000 for second in seconds], variants)
    # By names: under a code an atom without a version word may take the version of its neighbour (version_edges.py).
    found = dict(build_clusters(atoms, edge_table(pairs, "typo")).iter_rows())
    whole = oracle(15, pairs)
    for cluster in set(found.values()):
        held = [atom for atom in found if found[atom] == cluster]
        assert min(held) == cluster
        assert len({whole[atom] for atom in held}) == 1
        assert max(seconds[atom] for atom in held) - min(seconds[atom] for atom in held) <= 15.6
        kinds = {variants[atom] for atom in held}
        assert not {"live:a", "live:b"} <= kinds
        assert not ("" in kinds and len(kinds) > 1)
    assert dict(build_clusters(atoms, edge_table(pairs[::-1], "typo")).iter_rows()) == found


def test_atom_that_took_a_version_from_its_code_does_not_join_the_plain_song() -> None:
    atoms = atom_rows([200_000] * 3, ["", "remix:kask", ""])
    edges = pl.concat([edge_table([(0, 1)], "version", 0.98), edge_table([(0, 2)], "typo", 0.9)])
    assert build_clusters(atoms, edges)["cluster_id"].to_list() == [0, 0, 2]


def test_chain_of_good_edges_is_cut_where_it_spans_too_much() -> None:
    atoms = atom_rows([100_000, 107_000, 114_000, 121_000])
    found = build_clusters(atoms, edge_table([(0, 1), (1, 2), (2, 3)]))["cluster_id"].to_list()
    assert found == [0, 0, 0, 3]


def test_weakest_edge_is_dropped() -> None:
    atoms = atom_rows([100_000, 110_000, 120_000])
    edges = pl.concat([edge_table([(0, 1)], "typo", 0.9), edge_table([(1, 2)], "isrc", 0.8)])
    assert build_clusters(atoms, edges)["cluster_id"].to_list() == [0, 1, 1]


def test_bare_live_does_not_join_two_places() -> None:
    atoms = atom_rows([None, None, None], ["live:paris", "live", "live:rome"])
    assert build_clusters(atoms, edge_table([(0, 1), (1, 2)]))["cluster_id"].n_unique() == 2


def test_duration_of_a_single_record_does_not_cut_a_cluster() -> None:
    atoms = atom_rows([200_000, 201_000, 240_000], records=[5, 3, 1])
    assert build_clusters(atoms, edge_table([(0, 1), (0, 2)]))["cluster_id"].to_list() == [0, 0, 0]


def test_atoms_without_edges_are_their_own_clusters() -> None:
    assert build_clusters(atom_rows([1, 2]), edge_table([]))["cluster_id"].to_list() == [0, 1]
    assert build_clusters(atom_rows([]), edge_table([])).is_empty()


def test_must_link_passes_the_span_guard_and_each_side_is_measured_alone() -> None:
    atoms = atom_rows([100_000, 200_000, 105_000, 195_000, 150_000])
    edges = pl.concat([edge_table([(0, 1)], "override"), edge_table([(0, 2), (1, 3), (0, 4)])])
    assert build_clusters(atoms, edges)["cluster_id"].to_list() == [0, 0, 0, 0, 4]


def test_must_link_precedes_contradicting_evidence() -> None:
    atoms = atom_rows([100_000] * 3)
    edges = pl.concat([edge_table([(0, 1)], "isrc"), edge_table([(1, 2)], "override")])
    assert build_clusters(atoms, edges, foes((0, 2)))["cluster_id"].to_list() == [0, 1, 1]


def test_cannot_link_cuts_the_weakest_edge_between_the_two() -> None:
    atoms = atom_rows([100_000] * 4)
    edges = pl.concat([edge_table([(0, 1), (2, 3)], "isrc"), edge_table([(1, 2)], "typo", 0.9)])
    assert build_clusters(atoms, edges, foes((3, 0)))["cluster_id"].to_list() == [0, 0, 2, 2]
    assert build_clusters(atoms, edges, foes())["cluster_id"].to_list() == [0, 0, 0, 0]


def foes(*pairs: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(pairs, schema={"atom_id_a": pl.Int64, "atom_id_b": pl.Int64}, orient="row")


def rank_of(edge: tuple[int, int, str]) -> tuple[int, int, int]:
    one, other, kind = edge
    return EDGE_KINDS.index(kind), min(one, other), max(one, other)


def best_first(edges: list[tuple[int, int, str]], seconds: list[int], pairs: list[tuple[int, int]]) -> set[frozenset[int]]:
    """Return the clusters by brute force: sets of atoms that merge edge by edge, with every atom of both compared."""
    parts, clustered = [[{atom} for atom in range(len(seconds))] for _ in range(2)]
    for one, other, kind in sorted(edges, key=rank_of):
        both = [next(held for held in clustered if end in held) for end in (one, other)]
        if any((a in both[0] and b in both[1]) or (b in both[0] and a in both[1]) for a, b in pairs):
            continue
        if kind != "override":
            near = [next(held for held in parts if end in held) for end in (one, other)]
            span = [seconds[atom] for held in near for atom in held]
            if max(span) - min(span) > max(15, 0.12 * max(span)):
                continue
            parts = [held for held in parts if held not in near] + [near[0] | near[1]]
        clustered = [held for held in clustered if held not in both] + [both[0] | both[1]]
    return {frozenset(held) for held in clustered}


kinds_of_edges = st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from(EDGE_KINDS)).filter(lambda edge: edge[0] != edge[1])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(kinds_of_edges, max_size=14, unique_by=rank_of),
    st.lists(st.integers(100, 130), min_size=7, max_size=7),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] != pair[1]), max_size=4),
    st.randoms(use_true_random=False),
)
def test_clusters_equal_those_of_brute_force(
    edges: list[tuple[int, int, str]], seconds: list[int], pairs: list[tuple[int, int]], chance: random.Random
) -> None:
    table = pl.concat([edge_table([(one, other)], kind) for one, other, kind in edges] + [edge_table([])])
    atoms = atom_rows([second * 1000 for second in seconds])
    found = build_clusters(atoms, table, foes(*pairs))
    held = {frozenset(ids) for ids in found.group_by("cluster_id").agg("atom_id")["atom_id"].to_list()}
    assert held == best_first(edges, seconds, pairs)
    mixed = [pair[::-1] for pair in chance.sample(pairs, len(pairs))]
    assert build_clusters(atoms.reverse(), table.sample(fraction=1, shuffle=True, seed=chance.randint(0, 9)), foes(*mixed)).equals(found)


@given(st.permutations(range(6)))
def test_misspelt_atom_without_a_duration_joins_the_recording_that_outweighs_the_others(ids: list[int]) -> None:
    """Atoms 0 and 1 are one recording of eight records, 2 and 3 one of two; 4 has no duration and resembles 1 and 3."""
    lengths, counts = [200_000, 201_000, 300_000, 301_000, None, 150_000], [4, 4, 1, 1, 1, 1]
    atoms = atom_rows([lengths[ids.index(place)] for place in range(6)], records=[counts[ids.index(place)] for place in range(6)])
    codes = edge_table([(ids[0], ids[1]), (ids[2], ids[3])])
    typos = edge_table([(ids[4], ids[1]), (ids[4], ids[3])], "typo")
    found = dict(build_clusters(atoms, pl.concat([codes, typos])).iter_rows())
    assert found[ids[4]] == found[ids[0]] == found[ids[1]] != found[ids[2]]


@pytest.mark.parametrize(
    ("records", "is_alone"), [([3, 3, 2, 2], True), ([3, 3, 1, 0], False)], ids=["two recordings", "a single record beside one"]
)
def test_misspelt_atom_without_a_duration_and_a_choice_stays_alone(records: list[int], is_alone: bool) -> None:  # noqa: FBT001
    atoms = atom_rows([200_000, 201_000, 210_000, 211_000, None], records=[*records, 1])
    typos = edge_table([(4, 1), (4, 2)], "typo")
    found = dict(build_clusters(atoms, pl.concat([edge_table([(0, 1), (2, 3)]), typos])).iter_rows())
    assert (found[4] == 4) is is_alone
