from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from catalog_store.tables import ALL_TABLES, TABLES
from catalog_store.tables.spec import FLOAT, INT64, TEXT, TEXT_LIST, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = Table(
    "small",
    "catalog",
    'A small table: it\'s "quoted".',
    (Column("small_id", INT64, "Id.", minimum=1), Column("name", TEXT, "Name."), Column("tags", TEXT_LIST, "Tags.", nullable=True)),
    primary_key=("small_id",),
)


def test_table_names_are_unique() -> None:
    assert len(TABLES) == len(ALL_TABLES)


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_every_reference_names_a_table_and_a_column(table: Table) -> None:
    for column in table.columns:
        if column.references:
            other, key = column.references.split(".")
            assert TABLES[other].get_column(key).type == column.type


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a database for one table of each name."""
    with duckdb.connect() as connection:
        yield connection


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_ddl_makes_a_commented_table_of_the_same_shape(database: duckdb.DuckDBPyConnection, table: Table) -> None:
    database.execute(table.render_ddl())
    described = database.execute(
        f"SELECT column_name, is_nullable, comment FROM duckdb_columns() WHERE table_name = '{table.name}'"
    ).fetchall()
    assert described == [(c.name, c.nullable, c.description) for c in table.columns]
    database.register("empty", table.build_empty().to_arrow())
    database.execute(f'INSERT INTO "{table.name}" SELECT * FROM empty')
    comment = database.execute("SELECT comment FROM duckdb_tables() WHERE table_name = ?", [table.name]).fetchone()
    assert comment == (table.description,)


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_empty_frame_has_the_columns_of_its_spec(table: Table) -> None:
    assert [column.name for column in table.columns] == table.build_empty().columns
    assert table.conform(table.build_empty()).schema == table.polars_schema


def test_ddl_replaces_a_table_on_request() -> None:
    with duckdb.connect() as file:
        file.execute(SMALL.render_ddl())
        file.execute(SMALL.render_ddl(or_replace=True))
        with pytest.raises(duckdb.CatalogException):
            file.execute(SMALL.render_ddl())


def test_conform_orders_casts_and_fills_nullable_columns() -> None:
    frame = SMALL.conform(pl.DataFrame({"name": ["a"], "small_id": pl.Series([1], dtype=pl.Int8)}))
    assert frame.columns == ["small_id", "name", "tags"]
    assert frame.row(0) == (1, "a", None)
    assert frame.schema == SMALL.polars_schema


def test_conform_names_missing_and_unknown_columns() -> None:
    with pytest.raises(ValueError, match=r"small: missing columns \['small_id'\], unknown columns \['nmae'\]"):
        SMALL.conform(pl.DataFrame({"name": ["a"], "nmae": ["b"]}))


def test_conform_refuses_values_that_do_not_fit() -> None:
    with pytest.raises(pl.exceptions.InvalidOperationError):
        SMALL.conform(pl.DataFrame({"small_id": ["x"], "name": ["a"]}))


def test_keys_must_be_columns() -> None:
    with pytest.raises(ValueError, match=r"key columns \['nope'\]"):
        Table("t", "catalog", "T.", (Column("a", FLOAT, "A."),), primary_key=("nope",))


def test_unknown_column_is_named() -> None:
    with pytest.raises(KeyError, match="table small has no column 'nope'"):
        SMALL.get_column("nope")


def test_order_is_the_sort_key_or_else_the_primary_key() -> None:
    assert SMALL.order == ("small_id",)
    assert Table("t", "catalog", "T.", (Column("a", FLOAT, "A."),), sort_key=("a",)).order == ("a",)
