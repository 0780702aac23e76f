from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from catalog_store.tables import ALL_TABLES
from catalog_store.tables.reference_page import render_table_reference

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "tables.md"


def test_page_is_generated_from_the_specs() -> None:
    assert PAGE.read_text() == render_table_reference(), "renew it: python -m catalog_store.tables > docs/reference/tables.md"


def test_command_prints_the_page() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "catalog_store.tables"], check=True, capture_output=True, text=True, cwd=PAGE.parents[1]
    )
    assert printed.stdout == render_table_reference()


def test_every_table_and_column_is_described() -> None:
    page = render_table_reference()
    for table in ALL_TABLES:
        section = page.split(f"### {table.name}\n")[1].split("\n### ")[0]
        assert table.description in section
        for column in table.columns:
            assert f"| `{column.name}` |" in section
