"""The description of tables: `Column` and `Table`.

Everything that depends on the shape of a table is derived from here: the Polars schema, the DuckDB DDL, Dagster's column
schema, the data checks and `docs/reference/tables.md`. Add a table in the file of its domain beside this one, never a second description
elsewhere. Rows, paths and file access belong in `files.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import polars as pl
import pyarrow as pa

from catalog_store.sql_text import quote_name, quote_text

if TYPE_CHECKING:
    from collections.abc import Iterator

Layer = Literal["staging", "linkage", "catalog", "quality"]

TEXT = pa.string()
INT64 = pa.int64()
INT32 = pa.int32()
INT16 = pa.int16()
FLOAT = pa.float64()
BOOL = pa.bool_()
DATE = pa.date32()
TEXT_LIST = pa.list_(pa.string())


@dataclass(frozen=True)
class Column:
    """One column: `values`, `pattern` (RE2, whole value), the bounds below and `references` ("table.column") become checks.

    Bounds: `minimum`, `maximum` of a number; `longest`: characters of a text, also of each text in a list; `most`: items of a list.

    `later_references` refers to a table of a later step, so it can only be checked in a whole snapshot. Another column of the row may name
    the table: "{kind}.{kind}_id". `nested_references` maps fields of the structs in a list to "table.column".
    """

    name: str
    type: pa.DataType
    description: str
    nullable: bool = False
    values: tuple[str, ...] = ()
    pattern: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    references: str | None = None
    longest: int | None = None
    most: int | None = None
    later_references: str | None = None
    nested_references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Table:
    """One table: a folder of Parquet parts.

    Rows, read in part order, are sorted by `order` (`sort_key`, else the primary key); staging tables keep the order of the dump.
    """

    name: str
    layer: Layer
    description: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    sort_key: tuple[str, ...] = field(default=())
    rows_per_group: int = 122_880
    """Rows compressed together. The default is DuckDB's vector-group size, its unit of parallel work; wide rows use less."""
    rows_per_part: int = 1_000_000
    """Rows of a part that EvenTableWriter cuts. A part of a narrow table is some 10 MB on disk and 100 MB in flight; wide rows use less."""

    def __post_init__(self) -> None:
        """Reject keys that name no column, so that a typo fails at import and not in a nightly check."""
        unknown = {*self.primary_key, *self.sort_key} - {column.name for column in self.columns}
        if unknown:
            message = f"table {self.name}: key columns {sorted(unknown)} are not columns of it"
            raise ValueError(message)

    @property
    def order(self) -> tuple[str, ...]:
        """The columns by which rows are sorted on disk."""
        return self.sort_key or self.primary_key

    @cached_property
    def polars_schema(self) -> pl.Schema:
        """The Polars schema, field order as declared."""
        # Polars maps the Arrow types itself, so nested types need no table of their own here.
        # Not through `empty_table`, which imports pandas: a fifth of a second in each process.
        frame = pl.from_arrow(pa.Table.from_batches([], pa.schema([pa.field(c.name, c.type) for c in self.columns])))
        if not isinstance(frame, pl.DataFrame):  # pragma: no cover - from_arrow of a table is a frame
            raise TypeError(self.name)
        return frame.schema

    @property
    def column_names(self) -> list[str]:
        """The names in declared order."""
        return [column.name for column in self.columns]

    def get_column(self, name: str) -> Column:
        """Return the column of that name; KeyError names table and column."""
        for column in self.columns:
            if column.name == name:
                return column
        message = f"table {self.name} has no column {name!r}"
        raise KeyError(message)

    def build_empty(self) -> pl.DataFrame:
        """Build a frame of this table without rows."""
        return pl.DataFrame(schema=self.polars_schema)

    def conform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return `frame` with exactly this table's columns, order and types.

        A missing nullable column becomes nulls. A missing required column, an unknown one or a value that does not fit the type raises
        ValueError naming table and columns.
        """
        missing = [c.name for c in self.columns if c.name not in frame.columns and not c.nullable]
        unknown = [name for name in frame.columns if name not in self.polars_schema]
        if missing or unknown:
            message = f"table {self.name}: missing columns {missing}, unknown columns {unknown}"
            raise ValueError(message)
        absent = [pl.lit(None, dtype=t).alias(n) for n, t in self.polars_schema.items() if n not in frame.columns]
        # A strict cast raises for a value that does not fit the type. A lax one would write null.
        return frame.with_columns(absent).select(
            _cast(name, frame.schema.get(name), dtype) if frame.schema.get(name) != dtype else pl.col(name)
            for name, dtype in self.polars_schema.items()
        )

    def render_ddl(self, *, or_replace: bool = False) -> str:
        """Return `CREATE TABLE` for DuckDB with NOT NULL and comments for the table and each column, separated by newlines."""
        lines = [f"    {quote_name(c.name)} {_map_to_duckdb_type(c.type)}{'' if c.nullable else ' NOT NULL'}" for c in self.columns]
        create = f"CREATE {'OR REPLACE ' if or_replace else ''}TABLE {quote_name(self.name)} (\n" + ",\n".join(lines) + "\n);"
        return "\n".join([create, *self.render_comments()])

    def render_comments(self, relation: Literal["TABLE", "VIEW"] = "TABLE") -> Iterator[str]:
        """Yield `COMMENT ON` statements for the relation and its columns."""
        yield f"COMMENT ON {relation} {quote_name(self.name)} IS {quote_text(self.description)};"
        for c in self.columns:
            yield f"COMMENT ON COLUMN {quote_name(self.name)}.{quote_name(c.name)} IS {quote_text(c.description)};"


def _cast(name: str, found: pl.DataType | None, wanted: pl.DataType) -> pl.Expr:
    if wanted == pl.Date and found == pl.String:
        return pl.col(name).str.to_date("%Y-%m-%d", strict=True)  # Polars casts no text to a date
    return pl.col(name).cast(wanted, strict=True)


_DUCKDB_TYPES = {
    TEXT: "VARCHAR",
    INT64: "BIGINT",
    INT32: "INTEGER",
    INT16: "SMALLINT",
    FLOAT: "DOUBLE",
    BOOL: "BOOLEAN",
    pa.float32(): "FLOAT",
    pa.uint64(): "UBIGINT",
    pa.uint32(): "UINTEGER",
}


def _map_to_duckdb_type(dtype: pa.DataType) -> str:
    if pa.types.is_list(dtype):
        return f"{_map_to_duckdb_type(dtype.value_type)}[]"
    if pa.types.is_struct(dtype):
        inner = ", ".join(f"{quote_name(f.name)} {_map_to_duckdb_type(f.type)}" for f in dtype)
        return f"STRUCT({inner})"
    if pa.types.is_date32(dtype):
        return "DATE"
    return _DUCKDB_TYPES[dtype]
