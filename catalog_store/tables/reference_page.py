"""The page `docs/reference/tables.md`, generated from the specs: every table and column with its type, rules and meaning.

`python -m catalog_store.tables > docs/reference/tables.md` renews the page; a test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.tables import CATALOG_TABLES, FINGERPRINT_STAGING_TABLES, LINKAGE_TABLES, QUALITY_TABLES, STAGING_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from catalog_store.tables.spec import Column, Table

_LAYERS = (
    ("Catalog", "The tables of a published snapshot, as Parquet. `catalog.duckdb` shows them.", CATALOG_TABLES),
    (
        "Linkage",
        "How source records became recordings. Some of these tables are published for analysts and for the next build.",
        LINKAGE_TABLES,
    ),
    ("Quality", "Figures of a build, for the next one to compare with.", QUALITY_TABLES),
    (
        "Staging",
        "The records of the dumps, one folder of tables per platform. Not published.",
        (*STAGING_TABLES, *FINGERPRINT_STAGING_TABLES),
    ),
)
_INTRODUCTION = """# Table reference

Generated from `catalog_store/tables` by `python -m catalog_store.tables`; do not edit. Each table is a folder of Parquet parts. Its rows
are sorted by the stated order, else by the key; staging tables keep the order of the dump. A type with `?` may be null. Each build checks
every rule.
"""


def render_table_reference() -> str:
    """Return the whole page."""
    return "\n".join([_INTRODUCTION, *_render_contents(), *(line for layer in _LAYERS for line in _render_layer(*layer))]) + "\n"


def _render_contents() -> Iterator[str]:
    for title, _, tables in _LAYERS:
        yield f"- {title}: {', '.join(f'[{table.name}](#{table.name})' for table in tables)}"


def _render_layer(title: str, description: str, tables: tuple[Table, ...]) -> Iterator[str]:
    yield f"\n## {title}\n\n{description}"
    for table in tables:
        yield from _render_table(table)


def _render_table(table: Table) -> Iterator[str]:
    yield f"\n### {table.name}\n\n{table.description}\n"
    key = f"Key: {_render_names(table.primary_key)}." if table.primary_key else ""
    order = f"Order: {_render_names(table.sort_key)}." if table.sort_key else ""
    yield f"{key} {order}".strip()
    yield "\n| Column | Type | Meaning | Rules |\n|---|---|---|---|"
    for column in table.columns:
        kind = _render_cell(str(column.type)) + ("?" if column.nullable else "")
        yield f"| `{column.name}` | {kind} | {_render_cell(column.description)} | {_describe_rules(column)} |"


def _describe_rules(column: Column) -> str:
    rules = [
        _render_names(column.values) if column.values else "",
        f"matches `{_render_cell(column.pattern)}`" if column.pattern else "",
        f"at least {column.minimum:g}" if column.minimum is not None else "",
        f"at most {column.maximum:g}" if column.maximum is not None else "",
        f"at most {column.longest:,} characters" if column.longest is not None else "",
        f"at most {column.most:,} entries" if column.most is not None else "",
        f"refers to `{column.references}`" if column.references else "",
        f"refers to `{column.later_references}` of the same snapshot" if column.later_references else "",
        *(f"each `{name}` refers to `{other}` of the same snapshot" for name, other in column.nested_references),
    ]
    return "; ".join(filter(None, rules))


def _render_names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _render_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
