"""Tests of works: both layouts of the composition data are staged whole; dirt ends in rejects, a broken snapshot in a clear error."""

from __future__ import annotations

import bz2
import gzip
import hashlib
from pathlib import Path

import polars as pl
import pytest
import zstandard

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.dumps.platforms.works.work_tables import parse_duration_ms

SAMPLES = Path(__file__).parents[3] / "sample_dumps" / "works"
Row = tuple[str, ...]
LINK_FIELDS = ("work_id", "isrc", "recording_title", "artist_credit", "duration_ms")
RECORDING_HEADING = (
    *("#ResourceRecordId", "ResourceType", "ISRC", "Title", "LanguageAndScriptCode", "SubTitle", "DisplayArtistName"),
    *("DisplayArtistISNI", "PLine", "CLine", "Duration", "ReleaseRecordId", "StudioProducerName", "StudioProducerProprietaryId"),
    *("OriginalDataProviderName", "OriginalDataProviderDPID", "IsDataProvidedAsReceived"),
)


def work(number: int, iswc: str = "", title: str = "SONG") -> Row:
    return (f"W{number}", iswc, title, "", "", "", "false", "", "false", "", "")


def recording(number: int, isrc: str = "", title: str = "Song", artist: str = "Ada", duration: str = "PT3M", subtitle: str = "") -> Row:
    return (f"R{number}", isrc, title, subtitle, artist, "", "", duration, "", "", "", "", "", "true")


def text(rows: list[Row], end: str = "\n") -> bytes:
    return "".join("\t".join(row) + end for row in rows).encode()


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "works.tsv").write_bytes(text([work(1, "T9000109397"), work(2)]))
    (folder / "recordings.tsv").write_bytes(text([recording(1, "USS1Z1412345"), recording(2)]))
    (folder / "worksrecordings.tsv").write_bytes(text([("L1", "W1", "R1"), ("L2", "W2", "R2")]))
    return folder


class Staged:
    def __init__(self, dump: Path, folder: Path) -> None:
        stage_dump("works", dump, folder)
        self.works, self.links, self.reject, self.intake = (
            read_table(TABLES[name], folder / name) for name in ("source_work", "source_work_recording", "reject", "intake")
        )

    def rejects(self) -> list[tuple[object, ...]]:
        return self.reject.select("entity", "severity", "reason", "source_file", "place").rows()

    def books(self) -> list[tuple[object, ...]]:
        return self.intake.select("entity", "rows_read", "rows_staged", "rows_rejected").rows()


def stage(dump: Path) -> Staged:
    return Staged(dump, dump.parent / "staging" / "works")


def test_the_shipped_snapshot_of_layout_1_has_these_rows(tmp_path: Path) -> None:
    staged = Staged(SAMPLES / "layout_1", tmp_path / "works")
    assert staged.works.select("work_id", "iswc", "title").rows() == [
        ("W1", "T9000109397", "I'VE GOT A FEELING"),
        ("W2", None, 'UNTITLED 7" THEME'),
        ("W3", "T0345246801", "MEDLEY PART A"),
        ("W4", None, '"HALF OPEN'),
    ]
    assert staged.links.select(LINK_FIELDS).rows() == [
        ("W1", "USS1Z1412345", "I've Got a Feeling (Naked Version / Remastered 2013)", "The Beatles", 218_000),
        ("W1", None, "I've Got a Feeling (Live)", "The Beatles", None),
        ("W1", "GBUM71029604", "Medley", "Some Artist", 182_000),
        ("W3", "GBUM71029604", "Medley", "Some Artist", 182_000),
        ("W4", "QZES51900001", "Half Open", "Señor Example", 3_600_500),
    ]
    assert staged.rejects() == [("source_work", "field", "invalid_iswc", "works.tsv", "line 4")]
    assert staged.books() == [("source_work", 4, 4, 0), ("source_work_recording", 5, 5, 0)]


def test_the_shipped_snapshot_of_layout_2_has_these_rows(tmp_path: Path) -> None:
    staged = Staged(SAMPLES / "layout_2", tmp_path / "works")
    assert staged.works.select("work_id", "iswc", "title").rows() == [
        ("165DE541A", "T9000109397", "I've Got a Feeling"),
        ("165DE541B", None, "Untitled Sketch"),
    ]
    assert staged.links.select(LINK_FIELDS).rows() == [
        ("165DE541A", "USS1Z1412345", "I've Got a Feeling (Naked Version / Remastered 2013)", "The Beatles", 218_000),
        ("165DE541B", None, "Untitled Sketch", "The Beatles", 95_500),
    ]
    assert staged.rejects() == []


def test_alternative_titles_are_those_of_their_work(dump: Path) -> None:
    rows = [("A1", "W1", "SECOND TITLE", "en", "AlternativeTitle"), ("A2", "W1", "ERSTER TITEL", "de", "TranslatedTitle")]
    rows += [("A3", "W1", "SECOND TITLE", "fr", "AlternativeTitle"), ("A4", "", "NOBODY'S", "", ""), ("A5", "W2", "", "", "")]
    (dump / "workalternativetitles.tsv").write_bytes(text(rows))
    staged = stage(dump)
    assert staged.works.select("work_id", "alternative_titles").rows() == [("W1", ["ERSTER TITEL", "SECOND TITLE"]), ("W2", None)]
    assert [row[1:4] for row in staged.rejects()] == [
        ("row", "missing_id", "workalternativetitles.tsv"),
        ("row", "missing_title", "workalternativetitles.tsv"),
    ]
    assert staged.books()[0] == ("source_work", 4, 2, 2)


def test_titles_in_an_unknown_layout_are_left_out(dump: Path) -> None:
    (dump / "workalternativetitles.tsv").write_bytes(text([("A1", "W1", "SECOND TITLE")]))
    assert stage(dump).works["alternative_titles"].to_list() == [None, None]


def test_line_ends_of_either_kind_parts_and_compression_give_the_same_rows(dump: Path) -> None:
    plain = stage(dump)
    for name in ("works", "recordings", "worksrecordings"):
        path = dump / f"{name}.tsv"
        first, second = path.read_bytes().splitlines()
        (dump / f"BWARM_{name}_1.tsv").write_bytes(first + b"\r\n")
        (dump / f"BWARM_{name}_2.tsv.gz").write_bytes(gzip.compress(second))
        path.unlink()
    parts = stage(dump)
    assert parts.works.equals(plain.works)
    assert parts.links.equals(plain.links)


def test_cells_are_found_by_their_number_under_any_file_name(dump: Path) -> None:
    row = ("R1", "SoundRecording", "USS1Z1412345", "Song", "en", "", "Ada", "", "", "", "PT182S", "", "", "", "", "", "")
    (dump / "recordings.tsv").write_bytes(text([row]))
    (dump / "worksrecordings.tsv").write_bytes(text([("L1", "W1", "R1")]))
    assert stage(dump).links.select(LINK_FIELDS).rows() == [("W1", "USS1Z1412345", "Song", "Ada", 182_000)]


def test_heading_line_gives_the_order_of_cells(dump: Path) -> None:
    swapped = [RECORDING_HEADING[0], RECORDING_HEADING[2], RECORDING_HEADING[1], *RECORDING_HEADING[3:]]
    row = ("R1", "USS1Z1412345", "SoundRecording", "Song", "en", "", "Ada", "", "", "", "PT182S", "", "", "", "", "", "")
    (dump / "recordings.tsv").write_bytes(b"\xef\xbb\xbf" + text([tuple(swapped), row], "\r\n"))
    (dump / "worksrecordings.tsv").write_bytes(text([("L1", "W1", "R1")]))
    assert stage(dump).links["isrc"].to_list() == ["USS1Z1412345"]


def test_several_codes_in_a_cell_are_a_row_each_and_escapes_are_undone(dump: Path) -> None:
    (dump / "works.tsv").write_bytes(text([work(1, "T9000109397|T0345246801", r"A \\| B \| C"), work(2)]))
    (dump / "recordings.tsv").write_bytes(text([recording(1, "USS1Z1412345|GBUM71029604|bad"), recording(2)]))
    staged = stage(dump)
    assert staged.works.select("iswc", "title").rows() == [("T9000109397", "A | B | C"), ("T0345246801", "A | B | C"), (None, "SONG")]
    assert staged.links["isrc"].to_list() == ["USS1Z1412345", "GBUM71029604", None]
    assert staged.rejects() == [("source_work_recording", "field", "invalid_isrc", "recordings.tsv", "line 1")]


def test_dirty_lines_are_rejects_with_file_and_line_and_the_books_balance(dump: Path) -> None:
    works = [work(1), ("cut", "line"), work(3, title=""), ("", *work(4)[1:]), work(1, title="again"), work(6, "T0345246802")]
    (dump / "works.tsv").write_bytes(text(works) + b"\xff" + text([work(8)]))
    recordings = [
        recording(1, "TOO LONG A CODE", duration="3:38"),
        recording(2, title="", artist=""),
        recording(3, "USS1Z1412345", title=""),
        recording(1),
        (*recording(5), "one cell more"),
    ]
    (dump / "recordings.tsv").write_bytes(text(recordings))
    links = [("L1", "W1", "R1"), ("L2", "W9", "R1"), ("L3", "W1", "R2"), ("L4", "", "R1"), ("L5", "W1", "R3")]
    (dump / "worksrecordings.tsv").write_bytes(text(links))
    staged = stage(dump)
    assert staged.works.select("work_id", "iswc").rows() == [("W1", None), ("W6", None)]
    assert staged.links.select(LINK_FIELDS).rows() == [("W1", None, "Song", "Ada", None), ("W1", "USS1Z1412345", None, "Ada", 180_000)]
    assert sorted(staged.rejects()) == [
        ("source_work", "field", "invalid_iswc", "works.tsv", "line 6"),
        ("source_work", "row", "duplicate_id", "works.tsv", "line 5"),
        ("source_work", "row", "invalid_utf8", "works.tsv", "line 7"),
        ("source_work", "row", "missing_id", "works.tsv", "line 4"),
        ("source_work", "row", "missing_title", "works.tsv", "line 3"),
        ("source_work", "row", "wrong_column_count", "works.tsv", "line 2"),
        ("source_work_recording", "field", "invalid_duration", "recordings.tsv", "line 1"),
        ("source_work_recording", "field", "invalid_isrc", "recordings.tsv", "line 1"),
        ("source_work_recording", "field", "missing_value", "recordings.tsv", "line 3"),
        ("source_work_recording", "row", "dangling_reference", "worksrecordings.tsv", "line 2"),
        ("source_work_recording", "row", "dangling_reference", "worksrecordings.tsv", "line 3"),
        ("source_work_recording", "row", "duplicate_id", "recordings.tsv", "line 4"),
        ("source_work_recording", "row", "missing_id", "worksrecordings.tsv", "line 4"),
        ("source_work_recording", "row", "missing_title", "recordings.tsv", "line 2"),
        ("source_work_recording", "row", "wrong_column_count", "recordings.tsv", "line 5"),
    ]
    assert staged.books() == [("source_work", 7, 2, 5), ("source_work_recording", 8, 2, 6)]


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        ("PT3M2S", 182_000),
        ("PT182S", 182_000),
        ("PT1H", 3_600_000),
        ("PT1H0M0.5S", 3_600_500),
        ("PT2,25S", 2_250),
        ("PT0S", None),
        ("PT", None),
        ("P1D", None),
        ("182", None),
        ("-PT3M", None),
    ],
)
def test_durations_are_iso_8601(value: str, milliseconds: int | None) -> None:
    assert pl.select(parse_duration_ms(pl.lit(value))).item() == milliseconds


def manifest(dump: Path, *rows: Row, end: str = "EOF\n") -> None:
    header = "1\t1\tSender\tPADPIDA0000000000X\t\t\t2026-01-01T00:00:00Z\n"
    (dump / "BWARM_Manifest_X.tsv").write_text(header + "".join("\t".join(row) + "\n" for row in rows) + end)


def test_a_manifest_that_fits_is_accepted(dump: Path) -> None:
    md5 = hashlib.md5((dump / "works.tsv").read_bytes(), usedforsecurity=False).hexdigest()
    manifest(dump, ("works", "works.tsv", "2", md5), ("recordings", "recordings.tsv", "2"))
    assert stage(dump).works.height == 2


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (("works", "works.tsv", "3"), r"works\.tsv: has 2 lines, the manifest lists 3"),
        (("works", "works.tsv", "2", "0" * 32), r"works\.tsv: its MD5 is [0-9a-f]{32}, the manifest lists 0{32}"),
        (("parties", "parties.tsv", "2"), r"parties\.tsv listed in the manifest, but not there"),
    ],
)
def test_file_that_differs_from_the_manifest_is_refused(dump: Path, row: Row, complaint: str) -> None:
    manifest(dump, row)
    with pytest.raises(DumpError, match=complaint):
        stage(dump)


def test_a_compressed_manifest_is_compared(dump: Path) -> None:
    manifest(dump, ("works", "works.tsv", "3"))
    plain = dump / "BWARM_Manifest_X.tsv"
    (dump / "BWARM_Manifest_X.tsv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    with pytest.raises(DumpError, match=r"works\.tsv: has 2 lines, the manifest lists 3"):
        stage(dump)


@pytest.mark.parametrize(("listed", "delivered"), [("", ".gz"), (".gz", ""), (".gz", ".bz2"), (".zst", ".zst")])
def test_a_listed_file_may_be_compressed_in_another_way(listed: str, delivered: str, dump: Path) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}
    content = (dump / "works.tsv").read_bytes()
    (dump / "works.tsv").unlink()
    (dump / f"works.tsv{delivered}").write_bytes(pack[delivered](content))
    md5 = hashlib.md5(pack[listed](content), usedforsecurity=False).hexdigest()
    manifest(dump, ("works", f"works.tsv{listed}", "2", md5))
    assert stage(dump).works.height == 2
    manifest(dump, ("works", f"works.tsv{listed}", "3", md5))
    with pytest.raises(DumpError, match=r"has 2 lines, the manifest lists 3"):
        stage(dump)
    # The hash of a file that is packed in another way than both says nothing.
    if listed in {"", delivered}:
        manifest(dump, ("works", f"works.tsv{listed}", "2", "0" * 32))
        with pytest.raises(DumpError, match=r"its MD5 is [0-9a-f]{32}, the manifest lists 0{32}"):
            stage(dump)
    manifest(dump, ("works", "parties.tsv.gz", "2"))
    with pytest.raises(DumpError, match=r"parties\.tsv\.gz listed in the manifest, but not there"):
        stage(dump)


def test_a_manifest_without_its_end_is_refused(dump: Path) -> None:
    manifest(dump, ("works", "works.tsv", "2"), end="")
    with pytest.raises(DumpError, match="the manifest is cut off"):
        stage(dump)


def test_a_missing_file_is_refused_by_name(dump: Path) -> None:
    (dump / "recordings.tsv").unlink()
    with pytest.raises(DumpError, match="no file of recordings or resources"):
        stage(dump)


def test_a_file_whose_lines_end_in_cr_alone_is_refused(dump: Path) -> None:
    row = ("R1", "SoundRecording", "USS1Z1412345", "Song", "en", "", "Ada", "", "", "", "PT182S", "", "", "", "", "", "")
    (dump / "recordings.tsv").write_bytes(text([RECORDING_HEADING, row], "\r"))
    with pytest.raises(DumpError, match=r"recordings\.tsv: its lines end in CR alone; have it written with LF or CRLF"):
        stage(dump)


def test_an_unknown_number_of_cells_is_refused(dump: Path) -> None:
    (dump / "works.tsv").write_bytes(text([(*work(1), "x"), (*work(2), "x")]))
    with pytest.raises(DumpError, match=r"works\.tsv: lines have 12 cells, but works have 11 or 13"):
        stage(dump)


def test_an_empty_file_is_refused(dump: Path) -> None:
    (dump / "works.tsv").write_bytes(b"")
    with pytest.raises(DumpError, match=r"works\.tsv: the file is empty"):
        stage(dump)


def test_two_snapshots_side_by_side_are_refused(dump: Path) -> None:
    (dump / "BWARM_2").mkdir()
    (dump / "BWARM_2" / "works.tsv").write_bytes(text([work(1)]))
    with pytest.raises(DumpError, match="both hold composition data"):
        stage(dump)
