"""Checks that split a block of records into staged rows and rejects, a column at a time.

A block is a frame with the columns `source_file` and `place` (where each record is) beside the values as delivered. `split_rows`
rejects records, and `find_value_rejects` rejects values. Add a check here only if several platforms need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

WHERE = ("source_file", "place")


@dataclass(frozen=True)
class RowRule:
    """Rule that rejects each record for which `fails` is true. `value` is the column to show, if one value is at fault."""

    reason: Reason
    fails: pl.Expr
    value: str | None = None


@dataclass(frozen=True)
class ValueRule:
    """Rule that rejects a value if it was delivered (`raw` is not null) but cannot be read (`clean` is null). `field`: its name."""

    field: str
    raw: pl.Expr
    clean: pl.Expr
    reason: Reason


def split_rows(block: pl.DataFrame, entity: str, record_id: str, rules: Sequence[RowRule]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return `block` without the records that fail a rule, and these as rows of `reject`. The first rule that fails is the reason."""
    reason = pl.lit(None, dtype=pl.String)
    value = pl.lit(None, dtype=pl.String)
    # Each step overrides the one before, so the first rule of the list is applied last and wins.
    for rule in reversed(rules):
        # A comparison with an absent value is null, which is not a failure: absence has rules of its own.
        fails = rule.fails.fill_null(value=False)
        shown = pl.col(rule.value).cast(pl.String, strict=False) if rule.value else pl.lit(None, dtype=pl.String)
        value = pl.when(fails).then(shown).otherwise(value)
        reason = pl.when(fails).then(pl.lit(rule.reason.value)).otherwise(reason)
    # Lazily, because only then a rule that occurs in both columns is computed once.
    marks = block.lazy().select(_reason=reason, _value=value).collect()
    is_out = marks["_reason"].is_not_null()
    # Most blocks have no reject: filtering them would copy every column for nothing.
    kept = block.filter(~is_out) if is_out.any() else block
    out = pl.concat([block.filter(is_out), marks.filter(is_out)], how="horizontal")
    return kept, out.select(
        entity=pl.lit(entity),
        severity=pl.lit("row"),
        reason="_reason",
        source_file="source_file",
        place="place",
        record_id=pl.col(record_id).cast(pl.String),
        value="_value",
        excerpt=build_excerpt(block.columns),
    )


def find_value_rejects(block: pl.DataFrame, entity: str, record_id: str, rules: Sequence[ValueRule]) -> pl.DataFrame:
    """Return a row of `reject` per value of `block` that was delivered but cannot be read, rule by rule."""
    # One pass marks all rules. Excerpts, which encode whole rows as JSON, are built only for the few rows that fail.
    flags = block.select((rule.raw.is_not_null() & rule.clean.is_null()).alias(f"{index}") for index, rule in enumerate(rules))
    found = []
    for index, rule in enumerate(rules):
        bad = flags[f"{index}"]
        if bad.any():
            found.append(
                block.filter(bad).select(
                    entity=pl.lit(entity),
                    severity=pl.lit("field"),
                    reason=pl.lit(rule.reason.value),
                    source_file="source_file",
                    place="place",
                    record_id=pl.col(record_id).cast(pl.String),
                    field=pl.lit(rule.field),
                    value=rule.raw.cast(pl.String),
                    excerpt=build_excerpt(block.columns),
                )
            )
    return pl.concat(found) if found else pl.DataFrame()


def build_unknown_rejects(block: pl.DataFrame, entity: str) -> pl.DataFrame:
    """Return all of `block` as rows of `reject`: of an unknown kind, or without an id."""
    reason = pl.when(pl.col("id").is_null()).then(pl.lit(Reason.MISSING_ID.value)).otherwise(pl.lit(Reason.UNKNOWN_KIND.value))
    return block.select(
        *WHERE,
        entity=pl.lit(entity),
        severity=pl.lit("row"),
        reason=reason,
        record_id="id",
        excerpt=build_excerpt(block.columns),
    )


def build_excerpt(columns: Sequence[str]) -> pl.Expr:
    """Return an expression for the record as JSON, without its place and without columns of adapters (leading underscore)."""
    return pl.struct(name for name in columns if name not in WHERE and not name.startswith("_")).struct.json_encode()


def mark_later(block: pl.DataFrame, duplicates: pl.DataFrame) -> pl.DataFrame:
    """Add `_later`: whether an earlier record of the same `id` is kept instead.

    `duplicates` has each `id` that occurs more than once with the position of its `first`, the one that is kept; `block` has `id` and
    `position`.
    """
    if duplicates.is_empty():
        return block.with_columns(_later=pl.lit(value=False))
    # `duplicates` has only repeated ids, so the join is small; rows without an id match nothing and are never later ones.
    joined = block.join(duplicates, on="id", how="left", maintain_order="left")
    return joined.with_columns(_later=(pl.col("position") != pl.col("first")).fill_null(value=False)).drop("first")


def nullify_blank(column: str) -> pl.Expr:
    """Return an expression for the text of a column; null when it is blank."""
    return pl.when(pl.col(column).str.strip_chars() != "").then(pl.col(column))


def strip_code(value: pl.Expr) -> pl.Expr:
    """Return an id or code without blanks around it, and without the `.0` that data frames with gaps append to whole numbers."""
    text = value.str.strip_chars()
    return pl.when(text.str.contains(".", literal=True)).then(text.str.replace(r"^([0-9]+)\.0+$", "$1")).otherwise(text)


def parse_whole_number(value: pl.Expr, minimum: int, maximum: int) -> pl.Expr:
    """Return text or number (`12`, `12.0`, `[12]`) as Int64 if it is within the bounds, else null."""
    # Through a float, because data frames write 12 as `12.0`, and EPF at times as `[12]`. A float is exact up to 2**53, which all bounds
    # keep.
    number = value.cast(pl.String).str.strip_chars(" []").cast(pl.Float64, strict=False)
    return pl.when(number.is_between(minimum, maximum)).then(number).round().cast(pl.Int64)
