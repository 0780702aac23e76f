"""Tests of prices in credits: the page for callers states them, and an upload costs more for each megabyte begun."""

from __future__ import annotations

import re

import pytest

from catalog_api.credit_prices import (
    IDENTIFICATION,
    LOOKUP,
    RESOLVED_ROW,
    STREAM,
    SUGGESTION,
    TIMELINED_MEGABYTE,
    UPLOADED_MEGABYTE,
    price_timeline,
    price_upload,
)
from catalog_api.uploads import MEGABYTE
from tests.conftest import ROOT


def test_page_for_callers_states_each_price() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    stated = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", page, flags=re.MULTILINE))
    assert stated["200; 404 of a well-formed lookup; a suggestion"] == str(LOOKUP) == str(SUGGESTION)
    assert stated["bulk resolve; a bulk job that succeeds"] == f"{RESOLVED_ROW} a row"
    of_timeline = f"{TIMELINED_MEGABYTE} for each megabyte with `mode=timeline`"
    assert stated["identify"] == f"{IDENTIFICATION}, and {UPLOADED_MEGABYTE} for each megabyte of a file; {of_timeline}"
    assert stated["304, other 4xx, 5xx, `/v1/usage`, `/v1/audit`, streams, webhooks"] == str(STREAM)


@pytest.mark.parametrize(("size", "credits_"), [(1, 11), (MEGABYTE, 11), (MEGABYTE + 1, 12), (100 * MEGABYTE, 110)])
def test_upload_costs_more_for_each_megabyte_begun(size: int, credits_: int) -> None:
    assert price_upload(size) == credits_
    assert price_timeline(size) - IDENTIFICATION == TIMELINED_MEGABYTE * (credits_ - IDENTIFICATION)
