"""Tests of endless lines, records, members and headers, and of huge numbers: read in bounded memory, refused by name, or rejected."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers import epf, ndjson
from pipeline.dumps.readers.line_blocks import LongLine, cut_lines
from pipeline.dumps.readers.ndjson import read_json_blocks, read_json_chunks
from tests.pipeline.dumps.intake.confined import stage_confined

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.pipeline.dumps.conftest import Case

FLAT_MEMORY_BYTES = 4 << 30
"""Limit of address space."""
COLUMNS = {"id": "VARCHAR", "name": "VARCHAR", "count": "BIGINT", "artists": "STRUCT(id VARCHAR, name VARCHAR)[]"}


def cut(text: bytes, size: int) -> list[bytes]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
def test_lines_longer_than_the_bound_are_found_wherever_blocks_end(size: int) -> None:
    text = b"ab\n" + b"c" * 30 + b"\nde\n\n" + b"f" * 12 + b"\n" + b"g" * 9 + b"\nrest"
    pieces = list(cut_lines(cut(text, size), 10))
    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == b"ab\nde\n\n" + b"g" * 9 + b"\nrest"
    long = [piece.head for piece in pieces if isinstance(piece, LongLine)]
    assert [head[:1] for head in long] == [b"c", b"f"]
    assert all(piece.endswith(b"\n") for piece in pieces[:-1] if isinstance(piece, bytes))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
def test_ends_of_two_bytes_are_found_wherever_blocks_end(size: int) -> None:
    text = b"a\x02b\x02\n" + b"c" * 30 + b"\x02\nd\n\x02\n" + b"e" * 30
    pieces = list(cut_lines(cut(text, size), 10, b"\x02\n"))
    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == b"a\x02b\x02\nd\n\x02\n"
    long = [piece for piece in pieces if isinstance(piece, LongLine)]
    assert [(piece.head[:1], piece.has_end) for piece in long] == [(b"c", True), (b"e", False)]


def test_line_over_the_bound_is_rejected_and_those_around_it_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "RECORD_BYTES", 1 << 20)
    records = [{"id": f"{number}", "name": "x" * (3 << 20) if number in (3, 7) else "short"} for number in range(10)]
    text = "\n".join(map(json.dumps, records)).encode()
    found = list(read_json_chunks(iter(cut(text, 1 << 16)), COLUMNS, "tracks.ndjson"))
    assert pl.concat([block.frame for block in found])["id"].to_list() == ["0", "1", "2", "4", "5", "6", "8", "9"]
    places = pl.concat([block.frame for block in found])["place"].to_list()
    assert places == [f"line {number}" for number in (1, 2, 3, 5, 6, 7, 9, 10)]
    broken = pl.concat([block.broken for block in found])
    assert broken.select("reason", "place").rows() == [("too_large", "line 4"), ("too_large", "line 8")]
    assert broken["excerpt"].str.starts_with('{"id": "').all()


ODD_NUMBERS = ["1" + "0" * 400, "-" + "9" * 5000, "1e999", "NaN", "-Infinity", "-0.0", "1" * 30, '"1e400"', "0x10", "1_000"]


@pytest.mark.parametrize("number", ODD_NUMBERS)
def test_number_without_measure_costs_no_more_than_its_record(number: str) -> None:
    lines = ['{"id": "1", "count": 5}', f'{{"id": "2", "count": {number}}}', f'{{"id": {number}, "count": 1}}', '{"id": "4"}']
    found = list(read_json_chunks(iter(["\n".join(lines).encode()]), COLUMNS, "odd.ndjson"))
    assert sum(block.rows for block in found) == 4
    ids = pl.concat([block.frame for block in found])["id"].to_list()
    assert {"1", "4"} <= set(ids)


@pytest.mark.parametrize("depth", [100, 990, 5_000, 200_000])
@pytest.mark.parametrize("field", ["name", "artists", "other"])
def test_nesting_without_end_costs_no_more_than_its_record(field: str, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    lines = ['{"id": "1"}', f'{{"id": "2", "{field}": {deep}}}', '{"id": "3"}']
    found = list(read_json_chunks(iter(["\n".join(lines).encode()]), COLUMNS, "deep.ndjson"))
    assert sum(block.rows for block in found) == 3
    assert {"1", "3"} <= set(pl.concat([block.frame for block in found])["id"])


def test_list_of_a_million_artists_is_left_out_and_its_track_staged(case: Callable[[str], Case]) -> None:
    damaged = case("store_a objects")
    lines = damaged.read().splitlines()
    track = json.loads(lines[3])
    track["artists"] = [{"id": number, "name": "A"} for number in range(200_000)]
    damaged.write(b"\n".join([*lines[:3], json.dumps(track).encode(), *lines[4:]]))
    rejects = damaged.rejects().filter(reason="too_many", entity="source_recording")
    assert rejects.select("place", "field", "record_id").rows() == [("line 4", "artists", f"{track['id']}")]
    assert rejects["value"].item() == "200000 entries"


@pytest.mark.long
def test_title_of_sixty_megabytes_is_rejected_in_bounded_memory(case: Callable[[str], Case]) -> None:
    damaged = case("store_a objects")
    pristine = damaged.file.read_bytes()
    lines = damaged.read().splitlines()
    track = json.loads(lines[3]) | {"name": "x" * (60 << 20)}
    damaged.write(b"\n".join([*lines[:3], json.dumps(track).encode(), *lines[4:]]))
    assert stage_confined("store_a", damaged.dump, damaged.folder) == ""
    rejects = pl.read_parquet(damaged.folder / "reject" / "*.parquet")
    assert rejects.filter(reason="too_long", entity="source_recording")["place"].to_list() == ["line 4"]
    damaged.file.write_bytes(pristine)
    damaged.rejects()


def test_line_of_two_hundred_megabytes_is_rejected_in_bounded_memory(case: Callable[[str], Case]) -> None:
    damaged = case("store_a objects")
    lines = damaged.read().splitlines()
    with gzip.open(damaged.file, "wb", compresslevel=1) as file:
        file.write(b"\n".join(lines[:3]) + b'\n{"id": 1, "name": "')
        for _ in range(200):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n' + b"\n".join(lines[3:]))
    assert stage_confined("store_a", damaged.dump, damaged.folder) == ""
    rejects = pl.read_parquet(damaged.folder / "reject" / "*.parquet")
    assert rejects.filter(reason="too_large").select("place", "severity").rows() == [("line 4", "row")]


def test_unused_metadata_of_an_archive_is_not_read(case: Callable[[str], Case], monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = case("catalog_b archives")
    asked: list[int] = []
    read = tarfile.ExFileObject.read

    def recorded(file: tarfile.ExFileObject, size: int | None = -1) -> bytes:
        asked.append(-1 if size is None else size)
        return read(file, size)

    monkeypatch.setattr(tarfile.ExFileObject, "read", recorded)
    repacked_with(damaged, "README", b"\0" * (5 << 20))
    damaged.stage()
    assert asked
    assert min(asked) >= 0, "a member was read whole"
    assert max(asked) <= 32 << 20


def repacked_with(damaged: Case, name: str, content: bytes) -> None:
    """Return the archive with one more member at its beginning."""
    target = io.BytesIO()
    with tarfile.open(damaged.file) as old, tarfile.open(fileobj=target, mode="w:bz2") as new:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        new.addfile(member, io.BytesIO(content))
        for other in old:
            new.addfile(other, old.extractfile(other))
    damaged.file.write_bytes(target.getvalue())


@pytest.mark.parametrize("form", ["catalog_b archives", "streamsvc_b archive"])
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_header_of_an_archive_that_would_fill_the_memory_is_refused(case: Callable[[str], Case], form: str, kind: bytes) -> None:
    damaged = case(form)
    header = tarfile.TarInfo("header")
    header.type, header.size = kind, 40 << 30
    damaged.write(header.tobuf(tarfile.GNU_FORMAT) + damaged.read())
    assert "a header of 42,949,672,960 bytes" in damaged.refusal()


@pytest.mark.parametrize("form", ["catalog_b archives", "streamsvc_b archive"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.LNKTYPE, "../../outside"),
        (tarfile.FIFOTYPE, "mbdump/../../outside"),
        (tarfile.CHRTYPE, "mbdump/recording"),
        (tarfile.DIRTYPE, "../outside"),
    ],
)
def test_link_or_device_in_an_archive_is_neither_made_nor_followed(case: Callable[[str], Case], form: str, kind: bytes, name: str) -> None:
    damaged = case(form)
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, "/etc/passwd"
    damaged.write(header.tobuf(tarfile.GNU_FORMAT) + damaged.read())
    damaged.outcome()
    assert not (damaged.dump.parent / "outside").exists()


@pytest.mark.parametrize(
    ("form", "end", "index", "place"),
    [
        pytest.param("works 1", b"\n", 0, "line 1", marks=pytest.mark.slow),  # the reader of works 2
        ("works 2", b"\n", 3, "line 4"),
        pytest.param("catalog_b unpacked", b"\n", 3, "line 4", marks=pytest.mark.slow),  # large, and read as works 2
        pytest.param("streamsvc_b flat", b"\x02\n", 8, "record 4", marks=pytest.mark.slow),  # behind five lines of header
        pytest.param("fingerprints day", b"\n", 3, "line 4", marks=pytest.mark.slow),
    ],
)
def test_record_of_two_hundred_megabytes_is_rejected_in_bounded_memory(
    case: Callable[[str], Case], form: str, end: bytes, index: int, place: str
) -> None:
    damaged = case(form)
    before = len(damaged.rejects())
    records = damaged.read().split(end)
    damaged.write(end.join([*records[:index], b"x" * (200 << 20) + records[index], *records[index + 1 :]]))
    assert stage_confined(damaged.platform, damaged.dump, damaged.folder, FLAT_MEMORY_BYTES) == ""
    rejects = pl.read_parquet(damaged.folder / "reject" / "*.parquet")
    assert rejects.filter(reason="too_large").select("place", "severity").rows() == [(place, "row")]
    assert rejects.filter(reason="too_large")["excerpt"].item().startswith("xxx")
    # The only other missing records are those that referred to this one.
    assert set(rejects["reason"][before:]) <= {"too_large", "dangling_reference"}
    assert len(rejects) <= before + 10


def test_epf_file_without_record_ends_is_refused_before_it_fills_the_memory(
    case: Callable[[str], Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = case("streamsvc_b flat")
    monkeypatch.setattr(epf, "LONGEST_RECORD_BYTES", 1 << 20)
    monkeypatch.setattr(epf, "BLOCK_BYTES", 1 << 18)
    content = damaged.read()
    place = content.index(b"\x02\n", len(content) // 2) + 2
    damaged.write(content[:place] + b"x" * (4 << 20))
    said = damaged.refusal()
    assert "cut off after record" in said
    assert damaged.file.name in said


def test_epf_file_of_headers_without_end_is_refused(case: Callable[[str], Case]) -> None:
    damaged = case("streamsvc_b flat")
    damaged.write(b"#" + b"x" * (30 << 20))
    assert damaged.file.name in damaged.refusal()


def test_document_larger_than_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "DOCUMENT_BYTES", 1000)
    path = tmp_path / "tracks.json"
    path.write_text(json.dumps([{"id": f"{number}"} for number in range(1000)]))
    with pytest.raises(DumpError, match="more than 1000 bytes"):
        list(read_json_blocks(path, COLUMNS))
