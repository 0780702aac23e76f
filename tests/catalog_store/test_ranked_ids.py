from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.ranked_ids import number_ids, rank_by_popularity, sort_blocks
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

ROWS = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 3) | st.integers(0, 2**32 - 1)), unique_by=lambda row: row[0])


def split(rows: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [one for one, _ in rows], [key for _, key in rows]


def sort_rows(ids: NDArray[np.int64], keys: list[int]) -> tuple[list[int], list[int]]:
    """Sort by blocks of three rows."""
    every = np.array(keys, dtype=np.uint32)
    blocks = [(ids[first : first + 3], every[first : first + 3]) for first in range(0, len(ids), 3)]
    found, sorted_keys = sort_blocks(lambda: iter(blocks), len(ids))
    return found.tolist(), sorted_keys.tolist()


@given(ROWS)
def test_ids_are_ordered_by_key_descending_then_by_id(rows: list[tuple[int, int]]) -> None:
    ids, keys = split(rows)
    found, sorted_keys = sort_rows(np.array(ids, dtype=np.int64), keys)
    assert list(zip(found, sorted_keys, strict=True)) == sorted(rows, key=lambda row: (-row[1], row[0]))


@given(ROWS, st.integers(2**32, 2**40))
def test_ids_beyond_32_bits_have_the_same_order(rows: list[tuple[int, int]], more: int) -> None:
    ids, keys = split(rows)
    small, small_keys = sort_rows(np.array(ids, dtype=np.int64), keys)
    large, large_keys = sort_rows(np.array(ids, dtype=np.int64) + more, keys)
    assert [one - more for one in large] == small
    assert large_keys == small_keys


def test_number_of_an_id_is_its_place() -> None:
    assert number_ids(np.array([7, 2, 5], dtype=np.uint32)).tolist() == [0, 0, 1, 0, 0, 2, 0, 0]
    assert number_ids(np.empty(0, dtype=np.uint32)).tolist() == [0]


def test_popularity_ranks_all_recordings_of_a_table(tables: dict[str, Path]) -> None:
    ids, popularity = rank_by_popularity(tables)
    expected = read_table(TABLES["recording"], tables["recording"]).sort("popularity", "recording_id", descending=[True, False])
    assert ids.tolist() == expected["recording_id"].to_list()
    assert popularity.tolist() == expected["popularity"].cast(pl.Float32).to_list()


@pytest.mark.parametrize("popularities", [[0.0, -0.0, 1.0, 0.5], [1e-9, 0.0, 2e-9, 1e-9]])
def test_zeros_and_tiny_popularities_are_ranked_as_numbers(popularities: list[float], tmp_path: Path) -> None:
    (tmp_path / "recording").mkdir()
    rows = pl.DataFrame({"recording_id": [4, 3, 2, 1], "popularity": popularities})
    rows.write_parquet(tmp_path / "recording" / "part-00000.parquet")
    ids, _ = rank_by_popularity({"recording": tmp_path / "recording"})
    assert ids.tolist() == rows.sort("popularity", "recording_id", descending=[True, False])["recording_id"].to_list()
