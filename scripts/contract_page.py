"""The page docs/reference/contract.md: every row of the contract with its tests, from contract.yaml beside it and the tests' names."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "docs" / "reference" / "contract.yaml"
TESTS = ROOT / "tests" / "contract"
_ROW_OF_TEST = re.compile(r"test_([a-g]\d+)_")


def read_rows() -> dict[str, Any]:
    """Return row id -> its entry, and a section's letter -> its heading."""
    loaded: dict[str, Any] = yaml.safe_load(ROWS.read_text(encoding="utf-8"))
    return loaded


def find_tests() -> dict[str, list[tuple[str, str]]]:
    """Return row id -> (file, test) of every test that names it, in the order of the files."""
    found: dict[str, list[tuple[str, str]]] = {}
    for file in sorted(TESTS.glob("test_[a-g]_*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and (row := _ROW_OF_TEST.match(node.name)):
                found.setdefault(row[1].upper(), []).append((file.name, node.name))
    return found


def render_contract_page() -> str:
    """Return the page."""
    by_row, lines = find_tests(), [_HEAD]
    for row, entry in read_rows().items():
        if isinstance(entry, str):
            lines.append(f"\n## {row}. {entry}\n| Row | Guarantee | Beyond the contract | Tests |\n|---|---|---|---|")
        elif "follows" in entry:
            lines.append(f"| {row} | follows with {entry['follows']}: not served | | |")
        else:
            names = "<br>".join(_link(file, name) for file, name in by_row.get(row, []))
            lines.append(f"| {row} | {entry['holds']} | {entry.get('beyond', '')} | {names} |")
    return "\n".join(lines) + "\n"


def _link(file: str, name: str) -> str:
    return f"[{name.partition('_')[2].partition('_')[2]}](../../tests/contract/{file})"


_HEAD = """# The contract of /v1

Every row has tests of its name. They run against a live server process on loopback, once with the accounts in SQLite and once in
PostgreSQL. Most use the catalog of `tests/contract/awkward.py`; rows about builds use one built from dumps.

Further tests cover hostile and generated requests (`test_hostile_requests.py`), the OpenAPI document against the server
(`test_description_holds.py`), and credits under several workers (`test_credits_over_http.py`). `make contract` sends requests for the rows
to a running server, by default the demo, and prints row, request, answer and verdict (`URL=`, `KEY=`). This page is generated from
[contract.yaml](contract.yaml) and the tests."""
