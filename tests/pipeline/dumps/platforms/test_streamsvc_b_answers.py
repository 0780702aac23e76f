"""Tests of recorded answers of streamsvc_b: catalog songs, lookup documents and the shipped samples."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump

SAMPLES = Path(__file__).parents[3] / "sample_dumps" / "streamsvc_b"


def staged(dump: Path, folder: Path) -> dict[str, pl.DataFrame]:
    stage_dump("streamsvc_b", dump, folder)
    return {table.name: read_table(table, folder / table.name) for table in TABLES.values() if (folder / table.name).is_dir()}


def heights(tables: dict[str, pl.DataFrame]) -> dict[str, int]:
    return {name: frame.height for name, frame in tables.items() if frame.height and name not in {"intake", "reject"}}


def catalog_song(identifier: str, **attributes: object) -> dict[str, object]:
    given = {
        "name": "Lose My Mind (feat. Somebody) [From a Movie]",
        "artistName": "A & B",
        "albumName": "Lose My Mind - Single",
        "isrc": "USAT22500463",
        "durationInMillis": 186_964,
        "releaseDate": "2024",
        "genreNames": ["Latin Urban", "Music", "Latin"],
        "trackNumber": 1,
        "discNumber": 1,
        "url": f"https://music.example/us/album/lose-my-mind/900?i={identifier}",
    }
    people = {"artists": {"data": [{"id": "1"}, {"id": "2"}]}}
    return {"id": identifier, "type": "songs", "attributes": given | attributes, "relationships": people}


def test_the_sample_answers_hold_239_songs_and_three_videos(tmp_path: Path) -> None:
    tables = staged(SAMPLES / "answers", tmp_path / "out")
    assert heights(tables) == {
        "source_recording": 239,
        "source_release": 188,
        "source_release_track": 239,
        "source_artist": 135,
        "source_genre": 355,
    }
    assert tables["reject"]["reason"].to_list() == ["not_audio"] * 3
    assert tables["source_recording"].filter(pl.col("isrcs").list.len() > 0).height == 200
    assert "Music" not in tables["source_genre"]["genre"]


def test_the_constructed_epf_sample_holds_39_songs(tmp_path: Path) -> None:
    tables = staged(SAMPLES / "epf", tmp_path / "out")
    assert heights(tables) == {"source_recording": 39, "source_release": 3, "source_release_track": 39, "source_artist": 17}
    assert tables["reject"].is_empty()


def test_display_strings_are_not_split_and_albums_come_out_of_urls(tmp_path: Path) -> None:
    lines = [
        catalog_song("10", contentRating="explicit"),
        catalog_song("11", artistName="C", isrc="?"),
        catalog_song("10"),
        {"type": "stations"},
    ]
    (tmp_path / "dump").mkdir()
    text = "\n".join([*map(json.dumps, lines), "{broken"])
    (tmp_path / "dump" / "songs.jsonl").write_text(text)
    tables = staged(tmp_path / "dump", tmp_path / "out")
    recordings = tables["source_recording"]
    assert recordings.select("external_id", "release_id", "release_date_precision", "is_explicit").rows() == [
        ("10", "900", "year", True),
        ("11", "900", "year", False),
    ]
    assert recordings["artists"][0].to_list() == [{"artist_id": None, "name": "A & B", "role": "primary"}]
    assert tables["source_release"].select("release_id", "title", "release_type").rows() == [("900", "Lose My Mind", "single")]
    assert tables["source_genre"].filter(entity_id="10")["genre"].to_list() == ["Latin Urban", "Latin"]
    assert tables["reject"].select("reason", "place").sort("place").rows() == [
        ("invalid_isrc", "line 2"),
        ("duplicate_id", "line 3"),
        ("not_audio", "line 4"),
        ("truncated_file", "line 5"),
    ]
    assert tables["intake"].select("rows_read", "rows_staged", "rows_rejected").rows() == [(5, 2, 3)]


def test_answers_without_a_song_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "answer.json").write_text(json.dumps({"resultCount": 0, "results": []}, indent=1))
    with pytest.raises(DumpError, match=r"no song in answer\.json"):
        staged(tmp_path / "dump", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "dump" / "answer.json").write_text(json.dumps({"id": "1", "type": "songs"}), encoding="utf-16")
    with pytest.raises(DumpError, match=r"no song in answer\.json \(answer\.json, line 1: invalid_utf8\)"):
        staged(tmp_path / "dump", tmp_path / "out")


def test_a_folder_of_no_known_layout_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "readme.txt").write_text("nothing")
    with pytest.raises(DumpError, match="no known layout"):
        staged(tmp_path / "dump", tmp_path / "out")
