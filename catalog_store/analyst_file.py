"""`catalog.duckdb`: the published tables for analysts, with comments, keys and views for everyday questions, in one small file.

Each table is a view over the Parquet parts of the snapshot, because a second copy of all rows cost as many bytes and as much processor time
as the rest of the snapshot (docs/design/decisions/0026-analysts-read-the-parquet-parts.md). DuckDB resolves relative paths against the
caller's working folder. The macro `catalog_folder()` therefore finds the snapshot: the folder that the variable of that name has, else
the folder of the opened file, else the place of the publish. The name of a part holds a hash of its bytes, so a view that looks into
another snapshot's folder finds its own rows or none.

Of the linkage tables only the results are included; the steps and the builder's ids stay Parquet. The views' SQL belongs in
analyst_views.py.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import duckdb

from catalog_store.analyst_views import VIEWS, View
from catalog_store.platforms import INPUT_RIGHTS, PLATFORMS
from catalog_store.sql_text import quote_list, quote_text
from catalog_store.tables import TABLES
from catalog_store.tables.references import list_references

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from catalog_store.snapshot import StoredTable

LINKAGE_RESULTS = ("recording_member", "isrc_conflict")
OLDEST_DUCKDB = "v1.2.0"
"""The oldest version of DuckDB that reads the file. By default only versions from 2.0 on could."""
FOLDER_MACRO = "catalog_folder"
"""A macro, and the variable that overrides it."""
_KEY_TABLE = "table_key"
_KEY_COMMENTS = {
    "table_name": "The table.",
    "kind": "primary: the columns identify a row. foreign: their value, unless null, occurs in the other table.",
    "column_names": "Columns of the key; of a list of structs also the field, after a dot.",
    "other_table": "Foreign keys: the table that is referred to.",
    "other_column": "Its column.",
    "condition": "Foreign keys of some rows only: which.",
}

_PLATFORM_TABLE = "platform"
_PLATFORM_COMMENTS = {
    "platform": "Platform key, or the key of another input: works, fingerprints, audio, suggestions.",
    "licence": "Licence of its values, or the ground on which the catalog holds them.",
    "attribution": "The words to show beside its values; null where none are asked for.",
    "owner": "Who answers for the platform in this catalog; null for other inputs.",
    "url": "Template of the address of a record, for links and attribution; null for other inputs.",
}


def build_analyst_file(tables: Mapping[str, StoredTable], path: Path, home: Path) -> None:
    """Write the new file `path` beside the parts of `tables`. `home` is the folder that the snapshot gets when it is published."""
    held = [name for name in tables if is_in_file(name)]
    with closing(duckdb.connect(path, config={"storage_compatibility_version": OLDEST_DUCKDB})) as file:
        # One transaction, because each of several hundred statements would otherwise wait for the disk.
        statements = [
            "BEGIN",
            _render_folder_macro(path.name, home),
            *(line for name in held for line in _render_table(name, tables[name])),
            *_render_keys(held),
            *_render_platforms(),
            *(line for view in VIEWS if all(name in tables for name in view.needs) for line in _render_view(view)),
            "COMMIT",
            "CHECKPOINT",
        ]
        file.execute(";\n".join(statements))


def is_in_file(name: str) -> bool:
    """Return whether a published table is also in the file."""
    return TABLES[name].layer in {"catalog", "quality"} or name in LINKAGE_RESULTS


def _render_folder_macro(file_name: str, home: Path) -> str:
    # No function of DuckDB returns the place of a view's file. By default DuckDB spills beside the opened file, so that setting shows it.
    # In a path with a question mark it has its suffix before that mark.
    opened = r"regexp_replace(current_setting('temp_directory'), '\.tmp\?(.*)$', '?\1.tmp')"
    spill = f"{file_name}.tmp"
    beside = f"CASE WHEN parse_filename({opened}) = {quote_text(spill)} THEN left({opened}, {-len(spill)}) END"
    folder = f"coalesce(getvariable('{FOLDER_MACRO}') || '/', {beside}, {quote_text(f'{home}/')})"
    # DuckDB takes `*`, `?` and `[` for patterns. A pattern also finds the parts of a copy of the snapshot in a folder of a similar name.
    return f"CREATE MACRO {FOLDER_MACRO}() AS regexp_replace({folder}, '([*?[])', '[\\1]', 'g')"


def _render_table(name: str, table: StoredTable) -> Iterator[str]:
    columns = ", ".join(f'"{column}"' for column in TABLES[name].column_names)
    parts = ", ".join(f"{FOLDER_MACRO}() || {quote_text(part.path)}" for part in table.files)
    yield f'CREATE VIEW "{name}" AS SELECT {columns} FROM read_parquet([{parts}])'
    yield from (comment.rstrip(";") for comment in TABLES[name].render_comments("VIEW"))


def _render_keys(names: Iterable[str]) -> Iterator[str]:
    """Render the table of keys: a view has no constraints that could state them."""
    names = list(names)
    primary = [(name, "primary", [*TABLES[name].primary_key], None, None, None) for name in names if TABLES[name].primary_key]
    foreign = [
        (
            found.table,
            "foreign",
            [".".join(filter(None, (found.column, found.nested)))],
            found.other,
            found.key,
            " = ".join((found.kind[0], quote_text(found.kind[1]))) if found.kind else None,
        )
        for found in list_references(names)
    ]
    columns = ", ".join(f"{column} VARCHAR{'[]' if column == 'column_names' else ''}" for column in _KEY_COMMENTS)
    yield f"CREATE TABLE {_KEY_TABLE} ({columns})"
    rows = ", ".join(f"({', '.join(map(_render_value, row))})" for row in [*primary, *foreign])
    yield f"INSERT INTO {_KEY_TABLE} VALUES {rows}"
    yield f"COMMENT ON TABLE {_KEY_TABLE} IS 'The keys of all tables: what identifies a row, and what refers to what.'"
    for column, comment in _KEY_COMMENTS.items():
        yield f"COMMENT ON COLUMN {_KEY_TABLE}.{column} IS {quote_text(comment)}"


def _render_platforms() -> Iterator[str]:
    """Render the table of platforms and other inputs, with licence and attribution of each."""
    yield f"CREATE TABLE {_PLATFORM_TABLE} ({', '.join(f'{column} VARCHAR' for column in _PLATFORM_COMMENTS)})"
    rows: list[tuple[str | None, ...]] = [(one.key, one.licence, one.attribution or None, one.owner, one.url) for one in PLATFORMS.values()]
    rows += [(one.key, one.licence, one.attribution or None, None, None) for one in INPUT_RIGHTS]
    values = ", ".join(f"({', '.join(map(_render_value, row))})" for row in rows)
    yield f"INSERT INTO {_PLATFORM_TABLE} VALUES {values}"
    yield f"COMMENT ON TABLE {_PLATFORM_TABLE} IS 'The platforms and other inputs of the build, with the licence of their values.'"
    for column, comment in _PLATFORM_COMMENTS.items():
        yield f"COMMENT ON COLUMN {_PLATFORM_TABLE}.{column} IS {quote_text(comment)}"


def _render_value(value: str | list[str] | None) -> str:
    if isinstance(value, list):
        return quote_list(value)
    return "NULL" if value is None else quote_text(value)


def _render_view(view: View) -> Iterator[str]:
    yield f"CREATE VIEW {view.name} AS {view.sql}"
    yield f"COMMENT ON VIEW {view.name} IS {quote_text(view.description)}"
    for column, comment in view.columns.items():
        yield f"COMMENT ON COLUMN {view.name}.{column} IS {quote_text(comment)}"
