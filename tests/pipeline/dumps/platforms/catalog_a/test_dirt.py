"""Tests of damaged catalog_a dumps: a broken record is rejected alone; a broken file is refused with the place."""

from __future__ import annotations

import bz2
import gzip
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.tables import STAGING_TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.dumps.platforms.catalog_a import xml_blocks, xml_extraction
from pipeline.dumps.platforms.catalog_a.duplicates import SeenIds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.pipeline.dumps.platforms.catalog_a.conftest import StageRecords


def release(number: int | str, title: str = "Title") -> bytes:
    track = "<track><position>1</position><title>Song</title></track>"
    text = f'<release id="{number}"><title>{title}</title><tracklist>{track}</tracklist></release>'
    return text.encode()


def stage(folder: Path, content: bytes, name: str = "discogs_20260801_releases.xml") -> dict[str, pl.DataFrame]:
    (folder / "dump").mkdir(exist_ok=True)
    (folder / "dump" / name).write_bytes(content)
    stage_dump("catalog_a", folder / "dump", folder / "staging")
    return {table.name: read_table(table, folder / "staging" / table.name) for table in STAGING_TABLES}


def file_of(*records: bytes) -> bytes:
    return b"<releases>\n" + b"\n".join(records) + b"\n</releases>\n"


def broken() -> list[tuple[str, bytes, str]]:
    return [
        ("an open tag", release(2).replace(b"</title>", b"", 1), "broken_record"),
        ("no end", release(2).removesuffix(b"</release>"), "broken_record"),
        ("a control character in a tag", release(2).replace(b"<title", b"<ti\x01 tle"), "broken_record"),
        ("Latin-1", release(2).replace(b"Title", "Café".encode("latin-1")), "invalid_utf8"),
        ("half a character", release(2).replace(b"Title", "Café".encode()[:-1]), "invalid_utf8"),
        ("one of our separators", release(2, "a&#xFDD0;b"), "broken_record"),
        ("all of our separators", release(2, "a&#xFDD2;b"), "broken_record"),
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Ti\x01t\x00le", "Title"),
        ("Ti&#1;t&#x1F;le&#x9;", "Title"),
        ("You & Me &", "You & Me &"),
        ("caf&eacute; &amp; &lt;&notthis;&nbsp;x", "caf\u00e9 & <&notthis;\u00a0x"),
    ],
)
def test_characters_that_xml_forbids_are_read_as_meant(tmp_path: Path, written: str, meant: str) -> None:
    tables = stage(tmp_path, file_of(release(1), release(2, written), release(3)))
    assert tables["source_release"]["title"].to_list() == ["Title", meant, "Title"]
    assert tables["reject"].is_empty()


def test_padding_after_the_root_is_not_a_truncation(tmp_path: Path) -> None:
    assert stage(tmp_path, file_of(release(1)) + b"\x1a" + bytes(512))["source_release"].height == 1


def test_broken_records_are_rejected_with_place_and_excerpt_and_the_others_survive(tmp_path: Path) -> None:
    records = [release(1)]
    for number, (_, record, _) in enumerate(broken(), start=2):
        records += [record, release(number * 100)]
    content = file_of(*records)
    tables = stage(tmp_path, content)
    assert tables["source_release"]["release_id"].to_list() == ["1", *(str(number * 100) for number in range(2, len(broken()) + 2))]
    rejects = tables["reject"].to_dicts()
    assert [(row["severity"], row["reason"]) for row in rejects] == [("row", reason) for _, _, reason in broken()]
    for row, (what, record, _) in zip(rejects, broken(), strict=True):
        at = int(row["place"].removeprefix("byte "))
        assert content[at : at + len(record)] == record, what
        assert row["excerpt"].startswith('<release id="2"'), what
        assert row["source_file"] == "discogs_20260801_releases.xml"


def test_line_feeds_in_text_do_not_cut_records(tmp_path: Path) -> None:
    title = "Line one\n&lt;release id='9'\nrelease &#13;\nthree"
    tables = stage(tmp_path, file_of(release(1, title), release(2)))
    assert tables["source_release"]["title"].to_list() == ["Line one <release id='9' release three", "Title"]


@pytest.mark.parametrize(
    "content",
    [
        b"<releases>" + release(1) + b"\n" + release(2) + b"</releases>",
        b"\xef\xbb\xbf<?xml version='1.0' encoding='UTF-8'?>\n<releases>\n\n" + release(1) + b"\n\n" + release(2) + b"\n\n</releases>\n\n",
        b"<releases>" + release(1) + release(2) + b"</releases>",
        b"<releases>\n  " + release(1) + b"\n  " + release(2) + b"\n</releases>",
    ],
    ids=["first on the line of the root", "byte order mark and declaration", "all on one line", "indented"],
)
def test_records_are_found_at_any_place(tmp_path: Path, content: bytes) -> None:
    assert stage(tmp_path, content)["source_release"]["release_id"].to_list() == ["1", "2"]


def test_blocks_of_any_size_give_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "discogs_20260801_releases.xml"
    path.write_bytes(file_of(*(release(number, "Tïtle\n" * (number % 7)) for number in range(1, 60))))
    whole = path.read_bytes()
    monkeypatch.setattr(xml_extraction, "TREE_BYTES", 300)
    for size in (20, 333, 4096, 1 << 20):
        found = list(xml_blocks.cut_record_blocks(path, "releases", size))
        assert b"".join(block.data for block in found).strip() == whole[len(b"<releases>") : whole.rindex(b"</releases>")].strip()
        assert all(whole[block.offset : block.offset + len(block.data)] == block.data for block in found)
        ids = [xml_extraction.extract(block, [["id", *"abcdefghijklmnopq"], [*"abcdef"]]).frames[0]["id"] for block in found]
        assert pl.concat(ids).to_list() == [str(number) for number in range(1, 60)]


def test_records_beside_a_faulty_one_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[bytes] = []
    extract_mended = xml_extraction._extract_mended

    def count(root: str, record: bytes, sections: Sequence[Sequence[str]]) -> list[str]:
        alone.append(record)
        return extract_mended(root, record, sections)

    monkeypatch.setattr(xml_extraction, "_extract_mended", count)
    titles = {40: "R & B", 41: "<![CDATA[R & B &amp; C]]>", 70: "</title>"}
    tables = stage(tmp_path, file_of(*(release(number, titles.get(number, "Title")) for number in range(1, 101))))
    staged = dict(tables["source_release"].select("release_id", "title").iter_rows())
    assert len(staged) == 99
    assert (staged["40"], staged["41"]) == ("R & B", "R & B &amp; C")
    assert tables["reject"].filter(pl.col("reason") == "broken_record").height == 1
    assert len(alone) < 5


def test_repeated_records_are_rejected_within_and_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = file_of(release(1), release(2, "first"), release(2, "again"), release(3), release(1, "again"))
    for size in (150, 1 << 20):
        monkeypatch.setattr(
            "pipeline.dumps.platforms.catalog_a.cut_record_blocks",
            lambda path, root, size=size: xml_blocks.cut_record_blocks(path, root, size),
        )
        tables = stage(tmp_path, content)
        assert tables["source_release"].select("release_id", "title").rows() == [("1", "Title"), ("2", "first"), ("3", "Title")]
        assert tables["source_recording"]["external_id"].to_list() == ["1-1", "2-1", "3-1"]
        assert sorted(tables["reject"].select("reason", "record_id").rows()) == [("duplicate_id", "1"), ("duplicate_id", "2")]


def test_seen_ids_are_remembered_over_the_whole_range() -> None:
    seen = SeenIds()
    assert seen.find_repeated(pl.Series(["1", "70000", "999999999"])).to_list() == [False, False, False]
    assert seen.find_repeated(pl.Series(["2", "999999999", "70000"])).to_list() == [False, True, True]
    assert seen.find_repeated(pl.Series([], dtype=pl.String)).to_list() == []


def test_records_without_id_or_name_are_rejected(stage_records: StageRecords) -> None:
    tables = stage_records(
        releases=[release("").decode(), release("12x").decode(), release(3, "\u00a0").decode(), release(4).decode()],
        artists=[
            "<artist><id>66827</id><name>\u00a0</name></artist>",
            "<artist><name>No Page</name></artist>",
            "<artist><id>5</id><name>A</name></artist>",
        ],
        labels=[
            "<label><id>212</id><profile>[b]DO NOT USE.[/b]</profile></label>",
            "<label><id>0</id><name>Zero</name></label>",
            "<label><id>6</id><name>B</name></label>",
        ],
    )
    assert tables["source_recording"]["external_id"].to_list() == ["4-1"]
    assert sorted(tables["reject"].select("entity", "reason", "record_id", "value").rows(), key=str) == [
        ("source_artist", "missing_id", None, "No Page"),
        ("source_artist", "missing_title", "66827", None),
        ("source_label", "missing_id", "0", "Zero"),
        ("source_label", "missing_title", "212", None),
        ("source_release", "invalid_id", "12x", "12x"),
        ("source_release", "missing_id", None, "Title"),
        ("source_release", "missing_title", "3", None),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (file_of(release(1), release(2))[:-60], r"releases\.xml: cut off at byte \d+: the closing </releases> is missing"),
        (file_of(release(1))[: -len(b"</releases>\n")], "cut off at byte"),
        (b"<html><body>429 Too Many Requests</body></html>", "begins with b'<html>"),
        (b"<labels>\n<label><id>1</id></label>\n</labels>", "holds <labels>, its name says <releases>"),
        (b"<releases/>", "holds no record"),
        (b"<releases>\n</releases>", "holds no record"),
        (b"", "0 bytes"),
    ],
    ids=["cut in a record", "cut behind a record", "error page", "another file", "empty root", "no records", "empty"],
)
def test_incomplete_dump_file_is_an_error_and_the_last_staging_stays(tmp_path: Path, content: bytes, message: str) -> None:
    stage(tmp_path, file_of(release(7)))
    with pytest.raises(DumpError, match=message):
        stage(tmp_path, content)
    kept = next(table for table in STAGING_TABLES if table.name == "source_release")
    assert read_table(kept, tmp_path / "staging" / kept.name)["release_id"].to_list() == ["7"]


def test_a_cut_off_gzip_file_is_an_error(tmp_path: Path) -> None:
    packed = gzip.compress(file_of(*(release(number) for number in range(1, 500))))
    with pytest.raises(DumpError, match=r"releases\.xml\.gz: gzip data cut off or damaged after byte"):
        stage(tmp_path, packed[:-100], "discogs_20260801_releases.xml.gz")


def test_a_record_that_never_ends_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_blocks, "LARGEST_RECORD_BYTES", 5000)
    path = tmp_path / "discogs_20260801_releases.xml"
    path.write_bytes(b"<releases>\n" + release(1, "long" * 5000))
    with pytest.raises(DumpError, match="no record starts in"):
        list(xml_blocks.cut_record_blocks(path, "releases", 1000))


def test_releases_are_required_and_several_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="no releases file"):
        stage(tmp_path, b"<labels>\n<label><id>1</id></label>\n</labels>", "discogs_20260801_labels.xml")
    (tmp_path / "dump" / "discogs_20260801_labels.xml").unlink()
    stage(tmp_path, file_of(release(1)))
    staged = stage(tmp_path, file_of(release(1), release(2)), "discogs_20260901_releases.xml")
    assert staged["source_release"]["release_id"].to_list() == ["1", "2"]
    assert staged["reject"].select("source_file", "reason", "record_id").rows() == [("discogs_20260901_releases.xml", "duplicate_id", "1")]


def test_a_file_that_the_checksums_list_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "discogs_20260801_CHECKSUM.txt").write_text(f"{'0' * 64} discogs_20260801_artists.xml.gz\n")
    with pytest.raises(DumpError, match=r"artists\.xml\.gz: listed in the checksum file, but not there"):
        stage(tmp_path, file_of(release(1)))


@pytest.mark.parametrize("listed", ["discogs_20260801_releases.xml.gz", "discogs_20260801_releases.xml"])
def test_a_listed_file_may_be_compressed_in_another_way(listed: str, tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "discogs_20260801_CHECKSUM.txt").write_text(f"{'0' * 64} {listed}\n")
    staged = stage(tmp_path, bz2.compress(file_of(release(1))), "discogs_20260801_releases.xml.bz2")
    assert staged["source_release"]["release_id"].to_list() == ["1"]


def test_masters_must_at_least_be_masters(tmp_path: Path) -> None:
    stage(tmp_path, file_of(release(1)))
    with pytest.raises(DumpError, match="holds <artists>, its name says <masters>"):
        stage(tmp_path, b"<artists>\n</artists>", "discogs_20260801_masters.xml")
