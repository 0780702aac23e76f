from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.tables import TABLES
from scripts.data_dictionary import DICTIONARY, LISTED, render_column, write_dictionary
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.tables import Table


@pytest.mark.parametrize("table", LISTED, ids=lambda table: table.name)
def test_page_of_each_published_table_lists_its_key_and_columns(table: Table) -> None:
    page = (DICTIONARY / f"{table.name}.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE) == table.column_names, "run python -m scripts.data_dictionary CATALOG"
    assert ", ".join(f"`{name}`" for name in table.primary_key) in page
    assert f"[{table.name}]({table.name}.md)" in (DICTIONARY / "index.md").read_text()


def test_pages_without_a_table_are_gone() -> None:
    assert {page.stem for page in DICTIONARY.glob("*.md")} == {"index", *(table.name for table in LISTED)}


def test_column_shows_null_share_first_value_and_source() -> None:
    table = TABLES["recording"]
    frame = table.build_empty().vstack(table.build_empty()).select("isrc")
    frame = pl.concat([frame, pl.DataFrame({"isrc": [None, "GBAYE0000100", "GBAYE0000101", None]})])
    assert "| 50.0% | `GBAYE0000100` | `source_recording.isrcs` |" in render_column(table, table.get_column("isrc"), frame)


def test_pages_are_written_from_any_snapshot(tmp_path: Path) -> None:
    make_tables(tmp_path / "tables", 12)
    pages = write_dictionary(tmp_path / "tables", tmp_path / "pages")
    assert len(pages) == len(LISTED) + 1
    assert "- Rows in the example: 12" in (tmp_path / "pages" / "recording.md").read_text()
