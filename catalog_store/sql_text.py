"""Values and names inside the text of SQL statements, where DuckDB takes no parameters: views, COPY, comments, table functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def quote_text(value: str | Path) -> str:
    """Return a text or a path as an SQL literal."""
    return "'" + str(value).replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """Return the name of a table or column as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_list(values: Iterable[str | Path]) -> str:
    """Return texts or paths as an SQL list."""
    return f"[{', '.join(map(quote_text, values))}]"
