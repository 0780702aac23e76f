"""Rows of tables that tests write by hand."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import polars as pl

from catalog_store.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence


def build_frame(name: str, rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return rows of a published table. Dates may be text, as answers show them."""
    table = TABLES[name]
    return table.conform(pl.DataFrame([_read_dates(row) for row in rows], schema=table.polars_schema, orient="row"))


def _read_dates(value: Any, name: str = "") -> Any:  # noqa: ANN401 - any value of a row
    if isinstance(value, dict):
        return {key: _read_dates(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_read_dates(inner) for inner in value]
    return date.fromisoformat(value) if name == "release_date" and isinstance(value, str) else value
