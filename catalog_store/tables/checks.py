"""The data checks that follow from a table's spec: each is one DuckDB query that counts the rows that break it.

What a spec cannot say (rows read = staged + rejected, one recording per ISRC over two tables ...) is a named invariant in the pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog_store.tables.files import sql_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import duckdb

    from catalog_store.tables.spec import Column, Table


@dataclass(frozen=True)
class TableCheck:
    """`sql` yields one number: how many rows break the rule that `description` states."""

    table: str
    name: str
    description: str
    sql: str


def table_checks(table: Table, place: Callable[[str], Path]) -> Iterator[TableCheck]:
    """All checks of `table`; `place(name)` says where a table's folder is (its own and those it refers to)."""
    source = sql_source(place(table.name))
    for column in table.columns:
        for rule, description, condition in _column_rules(column):
            yield TableCheck(
                table.name,
                f"{table.name}_{column.name}_{rule}",
                f"{table.name}.{column.name} {description}",
                f"SELECT count(*) FROM {source} WHERE {condition}",
            )
        if column.references:
            other, key = column.references.split(".")
            yield TableCheck(
                table.name,
                f"{table.name}_{column.name}_known",
                f"every {table.name}.{column.name} stands in {column.references}",
                f'SELECT count(*) FROM {source} a ANTI JOIN {sql_source(place(other))} b ON a."{column.name}" = b."{key}" '
                f'WHERE a."{column.name}" IS NOT NULL',
            )
    if table.primary_key:
        keys = ", ".join(f'"{name}"' for name in table.primary_key)
        yield TableCheck(
            table.name,
            f"{table.name}_key_unique",
            f"({keys}) is unique in {table.name}",
            f"SELECT coalesce(sum(n - 1), 0)::BIGINT FROM (SELECT count(*) n FROM {source} GROUP BY {keys} HAVING n > 1)",
        )


def _column_rules(column: Column) -> Iterator[tuple[str, str, str]]:
    name = f'"{column.name}"'
    if not column.nullable:
        yield "not_null", "is never null", f"{name} IS NULL"
    if column.values:
        allowed = ", ".join(f"'{value}'" for value in column.values)
        yield "known_value", f"is one of {', '.join(column.values)}", f"{name} NOT IN ({allowed})"
    if column.pattern:
        yield "pattern", f"matches {column.pattern}", f"NOT regexp_full_match({name}, '{column.pattern}')"
    if column.minimum is not None:
        yield "minimum", f"is at least {column.minimum:g}", f"{name} < {column.minimum}"
    if column.maximum is not None:
        yield "maximum", f"is at most {column.maximum:g}", f"{name} > {column.maximum}"


def run_check(connection: duckdb.DuckDBPyConnection, check: TableCheck) -> int:
    """Rows that break `check`: 0 means that it holds."""
    row = connection.execute(check.sql).fetchone()
    return int(row[0]) if row else 0
