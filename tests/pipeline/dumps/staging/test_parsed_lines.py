"""Tests of lines that are not parsed again: the tables, frames and rejects are those of a full parsing, whatever changed."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.dumps.readers import ndjson
from pipeline.dumps.readers.ndjson import read_json_blocks
from pipeline.dumps.readers.ndjson_blocks import BlockReader
from pipeline.dumps.staging import parsed_lines
from pipeline.dumps.staging.parsed_lines import FOLDER, ParsedLines
from pipeline.dumps.staging.staging_profile import FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pipeline.dumps.readers.ndjson import Block
    from pipeline.dumps.readers.ndjson_lines import Lines

COLUMNS = {"id": "VARCHAR", "title": "VARCHAR", "artists": "STRUCT(id VARCHAR, name VARCHAR)[]"}
MEMBERS = ("data",)


def line(number: int, title: str = "x") -> bytes:
    return json.dumps({"id": f"{number}", "title": title, "artists": [{"id": "1", "name": "A"}]}).encode()


class Days:
    """Days of one file: each is read with the lines of the day before, and counts the lines that were parsed."""

    def __init__(self, folder: Path, *, end: bytes = b"\n") -> None:
        self.folder = folder
        self.end = end
        self.day = 0
        self.parsed = 0

    @property
    def parts(self) -> list[Path]:
        return sorted((self.folder / f"{self.day}" / FOLDER).glob("*.arrow"))

    def read(self, lines: Sequence[bytes], columns: dict[str, str] = COLUMNS) -> None:
        """Read the lines of the next day, and compare with reading them without the day before."""
        path = self.folder / "tracks.ndjson"
        # A last line without an end is another line for its hash.
        path.write_bytes(b"\n".join(lines) + self.end)
        before, self.day = self.folder / f"{self.day}", self.day + 1
        (self.folder / f"{self.day}").mkdir()
        parsed = ParsedLines(before, self.folder / f"{self.day}")
        full = describe(read_json_blocks(path, columns, members=MEMBERS))
        self.parsed = 0
        read_lines = BlockReader.read_lines

        def count(reader: BlockReader, lines: Lines, of: int = 0) -> object:
            self.parsed += len(lines)
            return read_lines(reader, lines, of)

        with patch.object(BlockReader, "read_lines", count):
            night = describe(read_json_blocks(path, columns, members=MEMBERS, parsed=parsed))
        parsed.close()
        assert night == full


def describe(blocks: Iterable[Block]) -> list[object]:
    """Return what blocks hold, or the message of the error that refuses their file, such as a cut document."""
    try:
        return [(block.frame.schema, block.frame.rows(), block.broken.rows(), block.misfits.rows()) for block in blocks]
    except DumpError as error:
        return [str(error)]


@pytest.fixture
def days(tmp_path: Path) -> Days:
    return Days(tmp_path)


def test_only_new_lines_are_parsed_wherever_they_are(days: Days) -> None:
    days.read([line(number) for number in range(100)])
    assert days.parsed == 100
    changed = [line(7, "other") if number == 7 else line(number) for number in range(99, -1, -1) if number != 50]
    days.read([*changed, line(3), b"", line(100)])
    assert days.parsed == 2
    days.read([line(100), *changed])
    assert days.parsed == 0


def test_lines_with_a_fault_and_documents_are_parsed_each_time(days: Days) -> None:
    faulty = [b"{oops", b'{"id": "5", "artists": "nobody"}', b'{"data": [{"id": "6"}, {"id": "7"}]}', b"[]"]
    for _ in range(2):
        days.read([line(1), *faulty, line(2)])
    assert days.parsed == len(faulty)


def test_columns_without_a_value_are_not_stored_and_come_back(days: Days) -> None:
    days.read([b'{"id": "1"}', b'{"id": "2"}'])
    (part,) = days.parts
    assert pl.read_ipc(part).columns == ["id", "_line"]
    days.read([b'{"id": "2"}', line(3), b"{}", b'{"id": "1"}'])
    days.read([b"{}", line(3), b'{"id": "1"}'])
    assert days.parsed == 0


def test_a_night_after_a_refused_file_parses_what_it_must(days: Days) -> None:
    days.read([line(1)])
    days.read([b"{", b"{"])
    days.read([line(1), line(2)])
    assert days.parsed == 2


def test_old_misfits_among_few_new_lines_are_no_layout_change(days: Days) -> None:
    misfits = [b'{"id": "%d", "artists": "nobody"}' % number for number in range(250)]
    for _ in range(2):
        days.read([*(line(number) for number in range(600)), *misfits])
    assert days.parsed == len(misfits)


def test_other_code_other_columns_and_other_libraries_parse_all(days: Days, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line(number) for number in range(10)]
    days.read(lines)
    days.read(lines, {**COLUMNS, "title": "JSON"})
    assert days.parsed == 10
    monkeypatch.setattr(parsed_lines, "_hash_readers", lambda: "another")
    days.read(lines, {**COLUMNS, "title": "JSON"})
    assert days.parsed == 10


@pytest.mark.parametrize("damage", ["byte", "cut", "gone"])
def test_damaged_parts_are_parsed_again(days: Days, damage: str) -> None:
    lines = [line(number, f"title {number}") for number in range(10)]
    days.read(lines)
    (part,) = days.parts
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes({"byte": bytes(content), "cut": bytes(content[:100]), "gone": b""}[damage])
    days.read(lines)
    assert days.parsed == 10
    days.read(lines)
    assert days.parsed == 0


def test_lines_spread_over_many_parts_are_parsed_rather_than_looked_up(days: Days, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed_lines, "PART_BYTES", 1)
    monkeypatch.setattr(ndjson, "BLOCK_BYTES", 300)
    lines = [line(number) for number in range(60)]
    days.read(lines)
    assert len(days.parts) > 2 * parsed_lines.MOST_PARTS
    monkeypatch.setattr(ndjson, "BLOCK_BYTES", 1 << 20)
    days.read(lines)
    assert 0 < days.parsed < 60


LINES = st.lists(
    st.integers(0, 12).map(line)
    | st.tuples(st.integers(0, 12), st.sampled_from(["é", "y" * 90])).map(lambda drawn: line(*drawn))
    | st.sampled_from([b"", b" ", b"{", b"[]", b"{}", b'{"id": 1, "artists": 2}', b'{"data": [{"id": 8}, 4]}', line(1) + b"\r", b"\xff"]),
    min_size=1,
    max_size=25,
).filter(lambda lines: any(text.strip() for text in lines) and not lines[0].startswith(b"["))


@pytest.mark.slow
@settings(deadline=None, max_examples=150)  # a busy machine is not a failure
@given(st.lists(LINES, min_size=2, max_size=4), st.integers(20, 400), st.sampled_from([1, 1000, 1 << 20]), st.sampled_from([b"", b"\n"]))
def test_any_sequence_of_days_gives_what_a_full_parsing_gives(
    tmp_path_factory: pytest.TempPathFactory, sequence: list[list[bytes]], block_bytes: int, part_bytes: int, end: bytes
) -> None:
    days = Days(tmp_path_factory.mktemp("days"), end=end)
    with patch.object(ndjson, "BLOCK_BYTES", block_bytes), patch.object(parsed_lines, "PART_BYTES", part_bytes):
        for lines in sequence:
            days.read(lines)
    shutil.rmtree(days.folder)


def change(raw: bytes, draw: random.Random) -> bytes:
    """Return the lines of a file as the next dump has them: some are gone, changed, broken, doubled or elsewhere."""
    lines = raw.splitlines()
    for _ in range(len(lines) // 20 + 2):
        at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
        kind = draw.choice(["gone", "changed", "broken", "doubled", "elsewhere"])
        text = lines[at]
        if kind in ("gone", "elsewhere"):
            del lines[at]
        if kind in ("doubled", "elsewhere"):
            lines.insert(other, text)
        elif kind == "changed":
            lines[at] = text.replace(b"a", b"e", 3)
        elif kind == "broken":
            lines[at] = text[: len(text) // 2]
    return b"\n".join(lines) + b"\n"


def read_staged(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("part-*.parquet"))} | {
        FILE: (folder / FILE).read_bytes()
    }


SLOW_FORMS = ("streamsvc_c resources", "streamsvc_c flat", "store_a objects")


@pytest.mark.parametrize("form", ["streamsvc_a objects", *(pytest.param(form, marks=pytest.mark.slow) for form in SLOW_FORMS)])
def test_staging_after_another_dump_gives_the_bytes_of_a_full_one(form: str, forms: dict[str, Path], tmp_path: Path) -> None:
    platform = form.split(maxsplit=1)[0]
    dump = tmp_path / "dump"
    shutil.copytree(forms[form], dump)
    stage_dump(platform, dump, tmp_path / "nights")
    # A shuffled number of the day makes other changes to each form.
    draw = random.Random(form)  # noqa: S311 - draws changes, not secrets
    for path in dump.rglob("*.ndjson.gz"):
        raw = gzip.decompress(path.read_bytes())
        path.unlink()
        path.write_bytes(gzip.compress(change(raw, draw)))
    stage_dump(platform, dump, tmp_path / "nights")
    assert list((tmp_path / "nights" / FOLDER).iterdir())
    # The counts that the profile remembers of the dump before are no part of what is compared.
    stage_dump(platform, dump, tmp_path / "full", before=tmp_path / "gone")
    nights, full = read_staged(tmp_path / "nights"), read_staged(tmp_path / "full")
    profiles = [json.loads(tables.pop(FILE)) for tables in (nights, full)]
    assert nights == full
    assert profiles[0]["rows"] == profiles[1]["rows"]
    assert profiles[0]["members"] == profiles[1]["members"]
    assert pl.read_parquet(tmp_path / "nights" / "reject" / "*.parquet").height > 0
