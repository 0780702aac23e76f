"""Tests that each row of the contract has a test, and that each test names an existing row."""

from __future__ import annotations

from scripts.contract_page import find_tests, read_rows, render_contract_page

SECTIONS = {"A": 20, "B": 17, "C": 13, "D": 5, "E": 6, "F": 6, "G": 9}
"""Number of rows of each section."""


def test_every_row_is_in_the_list() -> None:
    expected = {f"{section}{number}" for section, count in SECTIONS.items() for number in range(1, count + 1)}
    assert {row for row, entry in read_rows().items() if not isinstance(entry, str)} == expected


def test_every_row_that_is_served_has_a_test_and_no_other_has() -> None:
    served = {row for row, entry in read_rows().items() if not isinstance(entry, str) and "holds" in entry}
    assert set(find_tests()) == served
    assert served >= {row for row in read_rows() if row[0] in "ABCDEF" and len(row) > 1}


def test_the_page_names_every_test() -> None:
    page = render_contract_page()
    assert all(name.partition("_")[2].partition("_")[2] in page for tests in find_tests().values() for _, name in tests)
