"""Generator of the pages of docs/reference/ from the code. `--check` only tests whether they are up to date (a test does)."""

from __future__ import annotations

import sys
from pathlib import Path

from catalog_api.problems import CODES
from catalog_api.settings import render_settings_page
from catalog_store.tables.reference_page import render_table_reference
from pipeline.dumps.staging.reject_reasons import Reason
from scripts.commands_page import render_commands_page
from scripts.contract_page import render_contract_page

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def render_rejects() -> str:
    """Write the page of reject reasons with what to do about each."""
    rows = "\n".join(f"| `{reason.value}` | {reason.advice} |" for reason in Reason)
    return (
        "# Rejects\n\n"
        "Look up what to do about a reject. An adapter writes a row of `reject` for each record or value that it cannot stage,\n"
        "with value, file and place. Publishing copies all of them to [source_reject](dictionary/source_reject.md).\n"
        "Severity `row`: the whole record is left out; `field`: it is staged without that value.\n"
        "This page is generated from `pipeline/dumps/staging/reject_reasons.py`.\n\n"
        f"| Reason | Meaning and what to do |\n|---|---|\n{rows}\n"
    )


def render_errors() -> str:
    """Write the page of the error codes of /v1."""
    rows = "\n".join(f"| `{name}` | {code.status} | {code.title} | {code.advice} |" for name, code in CODES.items())
    return (
        "# Error codes of /v1\n\n"
        "An error is an `application/problem+json` document (RFC 9457). Act on its `code`: a code never changes its meaning.\n"
        "[Calling /v1](api.md#when-something-is-wrong) shows a whole answer. The server serves this table at `/v1/errors`.\n"
        "Errors of the Python interface are in [the snapshot format](snapshot_format.md#error-codes).\n"
        "This page is generated from `catalog_api/problems.py`.\n\n"
        f"| Code | Status | Title | What to do |\n|---|---|---|---|\n{rows}\n"
    )


PAGES = {
    "commands.md": render_commands_page,
    "contract.md": render_contract_page,
    "errors.md": render_errors,
    "rejects.md": render_rejects,
    "settings.md": render_settings_page,
    "tables.md": render_table_reference,
}


def main() -> int:
    """Write, or with `--check` compare; exit code 1 when a page is out of date."""
    stale = [name for name, page in PAGES.items() if not (file := REFERENCE / name).exists() or file.read_text(encoding="utf-8") != page()]
    if "--check" in sys.argv:
        for name in stale:
            print(f"docs/reference/{name} is out of date: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (REFERENCE / name).write_text(PAGES[name](), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
