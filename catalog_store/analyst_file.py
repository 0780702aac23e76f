"""`catalog.duckdb`: the published tables and views for everyday questions in one portable file.

It holds real tables, not views over the Parquet beside them. DuckDB resolves relative paths against the caller's working folder, so such
views would break when the file is opened from elsewhere or moved. Comments of tables and columns come from the specs. Of the linkage tables
only the results are included; the steps and the builder's ids stay Parquet, because they would be most of the file. The views' SQL belongs
in analyst_views.py.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import duckdb

from catalog_store.analyst_views import VIEWS, View
from catalog_store.memory_budget import get_budget
from catalog_store.tables import TABLES
from catalog_store.tables.files import render_sql_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LINKAGE_RESULTS = ("recording_member", "isrc_conflict")


def build_analyst_file(tables: Mapping[str, Path], path: Path) -> None:
    """Write the new file `path` from `tables`, name -> folder of Parquet parts."""
    spill = path.with_name(".analyst-spill")
    with closing(duckdb.connect(path, config={"memory_limit": get_budget().database_limit, "temp_directory": str(spill)})) as file:
        # One transaction, because each of several hundred statements would otherwise wait for the disk.
        ddl = [TABLES[name].render_ddl() for name in filter(is_in_file, tables)]
        ddl += [line for view in VIEWS if all(name in tables for name in view.needs) for line in _render_view(view)]
        file.execute("\n".join(["BEGIN;", *ddl, "COMMIT;"]))
        for name in filter(is_in_file, tables):
            columns = ", ".join(f'"{column}"' for column in TABLES[name].column_names)
            file.execute(f'INSERT INTO "{name}" SELECT {columns} FROM {render_sql_source(tables[name])}')
        file.execute("CHECKPOINT")


def is_in_file(name: str) -> bool:
    """Return whether a published table is also in the file."""
    return TABLES[name].layer == "catalog" or name in LINKAGE_RESULTS


def _render_view(view: View) -> Iterator[str]:
    yield f"CREATE VIEW {view.name} AS {view.sql};"
    yield f"COMMENT ON VIEW {view.name} IS {_quote_text(view.description)};"
    for column, comment in view.columns.items():
        yield f"COMMENT ON COLUMN {view.name}.{column} IS {_quote_text(comment)};"


def _quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
