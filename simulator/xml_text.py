"""Columns of XML text: escaped values, elements that vanish when empty, attributes. Records are put together by concatenation."""

from __future__ import annotations

import polars as pl

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def escape_text(value: pl.Expr) -> pl.Expr:
    """Return the text with the four entities that the dumps use."""
    return value.str.replace_many(_ENTITIES)


def build_element(tag: str, value: pl.Expr, *, always: bool = False) -> pl.Expr:
    """Return `<tag>value</tag>` around an escaped value; for null nothing, or `<tag/>` when `always`."""
    written = pl.concat_str(pl.lit(f"<{tag}>"), value, pl.lit(f"</{tag}>"))
    return pl.when(value.is_not_null()).then(written).otherwise(pl.lit(f"<{tag}/>" if always else ""))


def build_attribute(name: str, value: pl.Expr) -> pl.Expr:
    """Return ` name="value"`, with the value escaped; null is written as an empty value."""
    return pl.concat_str(pl.lit(f' {name}="'), escape_text(value.fill_null("")), pl.lit('"'))


def join_records(records: pl.Series) -> bytes:
    """Return records one after the other, each ending its line."""
    return "".join(record + "\n" for record in records.to_list()).encode()
