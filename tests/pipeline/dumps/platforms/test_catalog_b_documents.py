"""Tests of catalog_b as JSON documents: all deliveries are staged alike, records replace parts, rejects name file and line."""

from __future__ import annotations

import io
import json
import lzma
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.tables import STAGING_TABLES, TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = Path(__file__).parents[3] / "sample_dumps" / "catalog_b"
DOCUMENTS = SAMPLES / "documents"
METADATA = {"TIMESTAMP": "2026-11-18 00:00:00+00\n", "SCHEMA_SEQUENCE": "99\n"}
Document = dict[str, object]


def gid(kind: str, number: int) -> str:
    return f"{ord(kind):08x}-0000-4000-8000-{number:012d}"


def recording(number: int, title: str = "Song", **more: object) -> Document:
    return {"id": gid("r", number), "title": title, "length": 180_000, "video": False} | more


def release(number: int, *recordings: Document, **more: object) -> Document:
    tracks = [{"position": place, "recording": one} for place, one in enumerate(recordings, start=1)]
    media = [{"position": 1, "track-count": len(tracks), "tracks": tracks}]
    return {"id": gid("e", number), "title": "Album", "quality": "normal", "barcode": None, "media": media} | more


def write(path: Path, *documents: Document | str) -> None:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in documents), encoding="utf-8")


def archive(entity: str, content: bytes, number: str | None = "1\n") -> bytes:
    members: dict[str, str | bytes] = {**METADATA, f"mbdump/{entity}": content, **({"JSON_DUMPS_SCHEMA_NUMBER": number} if number else {})}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as file:
        for name, text in members.items():
            raw = text if isinstance(text, bytes) else text.encode()
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            file.addfile(info, io.BytesIO(raw))
    return packed.getvalue()


def stage(dump: Path) -> Callable[[str], pl.DataFrame]:
    folder = dump.parent / f"staging of {dump.name}" / "catalog_b"
    stage_dump("catalog_b", dump, folder)
    return lambda name: read_table(TABLES[name], folder / name)


def rejects(table: Callable[[str], pl.DataFrame]) -> list[tuple[object, ...]]:
    return table("reject").select("entity", "severity", "reason", "source_file", "place", "value").rows()


def test_the_shipped_documents_have_these_rows(tmp_path: Path) -> None:
    shutil.copytree(DOCUMENTS, tmp_path / "dump")
    table = stage(tmp_path / "dump")
    assert {spec.name: table(spec.name).height for spec in STAGING_TABLES} == {
        "source_recording": 6,
        "source_release": 3,
        "source_release_track": 7,
        "source_artist": 4,
        "source_legal_name": 0,
        "source_label": 2,
        "source_genre": 6,
        "source_link": 3,
        "source_redirect": 0,
        "source_work": 2,
        "source_work_recording": 2,
        "source_title": 0,
        "source_suggestion": 0,
        "reject": 0,
        "intake": 7,
    }
    songs = {row["title"]: row for row in table("source_recording").iter_rows(named=True)}
    assert songs["Tideline"]["artist_credit"] == "Orla Vint feat. Kelp Radios"
    assert [(one["name"], one["role"]) for one in songs["Tideline"]["artists"]] == [("Orla Vint", "primary"), ("Kelp Radios", "featured")]
    assert [(one["name"], one["role"]) for one in songs["Tideline (Mottle remix)"]["artists"]][1:] == [("Mottle", "remixer")]
    assert songs["Tideline (Mottle remix)"]["traits"] == ["remix"]
    assert songs["Undertow (live)"]["traits"] == ["live"]
    assert (songs["Undertow (live)"]["duration_ms"], songs["Undertow (film)"]["is_video"]) == (None, True)
    wanted = ("release_date", "release_date_precision", "release_type", "label_name", "catalog_number", "gtin", "is_official")
    assert table("source_release").select(wanted).rows() == [
        ("2024-05-01", "month", "single", "Saltmarsh Tapes", "SALT 7", "00036000291452", True),
        ("2024-09-20", "day", "album", None, None, None, True),
        (None, None, "compilation", None, None, None, False),
    ]
    assert table("source_release_track").filter(pl.col("release_id") == gid("e", 2)).select("disc_number", "track_number").rows() == [
        (1, 0),
        (1, 1),
        (1, 2),
        (2, 1),
    ]
    assert table("source_genre").select("entity_kind", "genre", "votes").rows() == [
        ("recording", "ambient", 1),
        ("recording", "dream pop", 4),
        ("recording", "seen at sea", 1),
        ("release", "dream pop", 2),
        ("release", "shoegaze", 3),
        ("artist", "singer-songwriter", 2),
    ]
    assert table("source_link").select("entity_kind", "target_platform", "target_id").rows() == [
        ("recording", "streamsvc_a", "0000000000000000000001"),
        ("release", "catalog_a", "4242"),
        ("artist", "streamsvc_a", "0000000000000000000009"),
    ]
    assert set(table("source_work").select("title", "iswc").rows()) == {("Tideline", "T0345246801"), ("Undertow", None)}


@pytest.mark.long
def test_archives_unpacked_members_and_json_lines_give_the_same_bytes(tmp_path: Path) -> None:
    kinds = ("recording", "release", "artist", "label", "work")
    content = {kind: (DOCUMENTS / f"{kind}.jsonl").read_bytes() for kind in kinds}
    deliveries = {
        "archives": {f"{kind}.tar.xz": archive(kind, raw) for kind, raw in content.items()},
        "unpacked": {f"mbdump/{kind}": raw for kind, raw in content.items()} | {"TIMESTAMP": b"2026-11-18\n"},
        "packed": {f"{kind}.ndjson.xz": lzma.compress(raw) for kind, raw in content.items()},
    }
    staged = {}
    for name, files in deliveries.items():
        for path, raw in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_bytes(raw)
        stage(tmp_path / name)
        folder = tmp_path / f"staging of {name}"
        staged[name] = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.parquet")}
    assert staged["archives"] == staged["unpacked"] == staged["packed"]


def test_a_document_goes_before_the_parts_and_a_second_document_is_a_reject(dump: Path) -> None:
    write(
        dump / "release.jsonl",
        release(1, recording(1, "As on the first"), recording(2, "Own")),
        release(2, recording(1, "As on the second")),
    )
    write(dump / "recording.jsonl", recording(2, "Document", isrcs=["QZABC2400001"]), recording(2, "Again", isrcs=["QZABC2400002"]))
    table = stage(dump)
    assert table("source_recording").select("title", "isrcs").sort("title").rows() == [
        ("As on the first", []),
        ("Document", ["QZABC2400001", "QZABC2400002"]),
    ]
    assert rejects(table) == [("source_recording", "row", "duplicate_id", "recording.jsonl", "line 2", "Again")]
    assert table("source_release_track").height == 3


def test_disambiguations_that_name_a_version_are_staged_as_one(dump: Path) -> None:
    write(dump / "recording", recording(1, disambiguation="take 3, mono"), recording(2, disambiguation="sung by the child"))
    write(dump / "release", release(9, recording(3, disambiguation="radio edit")))
    assert stage(dump)("source_recording")["version"].to_list() == ["take 3, mono", None, "radio edit"]


def test_dirt_is_rejected_with_its_file_and_line(dump: Path) -> None:
    write(
        dump / "release",
        release(1, recording(1, isrcs=["NOTACODE"]), **{"release-events": [{"date": "soon"}, {"date": ""}, {"date": "????-05"}]}),
        release(2, recording(2, length="long")),
        release(3, recording(3, ""), barcode="123"),
        '{"id": ',
        release(4, date="2024-13"),
        {"id": gid("z", 1), "note": "an area"},
        release(5, {"title": "nameless", "video": False}),
    )
    table = stage(dump)
    found = set(rejects(table))
    assert found == {
        ("source_release", "field", "invalid_date", "release", "line 1", "soon"),
        ("source_recording", "field", "invalid_isrc", "release", "line 1", "NOTACODE"),
        ("source_release", "field", "wrong_type", "release", "line 2", '"long"'),
        ("source_release", "field", "invalid_gtin", "release", "line 3", "123"),
        ("source_recording", "row", "missing_title", "release", "line 3", ""),
        ("source_release_track", "row", "dangling_reference", "release", "line 3", found_value(found, "line 3")),
        ("source_release", "row", "broken_record", "release", "line 4", None),
        ("source_release", "field", "invalid_date", "release", "line 5", "2024-13"),
        ("source_release", "row", "unknown_kind", "release", "line 6", None),
        ("source_recording", "row", "missing_id", "release", "line 7", "nameless"),
        ("source_release_track", "row", "dangling_reference", "release", "line 7", found_value(found, "line 7")),
    }
    assert table("source_release").select("release_date", "release_date_precision").rows() == [
        (None, None),
        (None, None),
        (None, None),
        ("2024-01-01", "year"),
        (None, None),
    ]


def found_value(found: set[tuple[object, ...]], place: str) -> object:
    return next(row[5] for row in found if row[2] == "dangling_reference" and row[4] == place)


def test_answers_of_the_service_are_read_too(dump: Path) -> None:
    page: Document = {"id": gid("u", 1), "resource": "https://www.discogs.com/release/77"}
    page["relations"] = [{"type-id": "x", "target-type": "release", "direction": "backward", "release": {"id": gid("e", 1)}}]
    write(
        dump / "answers.jsonl",
        {"request": "/release/1", "document": release(1, recording(1))},
        {"isrc": "QZABC2400009", "recordings": [recording(1), recording(2, "Elsewhere")]},
        {"request": "/iswc", "document": {"work-count": 1, "works": [{"id": gid("w", 1), "title": "Work", "iswcs": ["T-034.524.680-1"]}]}},
        {"url-count": 1, "urls": [page]},
    )
    table = stage(dump)
    assert table("source_recording").select("title", "isrcs").rows() == [("Song", ["QZABC2400009"]), ("Elsewhere", ["QZABC2400009"])]
    assert table("source_work")["iswc"].to_list() == ["T0345246801"]
    assert table("source_link").select("entity_id", "target_platform", "target_id").rows() == [(gid("e", 1), "catalog_a", "77")]
    assert rejects(table) == []


def test_the_archives_of_tables_win_and_the_documents_are_named_as_unread(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "20260722-001102", tmp_path / "dump")
    write(tmp_path / "dump" / "release.jsonl", release(1, recording(1)))
    table = stage(tmp_path / "dump")
    assert table("source_recording").height == 126
    assert rejects(table) == [("source_recording", "row", "unread_layout", "release.jsonl", "whole file", "release.jsonl")]


def test_an_archive_of_another_schema_or_a_cut_one_is_refused(dump: Path) -> None:
    path, content = dump / "recording.tar.xz", json.dumps(recording(1)).encode()
    path.write_bytes(archive("recording", content, "2\n"))
    with pytest.raises(DumpError, match=r"recording\.tar\.xz: JSON_DUMPS_SCHEMA_NUMBER is '2', but only 1 can be read"):
        stage(dump)
    path.write_bytes(archive("recording", content, None))
    with pytest.raises(DumpError, match=r"recording\.tar\.xz: JSON_DUMPS_SCHEMA_NUMBER missing"):
        stage(dump)
    whole = archive("recording", content)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DumpError, match=r"recording\.tar\.xz: .*fetch the file again"):
        stage(dump)


def test_other_titles_are_read_from_documents_of_their_own_and_from_parts(tmp_path: Path) -> None:
    titled = [{"name": "うた", "locale": "ja", "primary": True}, {"name": "うた", "locale": "ja"}, {"name": "Canción", "locale": None}]
    dump = tmp_path / "dump"
    dump.mkdir()
    write(dump / "recording.jsonl", recording(1, aliases=titled))
    write(dump / "release.jsonl", release(1, recording(1, aliases=titled[:1]), recording(2, aliases=[{"name": "Lied", "locale": "de"}])))
    write(dump / "work.jsonl", {"id": gid("w", 1), "title": "Work", "iswcs": [], "attributes": [], "aliases": [{"name": "Werk"}]})
    table = stage(dump)
    assert set(table("source_title").select("entity_kind", "entity_id", "title", "locale").rows()) == {
        ("recording", gid("r", 1), "うた", "ja"),
        ("recording", gid("r", 1), "Canción", None),
        ("recording", gid("r", 2), "Lied", "de"),
        ("work", gid("w", 1), "Werk", None),
    }
    assert table("source_title").height == len(set(table("source_title").rows()))
    assert rejects(table) == []
