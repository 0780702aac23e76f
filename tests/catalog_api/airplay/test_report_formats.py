"""Tests of the choice of a report's format by the Accept header."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_api.airplay.report_formats import CSV, FORMATS, JSON_TYPE, PARQUET, choose_format

OFFERED = list(FORMATS)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", JSON_TYPE),
        ("*/*", JSON_TYPE),
        ("TEXT/CSV", CSV),
        ("text/csv; header=present", CSV),
        ("application/*, text/csv;q=0.9", JSON_TYPE),
        ("*/*;q=0.5, application/vnd.apache.parquet;q=0.6", PARQUET),
        ("application/json;q=0, application/*", PARQUET),
        ("text/csv;q=0", None),
        ("text/csv;q=nonsense", None),
        ("image/*, text/html", None),
    ],
)
def test_media_type_with_the_highest_weight_is_chosen(accept: str, expected: str | None) -> None:
    assert choose_format(accept, OFFERED) == expected


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_accept_header_gives_an_offered_type_or_none(accept: str) -> None:
    assert choose_format(accept, OFFERED) in {*OFFERED, None}
