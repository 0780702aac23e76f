"""Dates as platforms write them."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.dumps.fields.dates import add_dates


@pytest.mark.parametrize(
    ("text", "date", "precision"),
    [
        ("2024-01-02", "2024-01-02", "day"),
        ("2024/1/2", "2024-01-02", "day"),
        ("2024 01 02", "2024-01-02", "day"),
        ("2024-01-02T23:59:59-08:00", "2024-01-02", "day"),
        ("2024-01-02Z", "2024-01-02", "day"),
        ("2024-01-02+01:00", "2024-01-02", "day"),
        ("2024-01", "2024-01-01", "month"),
        ("2024-01Z", "2024-01-01", "month"),
        ("2023-02-29", "2023-02-01", "month"),
        ("2024-??-??", "2024-01-01", "year"),
        ("2024", "2024-01-01", "year"),
        ("0000", None, None),
        ("20240102", None, None),
        ("01/02/2024", None, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_a_date_keeps_the_parts_that_are_known(text: str | None, date: str | None, precision: str | None) -> None:
    read = add_dates(pl.DataFrame({"text": [text]}, schema={"text": pl.String}), pl.col("text"))
    assert read.select("_date", "_precision").row(0) == (date, precision)
