"""Tests of the groups of two nights: they equal a search through both whole tables, wherever their parts are cut."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.linkage.incremental.group_changes import GroupChanges

Groups = dict[int, int]
LABELS = st.dictionaries(st.integers(-9, 9), st.integers(0, 5), max_size=14)
"""A label of each atom; atoms with one label form a group."""


def name_groups(labels: Groups) -> Groups:
    """Return the group of each atom, which is named by its smallest atom."""
    return {atom: min(other for other in labels if labels[other] == labels[atom]) for atom in sorted(labels)}


def write_cluster(folder: Path, groups: Groups, rows_per_part: int) -> Path:
    rows = pl.DataFrame(sorted(groups.items()), schema=TABLES["cluster"].polars_schema, orient="row")
    write_table(TABLES["cluster"], folder, rows.iter_slices(rows_per_part))
    return folder


def list_changes(tonight: Groups, before: Groups) -> pl.DataFrame:
    rows = [(atom, "gone") for atom in before if atom not in tonight] + [(atom, "made") for atom in tonight if atom not in before]
    return pl.DataFrame(rows, schema=TABLES["atom_change"].polars_schema, orient="row")


def compare(folder: Path, tonight: Groups, before: Groups, change: pl.DataFrame, rows_per_part: tuple[int, int] = (3, 2)) -> GroupChanges:
    tables = (
        write_cluster(folder / name, *found) for name, *found in zip(("tonight", "base"), (tonight, before), rows_per_part, strict=True)
    )
    return GroupChanges(*tables, change)


def close(atoms: set[int], tonight: Groups, before: Groups) -> set[int]:
    while True:
        wider = atoms | {
            atom for groups in (tonight, before) for atom in groups if groups[atom] in {groups[other] for other in atoms if other in groups}
        }
        if wider == atoms:
            return atoms
        atoms = wider


@settings(deadline=None, max_examples=100)
@given(LABELS, LABELS, st.sets(st.integers(-9, 9)), st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_groups_equal_those_of_whole_tables(tonight: Groups, before: Groups, dirty: set[int], rows_per_part: tuple[int, int]) -> None:
    tonight, before = name_groups(tonight), name_groups(before)
    dirty &= {*tonight, *before}
    with TemporaryDirectory() as folder:
        found = compare(Path(folder), tonight, before, list_changes(tonight, before), rows_per_part)
    assert found.moved.tolist() == [atom for atom in tonight if atom in before and tonight[atom] != before[atom]]
    assert found.close_over(np.array(sorted(dirty, reverse=True), dtype=np.int64)).tolist() == sorted(close(dirty, tonight, before))
    some = sorted(dirty & set(tonight))
    assert found.tonight.find_groups(pl.Series(some, dtype=pl.Int64)).to_list() == [tonight[atom] for atom in some]


@pytest.mark.parametrize(
    ("tonight", "before"),
    [
        pytest.param({1: 1, 2: 2, 3: 3, 9: 9}, {1: 1, 2: 2, 3: 3}, id="atom that no change explains"),
        pytest.param({2: 2, 3: 3, 4: 4}, {1: 1, 2: 2, 3: 3, 4: 4}, id="lost atom before the first row"),
        pytest.param({1: 1, 2: 2, 3: 3}, {1: 1, 2: 2, 3: 3, 9: 9}, id="lost atom after the last row"),
    ],
)
def test_unexplained_atom_is_refused(tonight: Groups, before: Groups, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not explain"):
        compare(tmp_path, tonight, before, TABLES["atom_change"].build_empty())
