"""Tests that ids of changed groups equal those of a full assignment."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.linkage.id_rules import assign_ids
from pipeline.linkage.incremental.id_changes import assign_changed_ids, cut_registry, patch_registry
from tests.pipeline.linkage.id_builds import NOTHING, as_members, partitions, same

if TYPE_CHECKING:
    import random


@settings(max_examples=50, deadline=None)
@given(partitions, st.lists(st.integers(0, 5), min_size=9, max_size=9), st.randoms(use_true_random=False))
def test_changed_groups_get_the_ids_of_a_full_assignment(builds: list[list[int]], tonight: list[int], chance: random.Random) -> None:
    last = NOTHING
    for labels in builds:
        last = assign_ids(as_members(labels), last.registry, last.next_id)
    before, rows = as_members(builds[-1]), as_members(tonight)
    full = assign_ids(rows, last.registry, last.next_id)

    sets = [{frozenset(keys) for keys in frame.group_by("group").agg("source_key")["source_key"].to_list()} for frame in (before, rows)]
    changed = {key for held in sets[0] ^ sets[1] for key in held} | {f"k{chance.randint(0, 8)}"}
    changed_keys = pl.Series(sorted(changed), dtype=pl.String)
    reached = cut_registry(last.registry, changed_keys).keys["source_key"].to_list()
    touched = rows.filter(pl.col("source_key").is_in([*changed, *reached]))["group"]
    part = rows.filter(pl.col("group").is_in(touched.implode()))
    known = cut_registry(last.registry, pl.concat([changed_keys.rename("source_key"), part["source_key"]]))
    assigned = assign_changed_ids(part, known, last.redirects, last.next_id)
    assigned = replace(assigned, registry=patch_registry(last.registry, known, assigned.registry))

    assert set(assigned.ids.rows()) <= set(full.ids.rows())
    assert set(full.ids["entity_id"]) - set(assigned.ids["entity_id"]) <= set(last.ids["entity_id"])
    assert same(assigned, full)
