"""Tests of streamsvc_c: each layout is read whole, and each kind of dirt ends in a reject, a null or a clear error."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump
from tests.pipeline.dumps.platforms.streamsvc_c_dumps import PLATFORM, SAMPLES, Row, Tables, rejects, row, staged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("sample", "recordings", "releases", "places", "artists", "genres", "out"),
    [
        ("resources/answer_3.json", 20, 1, 20, 1, 0, 0),
        ("resources/answer_8.json", 6, 0, 0, 1, 0, 0),
        ("resources", 55, 3, 29, 7, 0, 1),
        ("older/album.json", 0, 1, 0, 1, 0, 0),
        ("older/album_items.json", 8, 1, 8, 2, 0, 8),
        ("flat/tracks.jsonl", 390, 248, 364, 166, 0, 0),
        ("flat/albums.jsonl", 0, 378, 0, 97, 49, 0),
        ("flat", 390, 378, 364, 244, 49, 0),
        ("flat_answers", 1, 1, 1, 2, 1, 0),
    ],
)
def test_real_excerpts_are_read_whole(
    tmp_path: Path, sample: str, recordings: int, releases: int, places: int, artists: int, genres: int, out: int
) -> None:
    tables = staged(SAMPLES / sample, tmp_path / "staging")
    assert tables["source_recording"].height == recordings
    assert tables["source_release"].height == releases
    assert tables["source_release_track"].height == places
    assert tables["source_artist"].height == artists
    assert tables["source_genre"].height == genres
    assert tables["reject"].filter(severity="row")["reason"].to_list() == ["not_audio"] * out
    books = tables["intake"]
    assert (books["rows_read"] == books["rows_staged"] + books["rows_rejected"]).all()


def test_answer_without_any_audio_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"no recording .* can be staged \(answer_4\.json, record 1: not_audio\)"):
        staged(SAMPLES / "resources/answer_4.json", tmp_path / "staging")


def test_a_real_resource_document_gives_every_field(tmp_path: Path) -> None:
    tables = staged(SAMPLES / "resources" / "answer_1.json", tmp_path / "staging")
    recording = tables["source_recording"].row(0, named=True)
    credit = [("3534754", "Lady Gaga", "primary"), ("3658521", "Bruno Mars", "primary")]
    assert [tuple(artist.values()) for artist in recording.pop("artists")] == credit
    assert recording.pop("content_hash") is not None
    assert recording == {
        "platform": PLATFORM,
        "external_id": "381265362",
        "link_id": "381265362",
        "slug": None,
        "title": "Die With A Smile",
        "version": None,
        "artist_credit": "Lady Gaga, Bruno Mars",
        "isrcs": ["USUM72409273"],
        "duration_ms": 252_000,
        "release_id": "381265361",
        "disc_number": None,
        "track_number": None,
        "heading": None,
        "repeats": None,
        "release_date": None,
        "release_date_precision": None,
        "is_explicit": False,
        "is_video": False,
        "traits": [],
        "popularity": pytest.approx(0.6028, abs=1e-4),
    }
    release = tables["source_release"].row(0, named=True)
    assert (release["gtin"], release["release_date"], release["release_type"]) == ("00602475093060", "2024-08-16", "single")
    assert (release["label_name"], release["track_count"], release["is_compilation"]) == (None, 1, False)
    assert tables["source_release_track"].rows() == [(PLATFORM, "381265361", "381265362", 1, 1)]
    assert tables["source_label"].height == 0, "providers are distributors"


def test_a_version_kept_apart_stays_apart(tmp_path: Path) -> None:
    tables = staged(SAMPLES / "resources" / "answer_3.json", tmp_path / "staging")
    dub = row(tables, "source_recording", "396698926")
    assert (dub["title"], dub["version"]) == ("CELESTIAL", "DUB")


def track(number: int, relations: Row | None = None, kind: str = "tracks", **attributes: object) -> Row:
    given = {"title": f"Song {number}", "isrc": f"GBAYE76000{number:02d}", "duration": "PT3M5S", "explicit": False, "popularity": 0.5}
    links = {"artists": {"data": [{"id": "1", "type": "artists"}]}} | (relations or {})
    return {"id": str(number), "type": kind, "attributes": given | attributes, "relationships": links}


ARTISTS = [{"id": str(n), "type": "artists", "attributes": {"name": f"Artist {n}", "popularity": 0.25}} for n in (1, 2)]


def album(number: int, items: list[Row], **attributes: object) -> Row:
    given = {"title": f"Album {number}", "barcodeId": "00602475093060", "releaseDate": "2020-02-29", "albumType": "EP", "numberOfItems": 3}
    links = {"artists": {"data": [{"id": "2", "type": "artists"}]}, "items": {"data": items}}
    return {"id": str(number), "type": "albums", "attributes": given | attributes, "relationships": links}


def item(number: int, place: int, kind: str = "tracks") -> Row:
    return {"id": str(number), "type": kind, "meta": {"trackNumber": place, "volumeNumber": 2}}


def test_resources_of_separate_files_are_joined(stage_files: Callable[..., Tables]) -> None:
    tables = stage_files(
        tracks__ndjson=[track(10), track(11, {"albums": {"data": [{"id": "90", "type": "albums"}]}}), track(12)],
        albums__ndjson__gz=[album(90, [item(10, 1), item(11, 2), item(500, 3, "videos")]), album(91, [item(10, 7)])],
        artists__jsonl=ARTISTS,
    )
    assert tables["source_recording"].select("external_id", "release_id", "artist_credit").rows() == [
        ("10", "90", "Artist 1"),
        ("11", "90", "Artist 1"),
        ("12", None, "Artist 1"),
    ]
    assert tables["source_release_track"].drop("platform").rows() == [("90", "10", 2, 1), ("90", "11", 2, 2), ("91", "10", 2, 7)]
    assert row(tables, "source_release", "91")["artist_credit"] == "Artist 2"
    assert row(tables, "source_release", "91")["release_type"] == "ep"
    assert row(tables, "source_artist", "1")["popularity"] == 0.25
    assert tables["reject"].is_empty()


def test_iso_durations_are_read_with_all_their_parts(stage_files: Callable[..., Tables]) -> None:
    durations = {
        "PT4M12S": 252_000,
        "PT1H2M": 3_720_000,
        "PT1H2M3S": 3_723_000,
        "PT45S": 45_000,
        "PT3M": 180_000,
        "PT2M3.456S": 123_456,
        "PT2M3,5S": 123_500,
        "P1DT1S": 86_401_000,
        "252": 252_000,
    }
    tables = stage_files(tracks__ndjson=[track(10 + n, duration=written) for n, written in enumerate(durations)], artists__ndjson=ARTISTS)
    assert tables["source_recording"]["duration_ms"].to_list() == list(durations.values())


def test_bad_values_are_left_out_and_named(stage_files: Callable[..., Tables]) -> None:
    tables = stage_files(
        tracks__ndjson=[
            track(10, duration="PT0S"),
            track(11, duration="four minutes"),
            track(12, isrc="GBAYE76"),
            track(13, popularity="high"),
            track(14, {"artists": {"data": [{"id": "1", "type": "artists"}, {"id": "77", "type": "artists"}]}}),
            track(15, {"albums": {"data": [{"id": "404", "type": "albums"}]}}),
            track(16, {"genres": {"data": [{"id": "g1", "type": "genres"}, {"id": "g9", "type": "genres"}]}}),
            track(17, duration=None, isrc="", popularity=None, version="  "),
        ],
        albums__ndjson=[album(90, [item(600, 1)], barcodeId="00602475093061", releaseDate="0000-00-00", numberOfItems="many")],
        artists__ndjson=ARTISTS,
        genres__ndjson=[{"id": "g1", "type": "genres", "attributes": {"genreName": "House"}}],
    )
    assert rejects(tables) == {
        ("source_recording", "invalid_duration", "line 1", "10", "duration"),
        ("source_recording", "invalid_duration", "line 2", "11", "duration"),
        ("source_recording", "invalid_isrc", "line 3", "12", "isrc"),
        ("source_recording", "invalid_number", "line 4", "13", "popularity"),
        ("source_recording", "dangling_reference", "line 5", "14", "artists"),
        ("source_recording", "dangling_reference", "line 6", "15", "release"),
        ("source_recording", "dangling_reference", "line 7", "16", "genres"),
        ("source_release", "invalid_gtin", "line 1", "90", "upc"),
        ("source_release", "invalid_date", "line 1", "90", "release_date"),
        ("source_release", "invalid_number", "line 1", "90", "track_count"),
        ("source_release", "dangling_reference", "line 1", "90", "items"),
    }
    assert tables["source_recording"].height == 8
    assert row(tables, "source_recording", "14")["artist_credit"] == "Artist 1"
    assert row(tables, "source_recording", "17")["version"] is None
    assert tables["source_genre"].select("entity_kind", "entity_id", "position", "genre", "genre_id").rows() == [
        ("recording", "16", 0, "House", "g1")
    ]


def test_records_that_are_out_say_why(stage_files: Callable[..., Tables]) -> None:
    tables = stage_files(
        tracks__ndjson=[
            track(10),
            track(11, kind="videos"),
            track(10, title="Again"),
            track(12, title=" "),
            track(13) | {"id": None},
            track(14) | {"id": "x14"},
            {"id": "7", "type": "playlists", "attributes": {"title": "Mine"}},
            {"id": "8", "type": "podcasts", "attributes": {"title": "Talk"}},
            {"errors": [{"status": "404"}]},
        ],
        artists__ndjson=ARTISTS,
    )
    assert rejects(tables) == {
        ("source_recording", "not_audio", "line 2", "11", None),
        ("source_recording", "duplicate_id", "line 3", "10", None),
        ("source_recording", "missing_title", "line 4", "12", None),
        ("source_recording", "missing_id", "line 5", None, None),
        ("source_recording", "invalid_id", "line 6", "x14", None),
        ("source_recording", "unknown_kind", "line 8", "8", None),
        ("source_recording", "missing_id", "line 9", None, None),
    }
    assert tables["source_recording"]["title"].to_list() == ["Song 10"]
    assert tables["intake"].filter(entity="source_recording").select("rows_read", "rows_staged", "rows_rejected").row(0) == (8, 1, 7)


def test_unreadable_lines_are_counted_and_placed(stage_files: Callable[..., Tables]) -> None:
    good = json.dumps(track(10)).encode()
    tables = stage_files(tracks__ndjson=good + b'\n{"id": "11", "type\n\n[]\n{"id": "\xff"}\n{"id": "12"', artists__ndjson=ARTISTS)
    assert rejects(tables) == {
        ("source_recording", "broken_record", "line 2", None, None),
        ("source_recording", "broken_record", "line 4", None, None),
        ("source_recording", "invalid_utf8", "line 5", None, None),
        ("source_recording", "truncated_file", "line 6", None, None),
    }
    assert tables["reject"].sort("place")["excerpt"].to_list() == ['{"id": "11", "type', "[]", '{"id": "\\xff"}', '{"id": "12"']
    assert tables["source_recording"].height == 1


def test_documents_repeat_what_they_include_without_harm(stage_files: Callable[..., Tables]) -> None:
    documents = [{"data": [album(90 + n, [item(10 + n, 1)])], "included": [track(10 + n), *ARTISTS]} for n in range(3)]
    tables = stage_files(answers__ndjson=documents)
    assert tables["source_recording"].height == 3
    assert tables["source_release"].height == 3
    assert tables["source_artist"]["artist_id"].to_list() == ["1", "2"]
    assert tables["reject"].is_empty()


def test_popularity_of_older_answers_counts_to_a_hundred(stage_files: Callable[..., Tables]) -> None:
    artist = {"id": "1", "type": "artists", "attributes": {"name": "Artist 1", "popularity": 98.0}}
    tables = stage_files(artists__ndjson=[artist, {"id": "2", "type": "artists", "attributes": {"name": "X", "popularity": 980}}])
    assert tables["source_artist"]["popularity"].to_list() == [0.98, None]
    assert rejects(tables) == {("source_artist", "invalid_number", "line 2", "2", "popularity")}


def test_the_same_dump_gives_the_same_tables(tmp_path: Path) -> None:
    first, second = (staged(SAMPLES, tmp_path / name) for name in ("first", "second"))
    for name, table in first.items():
        assert table.equals(second[name]), name
    for file in (tmp_path / "first").rglob("*.parquet"):
        assert file.read_bytes() == (tmp_path / "second" / file.relative_to(tmp_path / "first")).read_bytes()


def test_a_dump_without_json_is_an_error_that_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    with pytest.raises(DumpError, match=r"dump: no JSON file"):
        stage_dump(PLATFORM, tmp_path / "dump", tmp_path / "staging")


def test_a_cut_gzip_leaves_yesterdays_staging(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.mkdir()
    packed = gzip.compress((SAMPLES / "flat" / "tracks.jsonl").read_bytes())
    (dump / "tracks.jsonl.gz").write_bytes(packed)
    stage_dump(PLATFORM, dump, tmp_path / "staging")
    (dump / "tracks.jsonl.gz").write_bytes(packed[:-200])
    with pytest.raises(DumpError, match=r"tracks\.jsonl\.gz: gzip data cut off"):
        stage_dump(PLATFORM, dump, tmp_path / "staging")
    assert read_table(TABLES["source_recording"], tmp_path / "staging" / "source_recording").height == 390
    assert not (tmp_path / "staging.scratch").exists()
