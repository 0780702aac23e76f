"""Page of the rows behind the counts of the report: the first rejects of each kind, and contested codes by reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.sql_text import quote_text
from pipeline.quality.report.examples import ROWS_OF_A_KIND
from pipeline.quality.report.templates import render_page, write_page

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.quality.report.examples import Examples, Row


def build_anchor(kind: Row) -> str:
    """Return the id of the rows of a kind of reject on the page."""
    return "-".join(("reject", kind["platform"], kind["severity"], kind["reason"], kind["field"]))


def write_rows_page(examples: Examples, file: Path) -> None:
    """Write the page to `file`, complete or not at all; the same rows give the same bytes."""
    write_page(render_page("rows.html.j2", {"anchor": build_anchor, "query": _write_query}, examples=examples, most=ROWS_OF_A_KIND), file)


def _write_query(kind: Row) -> str:
    """Return the statement that reads all rows of a kind out of the analysts' file."""
    names = ("platform", "severity", "reason", "field")
    conditions = [f"{name} = {quote_text(kind[name])}" if kind[name] else f"{name} IS NULL" for name in names]
    return f"FROM source_reject WHERE {' AND '.join(conditions)}"
