"""Tests of atoms at their limits: cuts between durations, the atom of an untimed record, ids of buckets, order of rows."""

from __future__ import annotations

import math
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.record_keys.numbers import hash_columns
from catalog_store.tables import TABLES
from pipeline.linkage import atoms
from pipeline.linkage.atoms import ATOM_SEED, Atoms, compute_bucket_range, make_atoms
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.normal_forms import collect_names, normalise
from tests.pipeline.linkage.worlds import Records


def make(records: Records) -> Atoms:
    frame, artists = records.frame(), TABLES["source_artist"].build_empty()
    return make_atoms(normalise(frame, build_name_table(collect_names(frame, artists)), artists).rechunk())


@settings(deadline=None, max_examples=25)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([0, 2000, 2001, 3999, 4000, 4001, 8000, 9999, 10_000, 10_001, 14_000, 20_000])),
        max_size=9,
    ),
    is_generic=st.booleans(),
)
def test_durations_are_cut_at_gaps_and_after_each_span(rows: list[tuple[int, int]], is_generic: bool) -> None:  # noqa: FBT001
    rows = sorted(rows)
    frame = pl.DataFrame(rows, schema={"key": pl.UInt64, "duration_ms": pl.Int64}, orient="row")
    gap = 2_000 if is_generic else 4_000
    expected, part, chain, slot = [], 0, 0, 0
    for number, (key, duration) in enumerate(rows):
        if number == 0 or key != rows[number - 1][0] or duration - rows[number - 1][1] > gap:
            part, chain, slot = part + 1, duration, 0
        elif (duration - chain) // 10_000 != slot:
            part, slot = part + 1, (duration - chain) // 10_000
        expected.append(part)
    assert atoms._cut_by_duration(frame.with_columns(is_generic=pl.lit(is_generic)))["part"].to_list() == expected


@pytest.mark.parametrize(("several", "other", "is_one"), [(4, 1, True), (3, 1, False), (8, 2, True), (7, 2, False)])
def test_record_without_duration_joins_an_atom_that_holds_four_of_five(several: int, other: int, is_one: bool) -> None:  # noqa: FBT001
    records = Records()
    for number in range(several):
        records.add(f"a{number}", seconds=200)
    for number in range(other):
        records.add(f"b{number}", seconds=300)
    member = make(records.add("untimed", seconds=None)).member
    found = {frozenset(ids) for ids in member.group_by("atom_id").agg("external_id")["external_id"].to_list()}
    assert any({"untimed", "a0"} <= together for together in found) is is_one
    assert (frozenset({"untimed"}) in found) is not is_one


@pytest.mark.parametrize(
    ("code", "is_one"), [("", True), ("GBABC2000001", True), ("GBABC2000002", False)], ids=["no code", "its code", "another code"]
)
def test_record_without_duration_waits_if_its_code_is_none_of_the_atom(code: str, is_one: bool) -> None:  # noqa: FBT001
    records = Records().add("a", isrcs="GBABC2000001").add("b").add("untimed", isrcs=code, seconds=None)
    assert make(records).atom.height == (1 if is_one else 2)
    uncoded = Records().add("a").add("b").add("untimed", isrcs=code, seconds=None)
    assert make(uncoded).atom.height == 1


@pytest.mark.parametrize("buckets", [1, 2, 3, 7, 1000, 1 << 16])
def test_buckets_share_all_atom_ids_between_them(buckets: int) -> None:
    ranges = [compute_bucket_range(bucket, buckets) for bucket in range(buckets)]
    assert (ranges[0][0], ranges[-1][1]) == (0, (1 << 63) - 1)
    assert all(first[1] + 1 == second[0] for first, second in pairwise(ranges))
    assert [start for start, _ in ranges] == [math.ceil(bucket * (1 << 16) / buckets) << 47 for bucket in range(buckets)]


def test_members_are_in_order_of_atoms_and_then_of_the_hash_of_their_names() -> None:
    records = Records()
    for number in range(60):
        records.add(f"r{number}", f"Song {number % 7}")
    member = make(records).member
    hashes = member.select(hash_columns(["platform", "external_id"], ATOM_SEED)).to_series()
    rows = list(zip(member["atom_id"], hashes, strict=True))
    assert rows == sorted(rows)
    assert member["atom_id"].n_unique() == 7


def test_atom_takes_the_median_duration_and_the_names_of_all_members() -> None:
    records = Records().add("a", artists=["Astrid", "Mira"], seconds=200).add("b", platform="store_a", seconds=201)
    records.add("c", platform="store_a", artists=["Astrid", "Kask"], seconds=203.5)
    (row,) = make(records).atom.iter_rows(named=True)
    assert (row["duration_ms"], row["record_count"], row["platform_count"]) == (201_000, 3, 2)
    assert row["names"] == ["astrid", "kask", "mira"]


def test_codes_of_an_atom_count_records_and_platforms() -> None:
    records = Records().add("a", isrcs="USAAA2000001 DEBBB2000002").add("b", isrcs="USAAA2000001")
    records.add("c", platform="store_a", isrcs="USAAA2000001")
    found = make(records).isrc.select("isrc", "record_count", "platforms").rows()
    assert found == [("DEBBB2000002", 1, ["streamsvc_a"]), ("USAAA2000001", 3, ["store_a", "streamsvc_a"])]


def test_no_records_make_empty_tables() -> None:
    empty = make_atoms(pl.DataFrame())
    assert [rows.height for rows in empty] == [0, 0, 0]
    assert empty.atom.columns == TABLES["atom"].column_names
