from __future__ import annotations

import duckdb
import pytest

from pipeline.build.representative_isrcs import render_representative_sql

Codes = dict[str, int]
"""Code -> platforms that give it."""


def representative(codes: Codes, before: str | None = None) -> tuple[str, int, str]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE isrc_owner (isrc VARCHAR, recording_id BIGINT, platform_count INTEGER)")
        connection.executemany("INSERT INTO isrc_owner VALUES (?, 1, ?)", list(codes.items()))
        connection.execute("CREATE TABLE shown_before AS SELECT 1::BIGINT AS recording_id, ?::VARCHAR AS isrc", [before])
        [found] = connection.sql(f"SELECT isrc, agreed, reason FROM ({render_representative_sql('2027-11-01')})").fetchall()
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ({"USAAA0100001": 1}, ("USAAA0100001", 1, "only_code")),
        ({"USAAA9900001": 1, "USBBB0500001": 2}, ("USBBB0500001", 2, "most_platforms")),
        ({"USAAA0500001": 2, "USBBB9900001": 2, "GBAAA8000001": 1}, ("USBBB9900001", 2, "earliest_year")),
        ({"USAAA9900009": 1, "USAAA9900008": 1, "USAAA0100001": 1}, ("USAAA9900008", 1, "alphabet")),
        # No code of 2039 exists yet: the digits are mistyped.
        ({"USAAA3900001": 1, "USAAA2600001": 1}, ("USAAA2600001", 1, "earliest_year")),
    ],
)
def test_code_is_chosen_by_support_then_year_then_alphabet(codes: Codes, expected: tuple[str, int, str]) -> None:
    assert representative(codes) == expected
    assert representative(dict(reversed(codes.items()))) == expected


def test_the_code_shown_last_night_stays_while_no_other_has_more_support() -> None:
    codes = {"USAAA9900001": 2, "USBBB0500001": 2}
    assert representative(codes) == ("USAAA9900001", 2, "earliest_year")
    assert representative(codes, before="USBBB0500001") == ("USBBB0500001", 2, "kept")
    assert representative({"USAAA9900001": 3, "USBBB0500001": 2}, before="USBBB0500001") == ("USAAA9900001", 3, "most_platforms")
    assert representative(codes, before="USCCC0000001") == ("USAAA9900001", 2, "earliest_year")


def test_second_night_gives_the_same_reason_as_the_first() -> None:
    codes = {"USAAA9900001": 2, "USBBB0500001": 2}
    assert representative(codes, before="USAAA9900001") == representative(codes)
