"""Tests of `recording_member` of the base: the answers do not depend on where its parts are cut."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import TableWriter
from pipeline.linkage.incremental.base_members import BaseMembers

Records = dict[tuple[str, str], int]
FIRST, SECOND, THIRD = sorted(CATALOG_PLATFORMS)[:3]
KEYS = st.tuples(st.sampled_from([FIRST, SECOND, THIRD]), st.text("bdé", min_size=1, max_size=2))
RECORDS = st.dictionaries(KEYS, st.integers(1, 9), max_size=16)


def as_frame(records: Records) -> pl.DataFrame:
    return pl.DataFrame([(*key, number) for key, number in records.items()], schema=TABLES["recording_member"].polars_schema, orient="row")


def write_members(folder: Path, records: Records, rows_per_part: int = 2) -> BaseMembers:
    """Write the table in parts of some rows, each platform in parts of its own."""
    rows = as_frame(dict(sorted(records.items())))
    with TableWriter(TABLES["recording_member"], folder) as writer:
        for here in rows.partition_by("platform", maintain_order=True):
            for part in here.iter_slices(rows_per_part):
                writer.write(part)
    return BaseMembers(folder)


def splice(members: BaseMembers, gone: set[tuple[str, str]], changed: Records) -> list[tuple[str, str, int]]:
    found = list(members.splice(as_frame(dict.fromkeys(gone, 0)).drop("recording_id"), as_frame(changed)))
    rows = pl.concat([rows for _, rows in found])
    assert [platform for platform, rows in found for _ in range(rows.height)] == rows["platform"].to_list()
    return rows.rows()


def expect(held: Records, gone: set[tuple[str, str]], changed: Records) -> list[tuple[str, str, int]]:
    return sorted((*key, number) for key, number in (held | changed).items() if key not in gone)


@settings(deadline=None, max_examples=60)
@given(RECORDS, RECORDS, st.sets(KEYS), st.sets(st.integers(0, 12)), st.integers(1, 4))
def test_answers_do_not_depend_on_the_parts(
    held: Records, changed: Records, gone: set[tuple[str, str]], wanted: set[int], rows_per_part: int
) -> None:
    gone -= set(changed)
    with TemporaryDirectory() as folder:
        members = write_members(Path(folder) / "recording_member", held, rows_per_part)
        asked = as_frame(dict.fromkeys([*changed, *gone], -1)).rename({"recording_id": "atom_id"})
        assert sorted(members.read_ids(asked).rows()) == sorted((*key, -1, held[key]) for key in {*changed, *gone} & set(held))
        found = members.read_keys(pl.Series(sorted(wanted), dtype=pl.Int64))
        assert found.rows() == [(":".join(key), number) for key, number in sorted(held.items()) if number in wanted]
        assert splice(members, gone, changed) == expect(held, gone, changed)


HELD: Records = {(FIRST, "d"): 1, (FIRST, "f"): 2, (FIRST, "h"): 3, (FIRST, "j"): 4, (FIRST, "l"): 5, (SECOND, "b"): 6}


@pytest.mark.parametrize(
    ("gone", "changed"),
    [
        pytest.param(set(), {(FIRST, "a"): 9}, id="record before the first row"),
        pytest.param(set(), {(FIRST, "g"): 9}, id="record between two parts"),
        pytest.param(set(), {(FIRST, "z"): 9}, id="record after the last row"),
        pytest.param(set(), {(THIRD, "a"): 9}, id="platform without records in the base"),
        pytest.param({(FIRST, "d"), (FIRST, "f")}, {}, id="part that loses every row"),
        pytest.param({(FIRST, "h"), (FIRST, "j")}, {(FIRST, "i"): 9}, id="part that exchanges every row"),
        pytest.param({(FIRST, "l")}, {(FIRST, "k"): 9}, id="last part that exchanges every row"),
        pytest.param({(SECOND, "b")}, {}, id="platform that loses every record"),
    ],
)
def test_changes_at_the_ends_of_parts_reach_their_place(gone: set[tuple[str, str]], changed: Records, tmp_path: Path) -> None:
    members = write_members(tmp_path / "recording_member", HELD)
    assert splice(members, gone, changed) == expect(HELD, gone, changed)


def test_table_without_rows_takes_new_records(tmp_path: Path) -> None:
    members = write_members(tmp_path / "recording_member", {})
    assert members.read_keys(pl.Series([1], dtype=pl.Int64)).is_empty()
    assert members.read_keys(pl.Series(dtype=pl.Int64)).is_empty()
    assert splice(members, set(), {(SECOND, "a"): 1}) == [(SECOND, "a", 1)]


def test_part_with_two_platforms_is_refused(tmp_path: Path) -> None:
    with TableWriter(TABLES["recording_member"], tmp_path / "recording_member") as writer:
        writer.write(as_frame(HELD))
    with pytest.raises(ValueError, match=rf"part-00000\.parquet holds records of {FIRST} and {SECOND}"):
        BaseMembers(tmp_path / "recording_member")
