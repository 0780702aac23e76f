"""The output of commands: dataclasses as plain records, records as JSON values or as text for people."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from account_store.account import Account
from account_store.clock import format_rfc3339
from account_store.plans import Plan

Record = dict[str, Any]


def to_record(thing: Any) -> Record:  # noqa: ANN401 -- any dataclass of this package, or a record already
    """Return a record of JSON values: times as RFC 3339, prices as text, an account with the figures of its plan."""
    if isinstance(thing, dict):
        return {name: _to_json(value) for name, value in thing.items()}
    record = {field.name: getattr(thing, field.name) for field in fields(thing)}
    if isinstance(thing, Account):
        figures = {name: getattr(thing.plan, name) for name in ("credits", "price_eur", "yearly_price_eur", "requests_per_second")}
        record |= {"plan": thing.plan.name} | figures
    return {name: _to_json(value) for name, value in record.items()}


def _to_json(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, datetime):
        return format_rfc3339(value)
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    if isinstance(value, Plan):
        return value.name
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    return [to_record(one) for one in value] if isinstance(value, list) else value


def format_text(records: list[Record]) -> str:
    """Format one record as lines of name and value, several as a table; lists within a record as tables below it."""
    if len(records) != 1:
        return _format_table(records) if records else "none\n"
    [record] = records
    flat = {name: value for name, value in record.items() if not _is_table(value)}
    width = max(map(len, flat))
    lines = [f"{name:<{width}}  {_format_cell(value)}".rstrip() + "\n" for name, value in flat.items()]
    tables = [f"\n{name}\n{_format_table(value)}" for name, value in record.items() if _is_table(value)]
    return "".join(lines + tables)


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _format_table(records: list[Record]) -> str:
    rows = [list(records[0]), *[[_format_cell(value) for value in record.values()] for record in records]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows)


def _format_cell(value: Any) -> str:  # noqa: ANN401
    if value is None or value == []:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
