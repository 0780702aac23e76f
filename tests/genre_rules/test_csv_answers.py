from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from genre_rules.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "in.csv", tmp_path / "out.csv"


def answered(files: tuple[Path, Path]) -> list[list[str]]:
    assert main(["classify", *map(str, files)]) == 0
    with files[1].open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


NO_CP1252 = "\x81"


@pytest.mark.parametrize(
    ("encoding", "before", "after"),
    [
        ("utf-8", "", ""),
        ("utf-8-sig", "", ""),
        ("utf-16", "", ""),
        ("utf-16-be", "\ufeff", ""),
        ("cp1252", "", "\u20ac"),
        ("latin-1", "", NO_CP1252),
    ],
)
def test_files_of_any_usual_encoding_are_read(files: tuple[Path, Path], encoding: str, before: str, after: str) -> None:
    text = before + "platform,parent,string\nstreamsvc_c,,Alternatif et Indé\ncatalog_b,,zork" + after
    files[0].write_bytes(text.encode(encoding))
    rows = answered(files)
    assert rows[1][3:5] == ["Rock", "Alternative Rock"]
    assert rows[2][2] == "zork" + after


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_headings_may_be_spelled_and_ordered_freely_and_columns_are_kept(files: tuple[Path, Path], delimiter: str) -> None:
    rows = [["id", " String", "PLATFORM ", "note"], ["7", "Hardcore", "Store_A", "a, b; c"]]
    with files[0].open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    assert answered(files) == [
        ["id", "String", "PLATFORM", "note", "mains", "subgenres", "rule_ids"],
        ["7", "Hardcore", "Store_A", "a, b; c", "Hardcore", "", "node-9"],
    ]


def test_rows_keep_their_order_and_blank_cells_and_short_rows_are_no_trouble(files: tuple[Path, Path]) -> None:
    files[0].write_text(
        'platform,parent,string\n,,techno\ncatalog_b\n\nnowhere,,"seen\nlive"\ncatalog_b,,\ncatalog_b,,jazz\n', encoding="utf-8"
    )
    assert [row[3] for row in answered(files)[1:]] == ["Techno", "", "", "", "Jazz"]


def test_name_split_by_its_own_commas_is_joined_and_other_spare_cells_are_reported(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files[0].write_text("platform,parent,string\ncatalog_b,,techno, deep house\n", encoding="utf-8")
    assert answered(files)[1][2:5] == ["techno, deep house", "Techno|House", "Deep House"]
    files[0].write_text("string,platform\njazz,catalog_b,spare\n", encoding="utf-8")
    assert answered(files)[1] == ["jazz", "catalog_b", "Jazz", "", "node-16"]
    assert "1 rows have more cells than headings" in capsys.readouterr().err


def test_existing_answers_are_replaced_in_place(files: tuple[Path, Path]) -> None:
    files[0].write_text("string,mains,note\njazz,House,x\n", encoding="utf-8")
    once = answered(files)
    assert once == [["string", "note", "mains", "subgenres", "rule_ids"], ["jazz", "x", "Jazz", "", "node-16"]]
    assert answered((files[1], files[1])) == once


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"platform,genre\n", "no column string"),
        (b"", "has nothing"),
        (None, "No such file"),
        (b'string\n"' + b"x" * (2 << 20), "is not a CSV file"),
    ],
)
def test_a_file_that_cannot_be_answered_is_named_and_nothing_is_written(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], content: bytes | None, message: str
) -> None:
    if content is not None:
        files[0].write_bytes(content)
    assert main(["classify", *map(str, files)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert str(files[0]) in error
    assert not files[1].exists()


def test_a_hundred_thousand_rows_of_few_strings_stream_through(files: tuple[Path, Path]) -> None:
    with files[0].open("w", encoding="utf-8") as file:
        file.write("platform,parent,string\n")
        file.writelines(f"catalog_b,,{'deep house' if number % 3 else 'seen live'}\n" for number in range(100_000))
    with_answers = answered(files)
    assert len(with_answers) == 100_001
    assert with_answers[2] == ["catalog_b", "", "deep house", "House", "Deep House", "node-101"]
