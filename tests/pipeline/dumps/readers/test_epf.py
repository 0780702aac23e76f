"""Tests of EPF syntax: embedded line breaks, ragged records, the exporter's own errors, broken bytes, truncated files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl
import pytest

import pipeline.dumps.readers.epf
from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.epf import EpfBlock, EpfFile

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER = b"#export_date\x01song_id\x01name\x02\n#primaryKey:song_id\x02\n#exportMode:FULL\x02\n##legal: made up\x02\n"


def file_of(records: Sequence[bytes], count: int | None = None) -> bytes:
    stated = len(records) if count is None else count
    return HEADER + b"".join(record + b"\x02\n" for record in records) + b"#recordsWritten:%d\x02\n" % stated


def read(data: bytes, *columns: str) -> EpfBlock:
    blocks = list(EpfFile(io.BytesIO(data), "song").read_blocks(columns or None))
    return EpfBlock(pl.concat(block.rows for block in blocks), pl.concat(block.rejects for block in blocks))


def test_cells_may_hold_line_breaks_and_empty_cells_are_null() -> None:
    block = read(file_of([b"1\x01\x01two\nlines\n", b"1\x017\x01"]))
    assert block.rows.rows() == [("1", None, "two\nlines\n", 1), ("1", "7", None, 2)]


def test_too_many_cells_are_cut_and_too_few_are_rejected_with_their_place() -> None:
    block = read(file_of([b"1\x012\x01a\x01more\x01still", b"1\x013", b"", b"1\x014\x01b"]), "song_id", "name")
    assert block.rows.rows() == [("2", "a", 1), ("4", "b", 4)]
    assert block.rejects.rows() == [
        ("wrong_column_count", 2, "2 cells of 3", "1|3"),
        ("wrong_column_count", 3, "1 cells of 3", ""),
    ]


def test_a_record_with_too_many_cells_does_not_hide_one_with_too_few() -> None:
    block = read(file_of([b"1\x012\x01a\x01more", b"1\x013"]))
    assert (block.rows.height, block.rejects["record"].to_list()) == (1, [2])


def test_the_exporters_own_error_text_takes_the_record_out() -> None:
    block = read(file_of([b"1\x01<UnknownKeyException>\x01a", b"1\x013\x01about <UnknownKeyException> texts"]))
    assert (block.rows["song_id"].to_list(), block.rejects["reason"].to_list()) == (["3"], ["invalid_number"])


def test_bytes_that_are_not_utf8_take_only_their_record_out() -> None:
    block = read(file_of([b"1\x012\x01\xff\xfe", "1\x013\x01Beyoncé".encode()]))
    assert (block.rows["name"].to_list(), block.rejects["reason"].to_list()) == (["Beyoncé"], ["invalid_utf8"])


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_windows_line_ends_and_a_byte_order_mark_change_no_cell(monkeypatch: pytest.MonkeyPatch, mark: bytes) -> None:
    plain = file_of([b"1\x017\x01two\nlines\n", b"1\x018\x01", b"1\x019\x01with\rone", b"1\x0110"])
    windows = mark + plain.replace(b"\x02\n", b"\x02\r\n")
    for size in range(1, 40):
        monkeypatch.setattr(pipeline.dumps.readers.epf, "BLOCK_BYTES", size)
        block = read(windows)
        assert block.rows.rows() == [("1", "7", "two\nlines\n", 1), ("1", "8", None, 2), ("1", "9", "with\rone", 3)], size
        assert block.rejects["record"].to_list() == [4], size


def test_blocks_of_any_size_give_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [b"1\x01%d\x01name\n%d" % (number, number) for number in range(500)]
    whole = read(file_of(records)).rows
    monkeypatch.setattr(pipeline.dumps.readers.epf, "BLOCK_BYTES", 37)
    assert read(file_of(records)).rows.equals(whole)
    assert whole["record"].to_list() == list(range(1, 501))


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_record_over_the_bound_is_rejected_and_those_around_it_are_read(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(pipeline.dumps.readers.epf, "LONGEST_RECORD_BYTES", 64)
    monkeypatch.setattr(pipeline.dumps.readers.epf, "BLOCK_BYTES", size)
    long = b"1\x018\x01" + b"x" * (1 << 16)  # more than is read with the header
    block = read(file_of([b"1\x017\x01a", long, b"1\x019\x01b", b"1\x0110\x01c"]))
    assert block.rows.rows() == [("1", "7", "a", 1), ("1", "9", "b", 3), ("1", "10", "c", 4)]
    assert block.rejects.select("reason", "record").rows() == [("too_large", 2)]
    assert block.rejects["excerpt"].item().startswith("1|8|xxx")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (file_of([b"1\x012\x01a"] * 3, count=4), "holds 3 records but says that 4"),
        (file_of([b"1\x012\x01a"] * 3)[:-3], "cut off after record 3"),
        (file_of([b"1\x012\x01a"] * 3)[: len(HEADER) + 12], "cut off after record 1"),
        (HEADER[:20], "cut off inside the header"),
        (file_of([]).replace(b"FULL", b"INCREMENTAL"), "mode INCREMENTAL, not FULL"),
        (b"song_id,name\n1,a\n", "no EPF file"),
        (b"", "no EPF file"),
    ],
)
def test_a_file_that_is_not_whole_is_an_error_that_names_it(data: bytes, message: str) -> None:
    with pytest.raises(DumpError, match=f"song: .*{message}"):
        read(data)


def test_a_table_without_records_is_read() -> None:
    assert list(EpfFile(io.BytesIO(file_of([])), "song").read_blocks()) == []
