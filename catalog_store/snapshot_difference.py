"""The difference of two snapshots: rows that were added, removed or changed, by table and column, and what became of ids.

Only parts that the two manifests do not share are read: a part with the same checksum holds the same rows.

`write_changed_rows` writes, for each table that differs, `<table>.parquet`: the columns of its primary key, then

  change   `added`, `removed` or `changed`
  column   the column that changed; null for an added or removed row
  old, new its values as text; null where there is none
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing, contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import msgspec

from catalog_store.changes import read_changes
from catalog_store.memory_budget import get_budget
from catalog_store.serving.schema import CHANGES, REDIRECT_KINDS
from catalog_store.snapshot import TABLES_FOLDER
from catalog_store.sql_text import quote_list, quote_text
from catalog_store.tables import TABLES
from catalog_store.tables.files import render_sql_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from catalog_store.snapshot import Snapshot
    from catalog_store.tables import Table

SPLIT = "split"


class TableDifference(msgspec.Struct, omit_defaults=True):
    """Rows of one table by what became of them, and rows whose value changed by column."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    columns: dict[str, int] = {}
    only_in_old: list[str] = []
    """Columns that the new table does not have. They are not compared."""
    only_in_new: list[str] = []


class SnapshotDifference(msgspec.Struct):
    """The difference of two snapshots. Tables without a difference are absent."""

    old: str
    new: str
    ids: dict[str, dict[str, int]]
    """By kind: ids `gained` (issued since, other than by a split), and the changes that `/v1/changes` lists."""
    tables: dict[str, TableDifference]


class _Parts(NamedTuple):
    """The parts of a table that only one of two snapshots has, as DuckDB queries, and the columns that both sides have."""

    table: Table
    old: str
    new: str
    columns: list[str]
    """Without those of the key."""
    only_in_old: list[str]
    only_in_new: list[str]


def compare_snapshots(old: Snapshot, new: Snapshot) -> SnapshotDifference:
    """Compare the tables of two snapshots."""
    with _open_database() as database:
        compared = {parts.table.name: _compare_table(database, parts) for parts in _list_differing_parts(database, old, new)}
        tables = {name: found for name, found in compared.items() if found != TableDifference()}
        return SnapshotDifference(old.id, new.id, _count_ids(database, old, new), tables)


def write_changed_rows(old: Snapshot, new: Snapshot, folder: Path) -> list[Path]:
    """Write a file for each table that differs into the new or empty `folder`. FileExistsError for a folder with files."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name a new folder for the changed rows")
    written = []
    with _open_database() as database:
        for parts in _list_differing_parts(database, old, new):
            path = folder / f"{parts.table.name}.parquet"
            database.execute(f"COPY ({_render_changed_rows_sql(parts)}) TO {quote_text(path)} (FORMAT parquet)")
            written.append(path)
    return written


@contextmanager
def _open_database() -> Iterator[duckdb.DuckDBPyConnection]:
    # Joins of whole tables may spill. The default folder for that is the working directory of whoever calls.
    with TemporaryDirectory() as spill, closing(duckdb.connect(config={"memory_limit": get_budget().database_limit})) as database:
        database.execute(f"SET temp_directory = {quote_text(spill)}")
        yield database


def _list_differing_parts(database: duckdb.DuckDBPyConnection, old: Snapshot, new: Snapshot) -> Iterator[_Parts]:
    for name in sorted(old.manifest.tables.keys() & new.manifest.tables.keys()):
        # A table of a later program has no description here. Without a key its rows cannot be paired.
        table = TABLES.get(name)
        if table is None or not table.primary_key:
            continue
        sides = [{file.sha256: one.folder / file.path for file in one.manifest.tables[name].files} for one in (old, new)]
        separate = [[path for sha256, path in side.items() if sha256 not in other] for side, other in (sides, sides[::-1])]
        if any(separate):
            before, after = (_render_source(found, other) for found, other in (separate, separate[::-1]))
            names_before, names_after = _list_columns(database, before), _list_columns(database, after)
            yield _Parts(
                table,
                before,
                after,
                columns=[column for column in names_after if column in names_before and column not in table.primary_key],
                only_in_old=[column for column in names_before if column not in names_after],
                only_in_new=[column for column in names_after if column not in names_before],
            )


def _list_columns(database: duckdb.DuckDBPyConnection, source: str) -> list[str]:
    return [row[0] for row in database.execute(f"DESCRIBE {source}").fetchall()]


def _render_source(parts: Sequence[Path], other: Sequence[Path]) -> str:
    """Return a query for all rows of `parts`. Without parts it has no rows, and the columns of the other side."""
    return f"SELECT * FROM read_parquet({quote_list(parts or other)}){'' if parts else ' LIMIT 0'}"


def _render_pairs_sql(parts: _Parts) -> str:
    """Return a FROM clause that pairs rows by key: `o` and `n`, whose `is_here` is null where a side has no row."""
    key = " AND ".join(f"o.{column} = n.{column}" for column in parts.table.primary_key)
    return f"(SELECT *, true AS is_here FROM ({parts.old})) o FULL JOIN (SELECT *, true AS is_here FROM ({parts.new})) n ON {key}"


def _compare_table(database: duckdb.DuckDBPyConnection, parts: _Parts) -> TableDifference:
    differs = {column: f"o.{column} IS DISTINCT FROM n.{column}" for column in parts.columns}
    both = "o.is_here AND n.is_here"
    counts = [
        "count(*) FILTER (o.is_here IS NULL)",
        "count(*) FILTER (n.is_here IS NULL)",
        f"count(*) FILTER ({both} AND ({' OR '.join(differs.values()) or 'false'}))",
        *(f"count(*) FILTER ({both} AND {condition})" for condition in differs.values()),
    ]
    row = database.execute(f"SELECT {', '.join(counts)} FROM {_render_pairs_sql(parts)}").fetchone() or ()
    added, removed, changed, *by_column = row
    columns = {column: count for column, count in zip(differs, by_column, strict=True) if count}
    return TableDifference(added, removed, changed, columns, parts.only_in_old, parts.only_in_new)


def _render_changed_rows_sql(parts: _Parts) -> str:
    key = ", ".join(parts.table.primary_key)
    keys = ", ".join(f"coalesce(n.{column}, o.{column}) AS {column}" for column in parts.table.primary_key)
    cells = ", ".join(
        f"{{'column': '{column}', 'old': o.{column}::VARCHAR, 'new': n.{column}::VARCHAR, "
        f"'differs': o.{column} IS DISTINCT FROM n.{column}}}"
        for column in parts.columns
    )
    change = "CASE WHEN o.is_here IS NULL THEN 'added' WHEN n.is_here IS NULL THEN 'removed' ELSE 'changed' END"
    row = "{'column': NULL::VARCHAR, 'old': NULL::VARCHAR, 'new': NULL::VARCHAR, 'differs': true}"
    # A row that came or went is one line; of a row in both snapshots each column that differs is one.
    return (
        f"SELECT {key}, change, cell.* EXCLUDE (differs) FROM ("
        f"SELECT {keys}, {change} AS change, unnest(CASE WHEN {change} = 'changed' THEN [{cells}] ELSE [{row}] END) AS cell "
        f"FROM {_render_pairs_sql(parts)}) WHERE cell.differs ORDER BY ALL"
    )


def _count_ids(database: duckdb.DuckDBPyConnection, old: Snapshot, new: Snapshot) -> dict[str, dict[str, int]]:
    folder = new.folder / TABLES_FOLDER
    changes = [*read_changes(old.folder, {name: folder / name for name in new.manifest.tables})]
    counts = {}
    for number, kind in enumerate(REDIRECT_KINDS):
        found = Counter(CHANGES[change.change] for change in changes if change.kind == number)
        split = {change.new_id for change in changes if change.kind == number and CHANGES[change.change] == SPLIT}
        first_new = old.manifest.next_ids.get(kind, 0)
        issued = database.execute(
            f"SELECT {kind}_id FROM {render_sql_source(folder / kind)} WHERE {kind}_id >= ?", (first_new,)
        ).fetchnumpy()[f"{kind}_id"]
        counts[kind] = {"gained": sum(one not in split for one in issued.tolist())} | {name: found[name] for name in CHANGES}
    return counts
