from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.array_files import ArrayWriter
from catalog_store.lists import posting_lists
from catalog_store.lists.list_index import find_members, intersect_lists, slice_ranks
from catalog_store.lists.posting_lists import write_lists

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest
    from numpy.typing import NDArray

RANKS = st.lists(st.integers(0, 60), unique=True).map(sorted)


def written(pairs: list[tuple[int, int]], owners: int, folder: Path, step: int) -> tuple[list[int], list[int], bytes]:
    def batches() -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint32]]]:
        for start in range(0, len(pairs), step):
            keys, ranks = zip(*pairs[start : start + step], strict=True)
            yield np.array(keys, dtype=np.int64), np.array(ranks, dtype=np.uint32)

    folder.mkdir()
    with ArrayWriter(folder / "lists.npy", np.uint32) as writer:
        lengths = write_lists(batches, owners, writer, folder)
    assert [path.name for path in folder.iterdir()] == ["lists.npy"]
    return lengths.tolist(), np.load(folder / "lists.npy").tolist(), (folder / "lists.npy").read_bytes()


def test_each_owner_gets_its_ranks_sorted_and_once(tmp_path: Path) -> None:
    lengths, lists, _ = written([(3, 9), (1, 2), (3, 0), (3, 9), (0, 5), (3, 4)], 5, tmp_path / "a", 10)
    assert (lengths, lists) == ([1, 1, 0, 3, 0], [5, 2, 0, 4, 9])
    assert written([], 4, tmp_path / "b", 10)[:2] == ([0, 0, 0, 0], [])


def test_posting_lists_depend_on_neither_order_nor_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(3)  # noqa: S311 - test data
    pairs = [(min(chance.randrange(40), chance.randrange(40)), chance.randrange(500)) for _ in range(3_000)]
    _, lists, once = written(pairs, 50, tmp_path / "once", 3_000)
    assert lists == [rank for owner in range(50) for rank in sorted({rank for one, rank in pairs if one == owner})]
    monkeypatch.setattr(posting_lists, "ROWS_PER_BUCKET", 100)
    chance.shuffle(pairs)
    assert written(pairs, 50, tmp_path / "again", 170)[2] == once


@given(st.lists(RANKS, min_size=1, max_size=3), st.integers(0, 70))
def test_common_ranks_are_those_of_all_lists_in_order(lists: list[list[int]], count: int) -> None:
    arrays = [np.array(ranks, dtype=np.uint32) for ranks in lists]
    assert intersect_lists(arrays, count).tolist() == sorted(set.intersection(*map(set, lists)))[:count]


def test_long_lists_that_share_little_are_searched_to_their_end() -> None:
    evens, odds = np.arange(0, 600_000, 2, dtype=np.uint32), np.arange(1, 600_000, 2, dtype=np.uint32)
    odds[-1] = evens[-1]
    assert intersect_lists([evens, np.sort(odds)], 5).tolist() == [599_998]


@given(RANKS, RANKS, st.integers(0, 60), st.integers(0, 60))
def test_find_members_and_slice_ranks_agree_with_sets(ranks: list[int], asked: list[int], start: int, end: int) -> None:
    array = np.array(ranks, dtype=np.uint32)
    assert find_members(array, np.array(asked, dtype=np.uint32)).tolist() == [one in ranks for one in asked]
    assert slice_ranks(array, start, end).tolist() == [one for one in ranks if start <= one < end]
