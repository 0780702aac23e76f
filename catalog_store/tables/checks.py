"""The data checks derived from a table's spec. Each is one rule of a column or the key, and counts the rows that break it.

Rules that a spec cannot express (rows read = staged + rejected, one recording per ISRC over two tables ...) are named invariants in the
pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from catalog_store.tables.files import render_sql_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import duckdb

    from catalog_store.tables.spec import Column, Table

EXAMPLES = 3
"""Wrong rows that a finding shows."""
LONGEST_EXAMPLE = 200
"""Characters of one shown row."""


@dataclass(frozen=True)
class TableCheck:
    """One rule: `sql` yields the number of rows that break the rule in `description`. `faults`, if any, selects the text of such a row.

    A rule about single rows also has a `condition` over `source`. All such rules of one table are counted in one pass. `proof`, if any, is
    a cheaper query that yields 0 only where the rule holds.
    """

    table: str
    name: str
    description: str
    sql: str
    faults: str = ""
    source: str = ""
    condition: str = ""
    proof: str = ""


@dataclass(frozen=True)
class Finding:
    """The result of a check: how many rows break it, and the first of them in sorted order, as texts `column=value`."""

    check: TableCheck
    rows: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line for an operator."""
        shown = f", the first: {'; '.join(self.examples)}" if self.examples else ""
        return f"{self.check.description}: {self.rows:,} rows at fault{shown}"

    def add(self, other: Finding) -> Finding:
        """Add the finding of the same rule over another folder; the first examples stay."""
        shown = self if self.rows else other
        return Finding(shown.check, self.rows + other.rows, shown.examples)


def derive_checks(table: Table, place: Callable[[str], Path]) -> Iterator[TableCheck]:
    """Yield all checks of `table`; `place(name)` returns the folder of a table (its own and those it refers to)."""
    source = render_sql_source(place(table.name))
    for column in table.columns:
        shown = ", ".join(f'a."{name}"' for name in dict.fromkeys((*_select_naming_columns(table), column.name)))
        for rule, description, condition in _derive_column_rules(column):
            yield TableCheck(
                table.name,
                f"{table.name}_{column.name}_{rule}",
                f"{table.name}.{column.name} {description}",
                f"SELECT count(*) FROM {source} WHERE {condition}",
                f"SELECT {shown} FROM {source} a WHERE {condition}",
                source,
                condition,
            )
        if column.references:
            other, key = column.references.split(".")
            other_row = f'{render_sql_source(place(other))} b ON a."{column.name}" = b."{key}"'
            unknown = f'{source} a ANTI JOIN {other_row} WHERE a."{column.name}" IS NOT NULL'
            yield TableCheck(
                table.name,
                f"{table.name}_{column.name}_known",
                f"every {table.name}.{column.name} occurs in {column.references}",
                f"SELECT count(*) FROM {unknown}",
                f"SELECT {shown} FROM {unknown}",
            )
    if table.primary_key:
        keys = ", ".join(f'"{name}"' for name in table.primary_key)
        # The rows beyond the first of each key are at fault.
        repeated = f"SELECT {keys}, count(*) AS times FROM {source} GROUP BY {keys} HAVING times > 1"
        yield TableCheck(
            table.name,
            f"{table.name}_key_unique",
            f"({keys}) is unique in {table.name}",
            f"SELECT coalesce(sum(times - 1), 0)::BIGINT FROM ({repeated})",
            repeated,
            proof=_render_order_proof(table, source),
        )


def _render_order_proof(table: Table, source: str) -> str:
    """Return a query of the rows that do not follow the row before them in the order of the key; empty if the table has another order."""
    keys = table.order[: len(table.primary_key)]
    if {*keys} != {*table.primary_key}:
        return ""
    # Rows that rise all the way are unique, in whatever order the engine reads them. This takes half of the time of groups, and no memory.
    rises = "false"
    for key in reversed(keys):
        rises = f'("{key}" > "{key} before" OR "{key}" = "{key} before" AND {rises})'
    columns = "".join(f'"{key}", lag("{key}") OVER () AS "{key} before", ' for key in keys)
    numbered = f'SELECT {columns}row_number() OVER () AS "row number" FROM {source}'
    return f'SELECT count(*) FROM ({numbered}) WHERE "row number" > 1 AND ({rises}) IS NOT TRUE'


def _select_naming_columns(table: Table) -> tuple[str, ...]:
    """Return the columns that identify a row for a person."""
    return table.primary_key or tuple(table.column_names[:3])


def _derive_column_rules(column: Column) -> Iterator[tuple[str, str, str]]:
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
    if column.longest is not None and pa.types.is_string(column.type):
        # The number of bytes is known without reading the text.
        yield (
            "longest",
            f"has at most {column.longest:,} characters",
            f"strlen({name}) > {column.longest} AND length({name}) > {column.longest}",
        )
    if column.most is not None:
        yield "most", f"has at most {column.most:,} entries", f"len({name}) > {column.most}"


def run_check(connection: duckdb.DuckDBPyConnection, check: TableCheck) -> int:
    """Return the number of rows that break `check`; 0 means that it holds."""
    for sql in filter(None, (check.proof, check.sql)):
        row = connection.execute(sql).fetchone() or (0,)
        if not row[0]:
            return 0
    return int(row[0])


def run_checks(connection: duckdb.DuckDBPyConnection, checks: Iterable[TableCheck]) -> list[Finding]:
    """Return the finding of each check, in their order."""
    checks = list(checks)
    by_source: dict[str, list[TableCheck]] = {}
    for check in (check for check in checks if check.source):
        by_source.setdefault(check.source, []).append(check)
    # All rules of a table are counted in one pass over it. Mostly none is broken, and to see that takes three quarters of that pass.
    counted: dict[TableCheck, int] = {}
    for source, rules in by_source.items():
        broken = " OR ".join(f"({rule.condition})" for rule in rules)
        tallies = ", ".join(f"count(*) FILTER (WHERE {rule.condition})" for rule in rules)
        found = connection.execute(f"SELECT 1 FROM {source} WHERE {broken} LIMIT 1").fetchone()
        row = connection.execute(f"SELECT {tallies} FROM {source}").fetchone() or () if found else [0] * len(rules)
        counted.update(zip(rules, row, strict=True))
    rows = [counted[check] if check in counted else run_check(connection, check) for check in checks]
    return [Finding(check, count, _read_examples(connection, check) if count else ()) for check, count in zip(checks, rows, strict=True)]


def _read_examples(connection: duckdb.DuckDBPyConnection, check: TableCheck) -> tuple[str, ...]:
    if not check.faults:
        return ()
    found = connection.execute(f"FROM ({check.faults}) ORDER BY ALL LIMIT {EXAMPLES}")
    names = [column[0] for column in found.description]
    return tuple(", ".join(f"{name}={value}" for name, value in zip(names, row, strict=True))[:LONGEST_EXAMPLE] for row in found.fetchall())
