from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from catalog_store.tables.checks import derive_checks, run_check, run_checks
from catalog_store.tables.files import write_table
from catalog_store.tables.spec import FLOAT, INT64, TEXT, Column, Table

if TYPE_CHECKING:
    from pathlib import Path

PARENT = Table("parent", "catalog", "Parents.", (Column("parent_id", INT64, "Id."),), primary_key=("parent_id",))
CHILD = Table(
    "child",
    "catalog",
    "Children.",
    (
        Column("child_id", INT64, "Id.", minimum=1),
        Column("parent_id", INT64, "Parent.", nullable=True, references="parent.parent_id"),
        Column("kind", TEXT, "Kind.", nullable=True, values=("a", "b")),
        Column("code", TEXT, "Code.", nullable=True, pattern="[A-Z]{2}"),
        Column("share", FLOAT, "Share.", nullable=True, minimum=0, maximum=1),
    ),
    primary_key=("child_id",),
)


def broken(folder: Path, *children: dict[str, object]) -> dict[str, int]:
    """Return the names of the checks that fail -> rows that break them."""
    write_table(PARENT, folder / "parent", pl.DataFrame({"parent_id": [1, 2]}))
    whole = [{"child_id": None, "parent_id": None, "kind": None, "code": None, "share": None} | child for child in children]
    write_table(CHILD, folder / "child", CHILD.conform(pl.DataFrame(whole, schema=CHILD.polars_schema)))
    checks = list(derive_checks(CHILD, lambda name: folder / name))
    with duckdb.connect() as connection:
        alone = [run_check(connection, check) for check in checks]
        together = run_checks(connection, checks)
    assert [finding.rows for finding in together] == alone
    assert [finding.check for finding in together] == checks
    return {finding.check.name: finding.rows for finding in together if finding.rows}


def test_good_rows_break_nothing(tmp_path: Path) -> None:
    assert broken(tmp_path, {"child_id": 1, "parent_id": 2, "kind": "a", "code": "GB", "share": 1.0}, {"child_id": 2}) == {}


@pytest.mark.parametrize(
    ("child", "name"),
    [
        ({"child_id": 0}, "child_child_id_minimum"),
        ({"child_id": None}, "child_child_id_not_null"),
        ({"child_id": 5, "parent_id": 3}, "child_parent_id_known"),
        ({"child_id": 5, "kind": "c"}, "child_kind_known_value"),
        ({"child_id": 5, "code": "GBR"}, "child_code_pattern"),
        ({"child_id": 5, "share": -0.1}, "child_share_minimum"),
        ({"child_id": 5, "share": 1.1}, "child_share_maximum"),
    ],
)
def test_each_rule_counts_the_rows_that_break_it(tmp_path: Path, child: dict[str, object], name: str) -> None:
    assert broken(tmp_path, {"child_id": 1}, child) == {name: 1}


def test_repeated_keys_are_counted(tmp_path: Path) -> None:
    assert broken(tmp_path, {"child_id": 1}, {"child_id": 1}, {"child_id": 1}) == {"child_key_unique": 2}


def test_first_rows_at_fault_are_shown_by_key_and_value_in_any_order(tmp_path: Path) -> None:
    rows = [{"child_id": number, "parent_id": 9, "kind": "z" * 300} for number in (7, 3, 5, 4, 4)]
    assert broken(tmp_path, *rows) == {"child_parent_id_known": 5, "child_kind_known_value": 5, "child_key_unique": 1}
    with duckdb.connect() as connection:
        found = {
            finding.check.name: finding.examples for finding in run_checks(connection, derive_checks(CHILD, lambda name: tmp_path / name))
        }
    assert found["child_parent_id_known"] == ("child_id=3, parent_id=9", "child_id=4, parent_id=9", "child_id=4, parent_id=9")
    assert found["child_kind_known_value"][0] == ("child_id=3, kind=" + "z" * 300)[:200]
    assert found["child_key_unique"] == ("child_id=4, times=2",)
    assert found["child_code_pattern"] == ()


def test_an_empty_table_breaks_nothing(tmp_path: Path) -> None:
    assert broken(tmp_path) == {}


@pytest.mark.parametrize("is_sorted", [True, False])
def test_repeated_keys_are_counted_in_any_order_and_over_parts(tmp_path: Path, *, is_sorted: bool) -> None:
    columns = (Column("name", TEXT, "Name."), Column("place", INT64, "Place.", nullable=True))
    table = Table("keyed", "catalog", "Keys of two columns.", columns, primary_key=("place", "name"), sort_key=("name", "place"))
    chance, found = Random(5), set()  # noqa: S311 - test data
    (check,) = (check for check in derive_checks(table, tmp_path.joinpath) if check.name == "keyed_key_unique")
    with duckdb.connect() as connection:
        for _ in range(40):
            rows = [(chance.choice("abc"), chance.choice((None, 1, 2, 3))) for _ in range(chance.randrange(7))]
            frame = pl.DataFrame(rows, schema=table.polars_schema, orient="row")
            frame = frame.sort(table.order) if is_sorted else frame
            cut = chance.randrange(frame.height + 1)
            write_table(table, tmp_path / "keyed", [frame[:cut], frame[cut:]])
            assert run_check(connection, check) == len(rows) - len({*rows})
            found.add(len(rows) - len({*rows}))
    assert {0, 1, 2} <= found
