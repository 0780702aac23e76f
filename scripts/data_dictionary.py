"""The data dictionary: a page for each table of `catalog.duckdb` with keys, null shares, examples and sources of its columns.

    .venv/bin/python -m scripts.data_dictionary CATALOG

Rows, null shares and examples come from the live snapshot of CATALOG; the pages of the repository show the tutorial's world. The rest
follows from the specs of the tables.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog_store.analyst_file import is_in_file
from catalog_store.platforms import INPUT_RIGHTS, PLATFORMS
from catalog_store.tables import ALL_TABLES, TABLES
from catalog_store.tables.files import read_table
from catalog_store.tables.references import list_references
from pipeline.defs.column_lineage import find_origin

if TYPE_CHECKING:
    import polars as pl

    from catalog_store.tables import Column, Table

DICTIONARY = Path(__file__).resolve().parent.parent / "docs" / "reference" / "dictionary"
LISTED = tuple(table for table in ALL_TABLES if table.layer != "staging" and is_in_file(table.name))
LONGEST_EXAMPLE = 60
_MADE_BY = "`python -m scripts.data_dictionary CATALOG`"


def render_index(rows: dict[str, int]) -> str:
    """Return the page that lists all tables; `rows` by table."""
    lines = [f"| [{table.name}]({table.name}.md) | {rows[table.name]:,} | {escape(table.description)} |" for table in LISTED]
    rights = [(one.key, one.licence, one.attribution) for one in PLATFORMS.values()]
    rights += [(one.key, one.licence, one.attribution) for one in INPUT_RIGHTS]
    return "\n".join(
        [
            "# Data dictionary\n",
            "Look up what a table holds before you query it. Figures and examples come from the made-up world of the",
            f"[tutorial](../../tutorial/index.md). {_MADE_BY} writes the pages. [Tables](../tables.md) has the rules of columns.\n",
            "| Table | Rows | Contents |\n|---|---|---|",
            *lines,
            "\n## Sources\n",
            "Table `platform` of `catalog.duckdb` and the manifest have the same. Show the attribution where you pass values on.\n",
            "| Source | Licence | Attribution |\n|---|---|---|",
            *(f"| `{key}` | {escape(licence)} | {escape(attribution)} |" for key, licence, attribution in rights),
            "",
        ]
    )


def render_table(table: Table, frame: pl.DataFrame) -> str:
    """Return the page of a table; `frame` has its rows."""
    references = [found for found in list_references(one.name for one in LISTED) if table.name in (found.table, found.other)]
    outgoing = sorted({f"`{one.column}` is in [{one.other}]({one.other}.md)" for one in references if one.table == table.name})
    incoming = sorted({f"[{one.table}]({one.table}.md)" for one in references if one.other == table.name and one.table != table.name})
    key = ", ".join(f"`{name}`" for name in table.primary_key)
    facts = [
        f"- Key: {key}" if key else "- Key: none",
        *(f"- Refers to: {line}" for line in outgoing),
        *([f"- Referred to by: {', '.join(incoming)}"] if incoming else []),
        f"- Rows in the example: {frame.height:,}",
    ]
    lines = [render_column(table, column, frame) for column in table.columns]
    return "\n".join(
        [
            f"# {table.name}\n",
            f"{escape(table.description)}\n",
            *facts,
            "\n| Column | Type | Null | Example | Source | Meaning |\n|---|---|---|---|---|---|",
            *lines,
            "",
        ]
    )


def render_column(table: Table, column: Column, frame: pl.DataFrame) -> str:
    """Return the line of a column."""
    values = frame[column.name]
    share = f"{values.null_count() / frame.height:.1%}" if frame.height else ""
    example = next((shown for value in values.drop_nulls().head(100).to_list() if (shown := show_value(value))), "")
    sources = [f"`{found}`" for found in dict.fromkeys((find_origin(table, column), column.references)) if found]
    cells = [f"`{column.name}`", f"`{values.dtype}`", share, f"`{example}`" if example else "", ", ".join(sources), column.description]
    return f"| {' | '.join(escape(cell) for cell in cells)} |"


def show_value(value: Any) -> str:  # noqa: ANN401 - any value of a table
    """Return a value in one short line; nothing for an empty list."""
    text = "" if value == [] else str(value).replace("`", "'").replace("\n", " ")
    return text if len(text) <= LONGEST_EXAMPLE else text[: LONGEST_EXAMPLE - 3] + "..."


def escape(text: str) -> str:
    """Return text for a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def write_dictionary(tables: Path, folder: Path) -> list[Path]:
    """Write all pages from the published tables in `tables`, and return them."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = {table.name: read_table(TABLES[table.name], tables / table.name) for table in LISTED if (tables / table.name).is_dir()}
    frames = {table.name: frames.get(table.name, table.build_empty()) for table in LISTED}
    pages = {f"{table.name}.md": render_table(table, frames[table.name]) for table in LISTED}
    pages["index.md"] = render_index({name: frame.height for name, frame in frames.items()})
    for name, text in pages.items():
        (folder / name).write_text(text)
    return [folder / name for name in pages]


def main(arguments: list[str] | None = None) -> int:
    """Write the pages of the repository."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path, help="catalog with a live snapshot")
    options = parser.parse_args(arguments)
    print(f"{len(write_dictionary(options.catalog / 'current' / 'tables', DICTIONARY))} pages in {DICTIONARY}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
