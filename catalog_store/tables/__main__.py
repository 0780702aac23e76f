"""`python -m catalog_store.tables` prints docs/reference/tables.md."""

from __future__ import annotations

from catalog_store.tables.reference_page import render_table_reference

if __name__ == "__main__":
    print(render_table_reference(), end="")
