"""Bounds of staging columns: longer, more or larger values than a column allows become rejects.

Dumps are not trusted: one title of 2 MB would stop every later step without naming its record. A value over its bound becomes null if its
column may be null; else the row is rejected. A list loses entries that are too long, and becomes empty if it has too many. Ordinary rows
cost one look at the largest value of each column.

Out of scope: the bounds (catalog_store/tables), what a value means (the adapters).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import polars as pl
import pyarrow as pa

from pipeline.dumps.staging.record_checks import WHERE
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from catalog_store.tables import Column, Table

SHOWN_CHARACTERS = 200
"""Characters shown of a faulty value, and of each text in the excerpt of its row."""
SHOWN_ENTRIES = 3
_NO_NAME = ("platform", "entity_kind", "day")
"""Key columns that do not identify a record."""


def apply_bounds(table: Table, frame: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return `frame`, with columns of `table`, without values over their bounds, and these as rows of `reject` (without `platform`).

    The columns `source_file` and `place` (or `line`) of `frame`, if present, say where each row is. They are dropped.
    """
    rows = _Rows(table, frame)
    for column in table.columns:
        if column.name in frame.columns:
            rows.bound(column)
    return rows.kept, rows.rejects


class _Rows:
    """Rows of one table while its columns are checked. `_out` marks rejected rows; they are removed at the end."""

    def __init__(self, table: Table, frame: pl.DataFrame) -> None:
        self._table = table
        # A staged column may itself be called `place`: then it is a value and not the place of the row.
        self._where = frame.select(name for name in (*WHERE, "line") if name in frame.columns and name not in table.polars_schema)
        self._frame = frame.drop(self._where.columns)
        self._out: pl.Series | None = None
        self.rejects: list[pl.DataFrame] = []

    @property
    def kept(self) -> pl.DataFrame:
        # Rows leave at the end and not at each column: a row that breaks two bounds gives one reject for each value, and every mask keeps
        # the same length.
        return self._frame if self._out is None else self._frame.filter(~self._out)

    def bound(self, column: Column) -> None:
        values = self._frame[column.name]
        if isinstance(values.dtype, pl.List):
            self._bound_length(column, values)
            self._bound_entries(column, self._frame[column.name])
        elif values.dtype == pl.String:
            self._bound_text(column, values)
        elif values.dtype.is_numeric():
            self._bound_number(column, values)

    def _bound_text(self, column: Column, values: pl.Series) -> None:
        # Bytes are never fewer than characters, so ordinary columns pass here. Counting characters would read every text.
        if column.longest is not None and _measure_longest(values) > column.longest:
            self._leave_out(column, values.str.len_chars() > column.longest, Reason.TOO_LONG)

    def _bound_number(self, column: Column, values: pl.Series) -> None:
        # Nulls compare as null, which `all` skips. `_leave_out` treats them as within bounds.
        within = values.is_between(*_find_range(column))
        if within.all():
            return
        # NaN and the infinities are within no bounds.
        reason = Reason.INVALID_DURATION if column.name.startswith("duration") else Reason.INVALID_NUMBER
        self._leave_out(column, ~within, reason)

    def _bound_length(self, column: Column, values: pl.Series) -> None:
        if column.most is not None and cast("int", values.list.len().max() or 0) > column.most:
            self._leave_out(column, values.list.len() > column.most, Reason.TOO_MANY)

    def _bound_entries(self, column: Column, values: pl.Series) -> None:
        longest = column.longest
        if longest is None or all(_measure_longest(texts) <= longest for texts in _list_texts(values)):
            return
        # An entry of structs is too long if any of its texts is. The credit would be half a credit without its name or its id.
        entry = pl.element()
        texts = [entry.struct.field(field.name) for field in _list_fields(values)] or [entry]
        is_long = pl.any_horizontal((text.str.len_chars() > longest).fill_null(value=False) for text in texts)
        long = self._frame.select(pl.col(column.name).list.filter(is_long)).to_series()
        # Reject before filtering: the excerpt shows the row as delivered.
        self._reject(column, (long.list.len() > 0).fill_null(value=False), Reason.TOO_LONG, "field", long)
        self._frame = self._frame.with_columns(pl.col(column.name).list.filter(~is_long))

    def _leave_out(self, column: Column, over: pl.Series, reason: Reason) -> None:
        """Replace the values that are `over` by null or an empty list; reject their rows if the column may not be null."""
        over = over.fill_null(value=False)
        # A row that is out already has its reject. A second one would unbalance rows read against rows staged and rejected.
        if self._out is not None:
            over &= ~self._out
        if not over.any():
            return
        values = self._frame[column.name]
        is_list = isinstance(values.dtype, pl.List)
        # A list that is left out becomes empty and not null, so it never costs its row.
        is_row = not column.nullable and not is_list
        self._reject(column, over, reason, "row" if is_row else "field", values)
        if is_row:
            self._out = over if self._out is None else self._out | over
        else:
            nothing = pl.lit([] if is_list else None, dtype=values.dtype)
            self._frame = self._frame.with_columns(pl.when(~over).then(pl.col(column.name)).otherwise(nothing).alias(column.name))

    def _reject(self, column: Column, over: pl.Series, reason: Reason, severity: str, values: pl.Series) -> None:
        """Add rows of `reject` for the rows that are `over`; `values` has the faulty value of each."""
        bad = self._frame.filter(over)
        # The sort order of a table begins with its key, which names the record best.
        name = next((name for name in self._table.order if name not in _NO_NAME), self._table.column_names[0])
        record_id = bad[name].cast(pl.String).str.head(SHOWN_CHARACTERS)
        where = {name: column.filter(over) for name, column in self._where.to_dict().items()}
        if "line" in where:
            where["place"] = "line " + where["line"].cast(pl.String)
        unknown = pl.Series(["rows of " + self._table.name]).new_from_index(0, bad.height)
        found = bad.select(
            entity=pl.lit(self._table.name),
            severity=pl.lit(severity),
            reason=pl.lit(reason.value),
            source_file=pl.lit(where.get("source_file", unknown)),
            place=pl.lit(where.get("place", "record " + record_id.fill_null("?"))),
            record_id=pl.lit(record_id),
            field=pl.lit(column.name if severity == "field" else None, dtype=pl.String),
            value=pl.lit(_shorten_values(values.filter(over), reason)),
            excerpt=pl.struct(_shorten_column(bad[other]) for other in bad.columns).struct.json_encode(),
        )
        self.rejects.append(found)


def _measure_longest(texts: pl.Series) -> int:
    """Return the bytes of the longest text. They bound its characters, and Arrow knows them without reading the text."""
    return cast("int", texts.str.len_bytes().max() or 0)


def _list_fields(values: pl.Series) -> list[pl.Field]:
    """Return the fields of the structs in a list; none for other lists."""
    inner = cast("pl.List", values.dtype).inner
    return inner.fields if isinstance(inner, pl.Struct) else []


def _list_texts(values: pl.Series) -> list[pl.Series]:
    """Return all texts in lists of texts, or in lists of structs of texts."""
    entries = values.explode()
    return [entries.struct.field(field.name) for field in _list_fields(values)] or [entries]


def _find_range(column: Column) -> tuple[float, float]:
    """Return the least and the largest number that the column may hold, by its type and its bounds."""
    if pa.types.is_floating(column.type):
        least, largest = -sys.float_info.max, sys.float_info.max
    else:
        # Without declared bounds the type is the bound: a cast of a larger number would fail the whole frame.
        bits = column.type.bit_width - pa.types.is_signed_integer(column.type)
        least, largest = -(1 << bits) if pa.types.is_signed_integer(column.type) else 0, (1 << bits) - 1
    return (
        least if column.minimum is None else max(least, column.minimum),
        largest if column.maximum is None else min(largest, column.maximum),
    )


def _shorten_values(values: pl.Series, reason: Reason) -> pl.Series:
    """Return how faulty values are shown: the beginning of a text, the size of a list, or its first entry that is too long."""
    if not isinstance(values.dtype, pl.List):
        return values.cast(pl.String).str.head(SHOWN_CHARACTERS)
    if reason is Reason.TOO_MANY:
        return values.to_frame("values").select(pl.format("{} entries", pl.col("values").list.len())).to_series()
    first = pl.col("values").list.first()
    texts = [first.struct.field(field.name) for field in _list_fields(values)] or [first]
    return values.to_frame("values").select(pl.concat_str(texts, separator=" | ", ignore_nulls=True).str.head(SHOWN_CHARACTERS)).to_series()


def _shorten_column(values: pl.Series) -> pl.Series:
    """Return a column as excerpts show it: texts cut, lists with their first entries."""
    if values.dtype == pl.String:
        return values.str.head(SHOWN_CHARACTERS)
    if not isinstance(values.dtype, pl.List):
        return values
    entry = pl.element()
    fields = [field.name for field in _list_fields(values)]
    if fields:
        entry = pl.struct(entry.struct.field(name).str.head(SHOWN_CHARACTERS) for name in fields)
    elif values.dtype == pl.List(pl.String):
        entry = entry.str.head(SHOWN_CHARACTERS)
    return values.to_frame().select(pl.col(values.name).list.head(SHOWN_ENTRIES).list.eval(entry)).to_series()
