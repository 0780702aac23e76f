"""Tests of connected components against a union-find, for any node numbers and edge order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.linkage.connected_components import Forest, add_components, find_roots, label_components

if TYPE_CHECKING:
    import random

NODES = st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20).map(sorted)
PLACES = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=40)


def find_with_union(nodes: list[int], pairs: list[tuple[int, int]]) -> list[int]:
    """Return the smallest node of each component by the plainest union-find."""
    root = {node: node for node in nodes}

    def find(node: int) -> int:
        return node if root[node] == node else find(root[node])

    for one, other in pairs:
        low, high = sorted((find(one), find(other)))
        root[high] = low
    return [find(node) for node in nodes]


def label(nodes: list[int], pairs: list[tuple[int, int]]) -> list[int]:
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return list(label_components(np.array(nodes, dtype=np.int64), ends[:, 0], ends[:, 1]).tolist())


@settings(max_examples=200, deadline=None)
@given(NODES, PLACES, st.randoms(use_true_random=False))
@example([1, 2, 3], [(0, 0), (2, 2)], None)
def test_labels_are_those_of_a_union_find_for_any_order_of_edges(
    nodes: list[int], places: list[tuple[int, int]], chance: random.Random | None
) -> None:
    pairs = [(nodes[one % len(nodes)], nodes[other % len(nodes)]) for one, other in places]
    assert label(nodes, pairs) == find_with_union(nodes, pairs)
    if chance is not None:
        mixed = [pair[:: chance.choice((1, -1))] for pair in chance.sample(pairs, len(pairs))]
        assert label(nodes, mixed) == label(nodes, pairs)


def test_long_chain_in_a_random_order_is_one_component() -> None:
    order = np.random.default_rng(1).permutation(100_000)
    labels = label_components(np.arange(100_000), order[:-1], order[1:])
    assert not labels.any()


def test_no_nodes_give_no_labels() -> None:
    assert label([], []) == []


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 20), PLACES, st.integers(1, 40))
@example(1, [], 1)
def test_edges_in_blocks_give_the_labels_of_all_edges_together(count: int, places: list[tuple[int, int]], size: int) -> None:
    pairs = [(one % count, other % count) for one, other in places]
    forest = Forest(count)
    for start in range(0, len(pairs), size):
        ends = np.array(pairs[start : start + size], dtype=np.int64)
        forest.join(ends[:, 0], ends[:, 1])
    assert forest.label().tolist() == label(list(range(count)), pairs)


def test_a_component_over_several_blocks_of_labels_has_the_smallest_node() -> None:
    last = 2_500_000
    forest = Forest(last + 1)
    for one in (1_200_000, 1_900_000, 7):
        forest.join(np.array([one]), np.array([last]))
    labels = forest.label()
    assert labels[[7, 1_200_000, 1_900_000, last]].tolist() == [7] * 4
    assert labels[8] == 8


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_known_atoms_get_their_component_in_their_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = np.unique(rng.integers(0, 60, 30))
    components = pl.DataFrame({"atom_id": ids, "cluster_id": rng.choice(ids, len(ids))})
    rows = pl.DataFrame({"atom_id": rng.integers(0, 60, 50), "place": np.arange(50)})
    assert add_components(rows, components).equals(rows.join(components, on="atom_id", maintain_order="left"))
    assert add_components(rows, components.clear()).is_empty()


@pytest.mark.parametrize("seed", range(3))
def test_atom_without_an_edge_is_its_own_component(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = np.unique(rng.integers(0, 60, 30))
    components = pl.DataFrame({"atom_id": ids, "cluster_id": rng.choice(ids, len(ids))})
    wanted = pl.DataFrame({"atom_id": rng.integers(0, 70, 50)})
    expected = wanted.join(components, on="atom_id", how="left", maintain_order="left").select(pl.coalesce("cluster_id", "atom_id"))
    assert find_roots(wanted["atom_id"], components).to_list() == expected.to_series().to_list()
    assert find_roots(wanted["atom_id"], components.clear()).equals(wanted["atom_id"])
