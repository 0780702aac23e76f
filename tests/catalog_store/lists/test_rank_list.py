from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.layered_order import IN_BASE, PLACE_BITS, rank_base
from catalog_store.lists.rank_list import RankList, find_members, intersect_lists, unite_lists

NUMBERS = st.lists(st.integers(0, 60), unique=True).map(sorted)
FAR = 100 << PLACE_BITS


@st.composite
def lists(draw: st.DrawFn, *, is_range: bool = False) -> RankList:
    """Return a list of a base and a delta: ranks of the delta, and ranks of the base that it has more."""
    base = list(range(*sorted((draw(st.integers(0, 60)), draw(st.integers(0, 60)))))) if is_range else draw(NUMBERS)
    removed = [one for one in base if draw(st.booleans())] if draw(st.booleans()) else []
    more = [one for one in draw(NUMBERS) if one not in base and not is_range]
    in_delta = sorted(draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), unique=True, max_size=8)))
    added = sorted([*(place << PLACE_BITS | number for place, number in in_delta), *(one << PLACE_BITS | IN_BASE for one in more)])
    held = range(base[0], base[-1] + 1) if is_range and base else range(0) if is_range else np.array(base, dtype=np.uint32)
    return RankList(held, np.array(removed, dtype=np.uint32), np.array(added, dtype=np.uint64))


def plain(listed: RankList) -> list[int]:
    """Return all ranks, found without the code under test."""
    removed = set(listed.removed.tolist())
    return sorted([*(int(one) << PLACE_BITS | IN_BASE for one in listed.base if int(one) not in removed), *listed.added.tolist()])


EITHER = st.one_of(lists(), lists(is_range=True))
BOUNDS = st.tuples(st.integers(0, 61), st.sampled_from([0, 1, 3, 5, IN_BASE])).map(lambda pair: pair[0] << PLACE_BITS | pair[1])


@given(EITHER, st.integers(0, 70))
def test_first_ranks_are_read_in_order(listed: RankList, count: int) -> None:
    assert listed.read(count).tolist() == plain(listed)[:count]
    assert len(listed) == len(plain(listed))


@given(EITHER, BOUNDS, BOUNDS)
def test_slice_holds_the_ranks_between_two_places(listed: RankList, start: int, end: int) -> None:
    found = listed.slice(start, end)
    assert found.read(1_000).tolist() == [rank for rank in plain(listed) if start <= rank < end]
    assert found.slice(start + 1, FAR).read(1_000).tolist() == [rank for rank in plain(listed) if start < rank < end]


@given(EITHER, EITHER)
def test_members_are_found_among_ranks_of_both_layers(listed: RankList, asked: RankList) -> None:
    candidates = asked.read(1_000)
    assert listed.find_members(candidates).tolist() == [rank in plain(listed) for rank in candidates.tolist()]


@given(st.lists(EITHER, min_size=1, max_size=3), st.integers(0, 70))
def test_common_ranks_are_those_of_all_lists_in_order(several: list[RankList], count: int) -> None:
    common = sorted(set.intersection(*(set(plain(each)) for each in several)))
    assert intersect_lists(several, count).tolist() == common[:count]
    assert unite_lists(several).read(1_000).tolist() == sorted({rank for each in several for rank in plain(each)})


def test_long_lists_that_share_little_are_searched_to_their_end() -> None:
    evens, odds = np.arange(0, 600_000, 2, dtype=np.uint32), np.arange(1, 600_000, 2, dtype=np.uint32)
    odds[-1] = evens[-1]
    assert intersect_lists([RankList(evens), RankList(np.sort(odds))], 5).tolist() == rank_base(evens[-1:]).tolist()


@given(NUMBERS, NUMBERS)
def test_find_members_agrees_with_sets(numbers: list[int], asked: list[int]) -> None:
    found = find_members(np.array(numbers, dtype=np.uint32), np.array(asked, dtype=np.uint32))
    assert found.tolist() == [one in numbers for one in asked]
