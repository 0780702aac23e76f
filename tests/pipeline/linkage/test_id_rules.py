from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.linkage.id_rules import NO_REGISTRY, Assignment, Registry, assign_ids
from tests.pipeline.linkage.id_builds import MEMBER_SCHEMA, NOTHING, as_members, partitions, resolve_keys, same

if TYPE_CHECKING:
    import random


def members(*groups: str) -> pl.DataFrame:
    """Return a group for each argument, with its letters as members."""
    rows = [(number, key) for number, keys in enumerate(groups) for key in keys]
    return pl.DataFrame(rows, schema=MEMBER_SCHEMA, orient="row")


def grow(*builds: tuple[str, ...], after: Assignment = NOTHING) -> Assignment:
    for groups in builds:
        after = assign_ids(members(*groups), after.registry, after.next_id)
    return after


def by_key(assignment: Assignment) -> dict[str, int]:
    return resolve_keys(assignment.registry)


def redirects(assignment: Assignment) -> dict[int, int | None]:
    return dict(assignment.redirects.iter_rows())


def test_first_ids_follow_the_smallest_source_key_of_each_group() -> None:
    first = grow(("cd", "ba"))
    assert by_key(first) == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert first.next_id == 3
    assert redirects(first) == {}


def test_merge_keeps_the_id_with_more_members_and_redirects_the_other() -> None:
    merged = grow(("ab", "cde"), ("abcde",))
    assert set(by_key(merged).values()) == {2}
    assert redirects(merged) == {1: 2}


def test_split_keeps_the_id_on_the_larger_part() -> None:
    split = grow(("abcde",), ("ab", "cde"))
    assert by_key(split) == {"c": 1, "d": 1, "e": 1, "a": 2, "b": 2}
    assert redirects(split) == {}


def test_even_split_falls_to_the_part_with_the_smallest_key() -> None:
    assert by_key(grow(("abcd",), ("cd", "ab"))) == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_part_that_moves_to_another_entity_does_not_take_the_id_along() -> None:
    moved = grow(("abc", "de"), ("ab", "cde"))
    assert by_key(moved) == {"a": 1, "b": 1, "c": 2, "d": 2, "e": 2}
    assert redirects(moved) == {}


def test_id_redirects_to_where_its_larger_part_merged() -> None:
    result = grow(("abcd", "efg"), ("abcdef", "g"))
    assert by_key(result) == {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 3}
    assert redirects(result) == {2: 1}


def test_absent_entity_redirects_to_nothing_and_regains_its_id() -> None:
    gone = grow(("ab", "cd"), ("ab",))
    assert redirects(gone) == {2: None}
    back = grow(("ab", "cdx"), after=gone)
    assert by_key(back) == {"a": 1, "b": 1, "c": 2, "d": 2, "x": 2}
    assert redirects(back) == {}


def test_absent_member_follows_the_merge_of_its_entity() -> None:
    assert set(by_key(grow(("abc", "defx"), ("abcde",), ("abcdex",))).values()) == {1}


def test_redirect_returns_with_its_target() -> None:
    merged = grow(("a", "bcd", "x"), ("abcd", "x"))
    assert redirects(merged) == {1: 2}
    gone = grow(("x",), after=merged)
    assert redirects(gone) == {1: None, 2: None}
    assert redirects(grow(("x",), ("x",), ("bcd", "x"), after=gone)) == {1: 2}


def test_chain_of_merges_survives_two_nights_without_its_target() -> None:
    merged = grow(("a", "bc", "defg", "x"), ("abc", "defg", "x"), ("abcdefg", "x"))
    assert redirects(merged) == {1: 3, 2: 3}
    gone = grow(("x",), ("x",), after=merged)
    assert redirects(gone) == {1: None, 2: None, 3: None}
    assert redirects(grow(("defg", "x"), after=gone)) == {1: 3, 2: 3}


def test_undone_merge_restores_both_ids() -> None:
    undone = grow(("ab", "cde"), ("abcde",), ("ab", "cde"))
    assert by_key(undone) == {"a": 1, "b": 1, "c": 2, "d": 2, "e": 2}
    assert redirects(undone) == {}
    assert undone.next_id == 3


def test_chain_of_merges_undone_step_by_step_restores_every_id() -> None:
    chain = grow(("a", "bc", "defg"), ("abc", "defg"), ("abcdefg",))
    halfway = grow(("abc", "defg"), after=chain)
    assert (by_key(halfway)["a"], redirects(halfway)) == (2, {1: 2})
    assert redirects(grow(("a", "bc", "defg"), after=halfway)) == {}


def test_part_without_members_of_a_merged_id_does_not_regain_it() -> None:
    split = grow(("ab", "cdefg"), ("abcdefg",), ("abcde", "fg"))
    assert by_key(split)["f"] == 3
    assert redirects(split) == {1: 2}


def test_id_that_was_merged_away_follows_its_own_members() -> None:
    moved = grow(("ab", "cde", "xyz"), ("abcde", "xyz"), ("cde", "abxyz"))
    assert redirects(moved) == {1: 3}


def test_returning_members_of_a_merged_id_leave_the_other_id_to_its_own_members() -> None:
    undone = grow(("abx", "yz"), ("xyz",), ("abx", "yz"))
    assert by_key(undone) == {"a": 1, "b": 1, "x": 1, "y": 2, "z": 2}
    assert (redirects(undone), undone.next_id) == ({}, 3)


def test_equal_share_of_an_id_leaves_it_where_no_other_is_used() -> None:
    returned = grow(("abx", "y"), ("ab", "xy"), ("abx", "y"))
    assert by_key(returned) == {"a": 1, "b": 1, "x": 1, "y": 2}
    assert redirects(returned) == {}
    split = grow(("ay", "bcd"), ("abcd", "y"))
    assert by_key(split) == {"a": 2, "b": 2, "c": 2, "d": 2, "y": 1}


def test_equal_share_of_a_merged_id_goes_to_the_group_without_one() -> None:
    split = grow(("by", "cdefg", "ahi"), ("bycdefg", "ahi"), ("cdefg", "bahi", "y"))
    assert by_key(split)["y"] == 2
    assert redirects(split) == {}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=9, max_size=9), st.sets(st.integers(0, 8)), st.lists(st.integers(1, 6), min_size=7, max_size=7))
def test_undone_merges_of_what_was_left_restore_every_id(labels: list[int], absent: set[int], merged_into: list[int]) -> None:
    first = assign_ids(as_members(labels), NO_REGISTRY, 1)
    left = [0 if place in absent else merged_into[label] for place, label in enumerate(labels)]
    between = assign_ids(as_members(left), first.registry, first.next_id)
    again = assign_ids(as_members(labels), between.registry, between.next_id)
    assert same(again, first)


def test_source_key_in_two_groups_is_rejected() -> None:
    with pytest.raises(ValueError, match="'b' is a member twice"):
        assign_ids(members("ab", "bc"), NO_REGISTRY, 1)


def test_taken_next_id_is_rejected() -> None:
    with pytest.raises(ValueError, match="next_id 1 is not free"):
        assign_ids(members("ab"), grow(("ab",)).registry, 1)
    with pytest.raises(ValueError, match="next_id 2 is not free"):
        assign_ids(members("abc"), Registry(links=pl.DataFrame({"old_id": [2], "new_id": [2]})), 2)


@settings(max_examples=30, deadline=None)
@given(partitions, st.randoms(use_true_random=False))
def test_neither_row_order_nor_group_numbers_change_any_id(builds: list[list[int]], chance: random.Random) -> None:
    plain = shuffled = NOTHING
    for labels in builds:
        rows = as_members(labels)
        plain = assign_ids(rows, plain.registry, plain.next_id)
        numbers = chance.sample(range(100), 6)
        mixed = rows.with_columns(pl.col("group").replace_strict(dict(enumerate(numbers)), return_dtype=pl.Int64))
        mixed = mixed.sample(fraction=1, shuffle=True, seed=chance.randint(0, 9))
        shuffled = assign_ids(mixed, shuffled.registry, shuffled.next_id)
        assert same(plain, shuffled)


@settings(max_examples=50, deadline=None)
@given(partitions)
def test_ids_match_the_partition_are_never_reused_and_redirect(builds: list[list[int]]) -> None:
    last, given_to = NOTHING, dict[int, set[str]]()
    for labels in builds:
        rows = as_members(labels)
        current = assign_ids(rows, last.registry, last.next_id)
        ids = dict(current.ids.iter_rows())
        assert len(set(ids.values())) == len(ids) == rows["group"].n_unique()
        assert {key: ids[group] for group, key in rows.iter_rows()}.items() <= by_key(current).items()
        for group, entity in ids.items():
            held = set(rows.filter(pl.col("group") == group)["source_key"])
            if entity in given_to:
                assert held & given_to[entity]
            else:
                assert last.next_id <= entity < current.next_id
            given_to.setdefault(entity, set()).update(held)
        ends = redirects(current)
        assert set(ends) == set(given_to) - set(ids.values())
        assert {new for new in ends.values() if new is not None} <= set(ids.values())
        for old, new in current.registry.links.rows() * 3:  # chains are short
            given_to[new] |= given_to[old]
        again = assign_ids(rows, current.registry, current.next_id)
        assert same(again, current)
        last = current
