"""Tests that sorts and runs of packed numbers equal those of columns, also if the packed numbers collide."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipeline.linkage.sorted_runs import (
    build_lists,
    find_repeated,
    find_run_starts,
    list_run_places,
    mark_known,
    mark_mixed_runs,
    pack_with_duration,
    sort_distinct,
    sort_places,
)

rows = st.lists(st.tuples(st.sampled_from([0, 1, 2**24, 2**24 + 1, 2**63, 2**64 - 1]), st.integers(0, 2**25)), max_size=30)


@given(rows)
def test_rows_are_sorted_by_both_columns_despite_collisions_and_absurd_durations(rows: list[tuple[int, int]]) -> None:
    hashes = np.array([one for one, _ in rows], dtype=np.uint64)
    durations = np.array([other for _, other in rows], dtype=np.int32)
    order = sort_places(pack_with_duration(hashes, durations), hashes, durations)
    assert [rows[place] for place in order] == sorted(rows)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=30))
def test_run_starts_where_a_column_changes(rows: list[tuple[int, int]]) -> None:
    columns = [np.array([row[place] for row in rows], dtype=np.int64) for place in (0, 1)]
    assert find_run_starts(*columns).tolist() == [place for place, row in enumerate(rows) if place == 0 or rows[place - 1] != row]


def test_runs_of_several_values_are_marked() -> None:
    runs, values = np.array([1, 1, 2, 3, 3, 3, 4]), np.array([5, 5, 6, 7, 8, 8, 7])
    assert mark_mixed_runs(runs, values).tolist() == [False, False, False, True, True, True, False]
    assert mark_mixed_runs(runs[:0], values[:0]).tolist() == []


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12).map(sorted))
def test_mixed_runs_and_places_of_runs_equal_those_of_a_loop(rows: list[tuple[int, int]]) -> None:
    one, other = (np.array([row[side] for row in rows], dtype=np.int64) for side in (0, 1))
    assert mark_mixed_runs(one, other).tolist() == [len({second for first, second in rows if first == row[0]}) > 1 for row in rows]
    starts, lengths = one * 10, other
    expected = [place for start, length in zip(starts.tolist(), lengths.tolist(), strict=True) for place in range(start, start + length)]
    assert list_run_places(starts, lengths).tolist() == expected


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 4), max_size=12), st.sets(st.integers(0, 4) | st.just(2**64 - 1)))
def test_known_numbers_are_those_of_the_set(numbers: list[int], known: set[int]) -> None:
    marked = mark_known(pl.Series(numbers, dtype=pl.UInt64), np.array(sorted(known), dtype=np.uint64))
    assert marked.tolist() == [number in known for number in numbers]


@given(st.lists(st.lists(st.integers(0, 4) | st.just(2**64 - 1), max_size=6), min_size=1, max_size=4))
def test_pieces_give_their_distinct_and_their_repeated_numbers_in_order(pieces: list[list[int]]) -> None:
    numbers = [number for piece in pieces for number in piece]
    columns = [np.array(piece, dtype=np.uint64) for piece in pieces]
    assert sort_distinct(columns).tolist() == sorted(set(numbers))
    assert find_repeated(columns).tolist() == sorted({number for number in numbers if numbers.count(number) > 1})


def test_lists_are_cut_at_their_ends() -> None:
    assert build_lists(np.array([0, 2, 2, 3]), pl.Series(["a", "b", "c"])).to_list() == [["a", "b"], [], ["c"]]


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**26)), max_size=8))
def test_packed_numbers_keep_the_upper_bits_of_the_hash_and_the_duration(rows: list[tuple[int, int]]) -> None:
    hashes, durations = np.array([row[0] for row in rows], dtype=np.uint64), np.array([row[1] for row in rows], dtype=np.int64)
    packed = pack_with_duration(hashes, durations)
    assert packed.tolist() == [(number >> 24 << 24) | min(duration, 2**24 - 1) for number, duration in rows]
