from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.linkage.registry import (
    REGISTRY_SCHEMA,
    Assignment,
    assign_ids,
    collect_registry,
    merge_redirects,
    previous_registry,
    save_assignment,
)
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    import random
    from pathlib import Path

NO_REGISTRY = pl.DataFrame(schema=REGISTRY_SCHEMA)
MEMBER_SCHEMA = {"group": pl.Int64, "source_key": pl.String}


def members(*groups: str) -> pl.DataFrame:
    """One group per argument, its members the letters of it."""
    rows = [(number, key) for number, keys in enumerate(groups) for key in keys]
    return pl.DataFrame(rows, schema=MEMBER_SCHEMA, orient="row")


def by_key(assignment: Assignment) -> dict[str, int]:
    return dict(assignment.registry.iter_rows())


def redirects(assignment: Assignment) -> dict[int, int | None]:
    return dict(assignment.redirects.iter_rows())


def grow(*builds: tuple[str, ...]) -> Assignment:
    last = Assignment(pl.DataFrame(), NO_REGISTRY, pl.DataFrame(), 1)
    for groups in builds:
        last = assign_ids(members(*groups), last.registry, last.next_id)
    return last


def test_first_ids_follow_the_smallest_source_key_of_each_group() -> None:
    first = grow(("cd", "ba"))
    assert by_key(first) == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert first.next_id == 3
    assert redirects(first) == {}


def test_a_merge_keeps_the_id_with_more_members_and_redirects_the_other() -> None:
    merged = grow(("ab", "cde"), ("abcde",))
    assert set(by_key(merged).values()) == {2}
    assert redirects(merged) == {1: 2}


def test_a_split_keeps_the_id_on_the_larger_part() -> None:
    split = grow(("abcde",), ("ab", "cde"))
    assert by_key(split) == {"c": 1, "d": 1, "e": 1, "a": 2, "b": 2}
    assert redirects(split) == {}


def test_an_even_split_falls_to_the_part_with_the_smallest_key() -> None:
    assert by_key(grow(("abcd",), ("cd", "ab"))) == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_a_part_that_moves_to_another_entity_does_not_take_the_id_along() -> None:
    moved = grow(("abc", "de"), ("ab", "cde"))
    assert by_key(moved) == {"a": 1, "b": 1, "c": 2, "d": 2, "e": 2}
    assert redirects(moved) == {}


def test_an_id_whose_larger_part_merged_elsewhere_redirects_there_and_the_rest_is_new() -> None:
    result = grow(("abcd", "efg"), ("abcdef", "g"))
    assert by_key(result) == {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 3}
    assert redirects(result) == {2: 1}


def test_an_entity_that_left_redirects_to_nothing_and_finds_its_id_on_return() -> None:
    gone = grow(("ab", "cd"), ("ab",))
    assert redirects(gone) == {2: None}
    back = assign_ids(members("ab", "cdx"), gone.registry, gone.next_id)
    assert by_key(back) == {"a": 1, "b": 1, "c": 2, "d": 2, "x": 2}
    assert redirects(back) == {}


def test_an_absent_member_follows_the_merge_of_its_entity() -> None:
    merged = grow(("abc", "defx"), ("abcde",))
    back = assign_ids(members("abcdex"), merged.registry, merged.next_id)
    assert set(by_key(back).values()) == {1}


def test_a_source_key_in_two_groups_is_refused() -> None:
    with pytest.raises(ValueError, match="'b' is a member twice"):
        assign_ids(members("ab", "bc"), NO_REGISTRY, 1)


def test_a_next_id_that_is_taken_is_refused() -> None:
    with pytest.raises(ValueError, match="next_id 1 is not free"):
        assign_ids(members("ab"), grow(("ab",)).registry, 1)


partitions = st.lists(st.lists(st.integers(0, 5), min_size=9, max_size=9), min_size=1, max_size=5)
"""Several builds over nine source keys: the group of each, 0 meaning that the key is absent."""


def as_members(labels: list[int]) -> pl.DataFrame:
    rows = [(label, f"k{index}") for index, label in enumerate(labels) if label]
    return pl.DataFrame(rows, schema=MEMBER_SCHEMA, orient="row")


@settings(max_examples=40, deadline=None)
@given(partitions, st.randoms(use_true_random=False))
def test_neither_row_order_nor_group_numbers_change_any_id(builds: list[list[int]], chance: random.Random) -> None:
    plain = shuffled = Assignment(pl.DataFrame(), NO_REGISTRY, pl.DataFrame(), 1)
    for labels in builds:
        rows = as_members(labels)
        plain = assign_ids(rows, plain.registry, plain.next_id)
        numbers = chance.sample(range(100), 6)
        mixed = rows.with_columns(pl.col("group").replace_strict(dict(enumerate(numbers)), return_dtype=pl.Int64))
        mixed = mixed.sample(fraction=1, shuffle=True, seed=chance.randint(0, 9))
        shuffled = assign_ids(mixed, shuffled.registry.reverse(), shuffled.next_id)
        assert plain.registry.equals(shuffled.registry)
        assert plain.redirects.equals(shuffled.redirects)
        assert plain.next_id == shuffled.next_id


@settings(max_examples=40, deadline=None)
@given(partitions)
def test_ids_name_the_partition_and_are_never_reused(builds: list[list[int]]) -> None:
    last = Assignment(pl.DataFrame(), NO_REGISTRY, pl.DataFrame(), 1)
    ever: set[int] = set()
    merged_away: set[int] = set()
    for labels in builds:
        rows = as_members(labels)
        before = set(last.registry["entity_id"])
        current = assign_ids(rows, last.registry, last.next_id)
        ids = dict(current.ids.iter_rows())
        assert len(set(ids.values())) == len(ids) == rows["group"].n_unique()
        assert {key: ids[group] for group, key in rows.iter_rows()}.items() <= by_key(current).items()
        fresh = set(ids.values()) - before
        assert not fresh & ever
        assert all(last.next_id <= entity < current.next_id for entity in fresh)
        assert set(redirects(current)) == before - set(ids.values())
        assert {new for new in redirects(current).values() if new is not None} <= set(ids.values())
        assert not merged_away & set(ids.values())
        merged_away |= {old for old, new in redirects(current).items() if new is not None}
        ever |= set(ids.values())
        last = current


def test_old_redirects_are_carried_on_and_chains_followed() -> None:
    old = pl.DataFrame({"old_id": [1, 2, 3, 4], "new_id": [5, 6, None, 7]})
    new = pl.DataFrame({"old_id": [5, 7], "new_id": [8, None]})
    merged = merge_redirects(old, new, pl.Series([3, 6, 8]))
    assert merged.rows() == [(1, 8), (2, 6), (4, None), (5, 8), (7, None)]


def published(paths: BuildPaths, name: str, next_ids: dict[str, int]) -> None:
    """What a publish does with the registry: copy the two tables, note the next ids, switch `current`."""
    tables = paths.snapshots / name / "tables"
    tables.mkdir(parents=True)
    for table in ("id_registry", "redirect"):
        target = tables / table
        target.mkdir()
        for part in paths.table(table).iterdir():
            (target / part.name).write_bytes(part.read_bytes())
    (paths.snapshots / name / "manifest.json").write_text(json.dumps({"next_ids": next_ids}))
    paths.current.unlink(missing_ok=True)
    paths.current.symlink_to(paths.snapshots / name)


def build(paths: BuildPaths, kind: str, *groups: str) -> Assignment:
    registry, next_id = previous_registry(paths, kind)
    assignment = assign_ids(members(*groups), registry, next_id)
    save_assignment(paths, kind, assignment)
    return assignment


def test_nothing_published_yet_means_an_empty_registry(tmp_path: Path) -> None:
    registry, next_id = previous_registry(BuildPaths(tmp_path), "recording")
    assert registry.is_empty()
    assert next_id == 1


def test_registry_and_redirects_survive_from_snapshot_to_snapshot(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    build(paths, "recording", "ab", "c", "d")
    build(paths, "artist", "x")
    published(paths, "one", collect_registry(paths))
    build(paths, "recording", "abc", "d")
    published(paths, "two", collect_registry(paths))
    build(paths, "recording", "abcd")
    next_ids = collect_registry(paths)

    assert next_ids == {"artist": 2, "label": 1, "recording": 4, "release": 1}
    rows = read_table(TABLES["redirect"], paths.table("redirect")).rows()
    assert rows == [("recording", 2, 1), ("recording", 3, 1)]
    kept = read_table(TABLES["id_registry"], paths.table("id_registry"))
    assert ("artist", "x", 1) in kept.rows()
    assert kept.filter(pl.col("kind") == "recording")["entity_id"].to_list() == [1, 1, 1, 1]


def test_ids_given_out_after_the_snapshot_one_rolled_back_to_are_not_reused(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    build(paths, "recording", "a")
    published(paths, "one", collect_registry(paths))
    build(paths, "recording", "a", "b")
    published(paths, "two", collect_registry(paths))
    paths.current.unlink()
    paths.current.symlink_to(paths.snapshots / "one")
    assert by_key(build(paths, "recording", "a", "c")) == {"a": 1, "c": 3}


def test_a_returning_entity_loses_its_redirect_to_nothing(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    build(paths, "release", "a", "b")
    published(paths, "one", collect_registry(paths))
    build(paths, "release", "a")
    published(paths, "two", collect_registry(paths))
    assert read_table(TABLES["redirect"], paths.table("redirect")).rows() == [("release", 2, None)]
    build(paths, "release", "a", "b")
    collect_registry(paths)
    assert read_table(TABLES["redirect"], paths.table("redirect")).is_empty()


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no ids of kind 'work'"):
        save_assignment(BuildPaths(tmp_path), "work", grow(("a",)))
