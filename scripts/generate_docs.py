"""Writes the generated pages of docs/ from the code. `--check` only says whether they are up to date (a test does)."""

from __future__ import annotations

import sys
from pathlib import Path

from catalog_api.settings import settings_page
from catalog_store.tables.reference import table_reference
from pipeline.dumps.rejects import Reason
from scripts.contract_page import contract_page

DOCS = Path(__file__).resolve().parent.parent / "docs"


def rejects_page() -> str:
    """The table of reject reasons with what to do about each."""
    rows = "\n".join(f"| `{reason.value}` | {reason.advice} |" for reason in Reason)
    return (
        "# Rejects\n\n"
        "What an adapter cannot take over from a dump becomes a row of `reject`, with the value, the file and the place.\n"
        "Severity `row`: the whole record is out; `field`: it is staged without that value.\n"
        "This page is generated from `pipeline/dumps/rejects.py`.\n\n"
        f"| reason | what it means and what to do |\n|---|---|\n{rows}\n"
    )


PAGES = {"table_reference.md": table_reference, "rejects.md": rejects_page, "contract.md": contract_page, "settings.md": settings_page}


def main() -> int:
    """Write, or with `--check` compare; exit code 1 when a page is out of date."""
    stale = [name for name, page in PAGES.items() if not (DOCS / name).exists() or (DOCS / name).read_text(encoding="utf-8") != page()]
    if "--check" in sys.argv:
        for name in stale:
            print(f"docs/{name} is out of date: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
