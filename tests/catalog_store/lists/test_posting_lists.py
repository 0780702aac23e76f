from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from catalog_store.array_files import ArrayWriter
from catalog_store.lists import posting_lists
from catalog_store.lists.posting_lists import compare_lists, write_lists

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray


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


@pytest.mark.parametrize("rows", [1_000, 20])
def test_differences_are_the_pairs_that_one_side_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(posting_lists, "ROWS_PER_BUCKET", rows)
    chance = random.Random(rows)  # noqa: S311 - test data
    before = {(chance.randrange(30), chance.randrange(50)) for _ in range(400)}
    # Owners 30 to 39 are new, owners 20 to 29 have no pairs any more.
    now = {(owner, rank) for owner, rank in before if owner < 20 and chance.random() < 0.9} | {(chance.randrange(40), 3) for _ in range(9)}
    lengths, lists, _ = written(sorted(before), 30, tmp_path / "before", 1_000)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    owners, ranks = (np.array(column, dtype=np.int64) for column in zip(*now, strict=True))
    found, added, removed = compare_lists(
        lambda: iter([(owners, ranks.astype(np.uint32))]), 40, np.array(lists, dtype=np.uint32), starts, tmp_path
    )
    assert found.tolist() == [sum(one == owner for one, _ in now) for owner in range(40)]
    assert [divmod(pair, 1 << 32) for pair in added.tolist()] == sorted(now - before)
    assert [divmod(pair, 1 << 32) for pair in removed.tolist()] == sorted(before - now)
