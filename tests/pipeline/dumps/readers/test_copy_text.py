"""Tests of COPY text for all block sizes: cells, rejected lines and their messages."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.copy_text import read_copy_text
from pipeline.dumps.readers.tab_rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = {"id": pl.Int32(), "name": pl.String(), "note": pl.String(), "flag": pl.Boolean()}
ESCAPED = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r", "\b": r"\b", "\f": r"\f", "\v": r"\v"}


def read(
    content: bytes, block_bytes: int = 1 << 20, wanted: Sequence[str] = tuple(COLUMNS)
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    rows, faults = [], []
    for block in read_copy_text(io.BytesIO(content), COLUMNS, wanted, "table", block_bytes=block_bytes):
        rows += block.frame.rows()
        faults += block.faults.rows()
    return rows, faults


def test_null_empty_text_and_the_literal_backslash_n_are_three_things() -> None:
    rows, faults = read(b"1\t\\N\t\tt\n2\t\\\\N\t\\N\tf\n")
    assert rows == [(1, 1, None, "", True), (2, 2, r"\N", None, False)]
    assert faults == []


def test_every_escape_is_undone_once_from_the_left() -> None:
    rows, _ = read(rb"1	a\tb\nc\rd\\e\b\f\v	back\\nslash	t" + b"\n")
    assert rows == [(1, 1, "a\tb\nc\rd\\e\b\f\v", r"back\nslash", True)]


def test_quotes_commas_and_control_bytes_are_letters() -> None:
    rows, _ = read(b'1\t"\t7" Edit, "x\tt\n2\t\'q\t#\x01\tf\n')
    assert [row[2:4] for row in rows] == [('"', '7" Edit, "x'), ("'q", "#\x01")]


@settings(deadline=None)  # a busy machine is not a failure
@given(
    st.lists(st.tuples(st.integers(0, 2**31 - 1), st.none() | st.text(), st.none() | st.text(), st.booleans()), max_size=12),
    st.integers(1, 90),
)
def test_written_rows_are_read_back_in_blocks_of_any_size(rows: list[tuple[int, str | None, str | None, bool]], block_bytes: int) -> None:
    def cell(text: str | None) -> str:
        return r"\N" if text is None else "".join(ESCAPED.get(letter, letter) for letter in text)

    content = "".join(f"{number}\t{cell(name)}\t{cell(note)}\t{'t' if flag else 'f'}\n" for number, name, note, flag in rows).encode()
    got, faults = read(content, block_bytes)
    assert got == [(line, *row) for line, row in enumerate(rows, 1)]
    assert faults == []


@pytest.mark.parametrize("block_bytes", [7, 1 << 20])
def test_lines_that_do_not_fit_are_left_out_with_their_number_and_reason(block_bytes: int) -> None:
    rows, faults = read(b"1\ta\tb\tt\n2\tshort\n3\tc\td\tt\textra\nx\te\tf\tt\n5\tg\xff\th\tt\n\n7\ti\tj\tf\n", block_bytes)
    assert rows == [(1, 1, "a", "b", True), (7, 7, "i", "j", False)]
    assert [fault[:2] for fault in faults] == [
        (2, "wrong_column_count"),
        (3, "wrong_column_count"),
        (4, "broken_record"),
        (5, "invalid_utf8"),
        (6, "wrong_column_count"),
    ]
    assert faults[3][2] == "5\tg\\xff\th\tt"


def test_a_short_and_a_long_line_do_not_make_up_for_each_other() -> None:
    rows, faults = read(b"1\ta\tt\n2\ta\tb\tc\tt\n")
    assert rows == []
    assert [fault[0] for fault in faults] == [1, 2]


def test_a_number_too_large_for_its_column_is_a_broken_record_even_where_the_column_is_first_read_as_text() -> None:
    rows, faults = read(b"99999999999\ta\tb\tt\n2\ta\\tb\tc\tt\n")
    assert rows == [(2, 2, "a\tb", "c", True)]
    assert [fault[:2] for fault in faults] == [(1, "broken_record")]


def test_a_last_line_without_an_end_was_cut_off() -> None:
    with pytest.raises(DumpError, match="cut off in the last line"):
        read(b"1\ta\tb\tt\n2\tc\td\tt")


def test_only_wanted_columns_are_read() -> None:
    rows, _ = read(b"1\ta\tb\tt\n", wanted=["note", "id"])
    assert rows == [(1, "b", 1)]


def test_an_empty_stream_has_no_rows() -> None:
    assert read(b"") == ([], [])


@pytest.mark.parametrize("block_bytes", [1, 7, 10, 100])
def test_line_over_the_bound_is_rejected_and_those_around_it_are_read(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr("pipeline.dumps.readers.tab_rows.LONGEST_LINE_BYTES", 100)
    rows, faults = read(b"1\ta\tb\tt\n2\t" + b"x" * 500 + b"\tc\tt\n3\td\te\tf\n", block_bytes)
    assert rows == [(1, 1, "a", "b", True), (3, 3, "d", "e", False)]
    assert [fault[:2] for fault in faults] == [(2, "too_large")]
    assert str(faults[0][2]).startswith("2\tx")


def test_last_line_over_the_bound_without_an_end_was_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.dumps.readers.tab_rows.LONGEST_LINE_BYTES", 100)
    with pytest.raises(DumpError, match="table: cut off in the last line"):
        read(b"1\ta\tb\tt\n2\t" + b"x" * 500, 10)
    blocks = list(read_rows(io.BytesIO(b"1\ta\n" + b"x" * 500), 2, "table", block_bytes=10))
    assert [fault[:2] for block in blocks for fault in block.faults.rows()] == [(2, "too_large")]


def test_a_heading_line_is_skipped_but_counted() -> None:
    blocks = list(read_rows(io.BytesIO(b"#id\tname\n1\ta\n2\tb\r\n"), 2, "table", has_heading=True))
    assert [line for block in blocks for line in block.lines] == [2, 3]


def test_single_faulty_lines_among_many_leave_the_others_with_their_numbers() -> None:
    lines = [f"{number}\té".encode() for number in range(1, 2001)]
    lines[6], lines[700], lines[1999] = b"7\t\xff", b"701", b"2000\t\xc3"
    (block,) = read_rows(io.BytesIO(b"\n".join(lines) + b"\n"), 2, "table")
    assert block.faults["line"].to_list() == [7, 701, 2000]
    assert block.faults["reason"].to_list() == ["invalid_utf8", "wrong_column_count", "invalid_utf8"]
    good = [line for number, line in enumerate(lines, 1) if number not in {7, 701, 2000}]
    assert block.content.splitlines() == good
    assert block.lines.to_list() == [number for number in range(1, 2001) if number not in {7, 701, 2000}]
