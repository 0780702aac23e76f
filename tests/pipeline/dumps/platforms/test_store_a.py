"""Tests of store_a: each layout is read whole, and each kind of dirt ends in a reject, a null or a clear error."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import find_adapter, stage_dump
from pipeline.dumps.staging.staging_writer import StagingWriter

if TYPE_CHECKING:
    from collections.abc import Callable

PLATFORM = "store_a"
SAMPLES = Path(__file__).parents[3] / "sample_dumps" / PLATFORM
Tables = dict[str, pl.DataFrame]
Row = dict[str, Any]


def staged(dump: Path, folder: Path) -> Tables:
    stage_dump(PLATFORM, dump, folder)
    return {name: read_table(TABLES[name], folder / name) for name in TABLES if (folder / name).is_dir()}


@pytest.fixture
def stage(tmp_path: Path) -> Callable[..., Tables]:
    """Stage files given as name=records; `__` in a name stands for a dot."""

    def run(**files: list[Row] | str) -> Tables:
        dump = tmp_path / "dump"
        dump.mkdir()
        for name, content in files.items():
            raw = content.encode("latin-1") if isinstance(content, str) else b"".join(json.dumps(r).encode() + b"\n" for r in content)
            (dump / name.replace("__", ".")).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
        return staged(dump, tmp_path / "staging")

    return run


def rejects(tables: Tables) -> set[tuple[str, str, str, str | None, str | None]]:
    return set(tables["reject"].select("entity", "reason", "place", "record_id", "field").iter_rows())


def credited(row: Row) -> list[tuple[str | None, str, str]]:
    return [tuple(artist.values()) for artist in row["artists"]]


@pytest.mark.parametrize(
    ("sample", "rows", "out"),
    [
        ("version_4_answers", (2, 2, 2, 2, 1, 3), {"duplicate_id": 3}),
        ("version_4_answers/search_tracks.json", (2, 1, 2, 2, 0, 3), {}),
        ("version_4_answers/release_tracks.json", (2, 0, 0, 0, 0, 0), {}),
        ("version_3", (6, 1, 6, 1, 1, 13), {}),
        ("version_4", (7, 3, 7, 9, 2, 11), {}),
        ("csv_set", (5, 2, 5, 3, 2, 9), {"wrong_column_count": 1}),
    ],
)
def test_excerpts_are_read_whole(tmp_path: Path, sample: str, rows: tuple[int, ...], out: dict[str, int]) -> None:
    """Expected: rows of recordings, releases, places on releases, artists, labels, genres; reasons of rejects."""
    tables = staged(SAMPLES / sample, tmp_path / "staging")
    names = ("recording", "release", "release_track", "artist", "label", "genre")
    assert tuple(tables[f"source_{name}"].height for name in names) == rows
    rejected = tables["reject"].filter(severity="row")
    assert dict(rejected.group_by("reason").len().iter_rows()) == out
    books = tables["intake"]
    assert (books["rows_read"] == books["rows_staged"] + books["rows_rejected"]).all()


def test_an_excerpt_whose_tracks_have_no_ids_is_read_and_all_of_it_rejected(tmp_path: Path) -> None:
    with StagingWriter(PLATFORM, tmp_path / "staging") as out:
        find_adapter(PLATFORM)(SAMPLES / "track_list/tracks.json", out)
    rejected = read_table(TABLES["reject"], tmp_path / "staging" / "reject")
    assert rejected["reason"].to_list() == ["missing_id"] * 192
    with pytest.raises(DumpError, match=r"no recording or work can be staged \(tracks\.json, record 1: missing_id\)"):
        stage_dump(PLATFORM, SAMPLES / "track_list/tracks.json", tmp_path / "other")


def track(track_id: int, **changes: object) -> Row:
    record: Row = {
        "id": track_id,
        "name": "Hit It feat. Nez",
        "mix_name": "Someone Remix",
        "slug": "hit-it",
        "isrc": "GBCPZ2221494",
        "artists": [{"id": 1, "name": "Matroda", "slug": "matroda", "url": "x"}, {"id": 2, "name": "Nez", "slug": "nez"}],
        "remixers": [{"id": 3, "name": "Someone", "slug": "someone"}],
        "length": "3:47",
        "length_ms": 227114,
        "genre": {"id": 5, "name": "House", "slug": "house"},
        "sub_genre": {"id": 260, "name": "Acid", "slug": "acid"},
        "release": {"id": 90, "name": "Hits", "slug": "hits", "label": {"id": 1354, "name": "Defected", "slug": "defected"}},
        "catalog_number": "DEFACD18D",
        "publish_date": "2026-01-20",
        "new_release_date": "2026-01-23",
        "is_explicit": False,
        "is_dj_edit": False,
        "publish_status": "published",
        "a_field_of_next_year": {"nested": [1, 2]},
    }
    return record | changes


def release(number: int, **changes: object) -> Row:
    record: Row = {
        "id": number,
        "name": "Hits",
        "slug": "hits",
        "label": {"id": 1354, "name": "Defected", "slug": "defected"},
        "artists": [{"id": 1, "name": "Matroda"}],
        "remixers": [],
        "upc": "0826194665494",
        "catalog_number": "DEFACD18D",
        "publish_date": "2026-01-20",
        "new_release_date": "2026-01-23",
        "type": {"id": 1, "name": "Release"},
        "track_count": 2,
        "bpm_range": {"min": 120, "max": 128},
        "tracks": ["https://api.example.com/v4/catalog/tracks/7/"],
    }
    return record | changes


def test_a_track_gives_every_field(stage: Callable[..., Tables]) -> None:
    tables = stage(tracks__ndjson=[track(7, number=4)])
    recording = tables["source_recording"].row(0, named=True)
    assert credited(recording) == [("1", "Matroda", "primary"), ("2", "Nez", "primary"), ("3", "Someone", "remixer")]
    del recording["artists"]
    assert recording.pop("content_hash") is not None
    assert recording == {
        "platform": PLATFORM,
        "external_id": "7",
        "link_id": "7",
        "slug": "hit-it",
        "title": "Hit It feat. Nez",
        "version": "Someone Remix",
        "artist_credit": "Matroda, Nez",
        "isrcs": ["GBCPZ2221494"],
        "duration_ms": 227_114,
        "release_id": "90",
        "disc_number": None,
        "track_number": 4,
        "heading": None,
        "repeats": None,
        "release_date": "2026-01-23",
        "release_date_precision": "day",
        "is_explicit": False,
        "is_video": False,
        "traits": [],
        "popularity": None,
    }
    genres = tables["source_genre"].select("entity_kind", "entity_id", "position", "genre", "genre_id", "parent").rows()
    assert genres == [("recording", "7", 0, "House", "5", None), ("recording", "7", 1, "Acid", "260", "House")]
    part = tables["source_release"].row(0, named=True)
    assert (part["release_id"], part["title"], part["slug"], part["label_id"]) == ("90", "Hits", "hits", "1354")
    assert (part["label_name"], part["catalog_number"], part["gtin"]) == ("Defected", "DEFACD18D", None)
    assert tables["source_release_track"].drop("platform").rows() == [("90", "7", None, 4)]
    assert tables["source_label"].select("label_id", "name").rows() == [("1354", "Defected")]
    assert tables["source_artist"].select("artist_id", "name").rows() == [("1", "Matroda"), ("2", "Nez"), ("3", "Someone")]


def test_a_release_record_counts_more_than_the_release_inside_a_track(stage: Callable[..., Tables]) -> None:
    tables = stage(tracks__ndjson=[track(7)], releases__ndjson__gz=[release(90), release(91, name="Other")])
    assert tables["source_release"].select("release_id", "gtin", "release_type", "track_count").rows() == [
        ("90", "00826194665494", None, 2),
        ("91", "00826194665494", None, 2),
    ]
    assert tables["source_label"].height == 1


def test_tracks_with_fields_missing_are_staged(stage: Callable[..., Tables]) -> None:
    bare = {"id": 8, "name": "Only a name", "mix_name": None, "isrc": None, "length_ms": None, "sub_genre": None, "genre": None}
    tables = stage(
        tracks__ndjson=[bare, track(9, length_ms=None), track(10, length_ms=None, length="1:02:03", mix_name="", is_dj_edit=True)]
    )
    assert tables["reject"].is_empty()
    assert tables["source_recording"].select("title", "version", "duration_ms", "traits").rows() == [
        ("Hit It feat. Nez", "Someone Remix", 227_000, []),
        ("Hit It feat. Nez", None, 3_723_000, ["dj_edit"]),
        ("Only a name", None, None, []),
    ]


def test_a_barcode_in_the_catalogue_number_is_a_barcode(stage: Callable[..., Tables]) -> None:
    tables = stage(
        releases__ndjson=[
            release(90, upc=None, catalog_number="0724384960650"),
            release(91, upc="826194665494", catalog_number="0724384960650"),
            release(92, upc=None, catalog_number="0724384960651"),
            release(93, upc=" ", catalog_number="GBCPZ2221494"),
        ]
    )
    assert tables["source_release"].select("gtin", "catalog_number").rows() == [
        ("00724384960650", None),
        ("00826194665494", None),
        (None, "0724384960651"),
        (None, "GBCPZ2221494"),
    ]


def test_a_release_of_many_artists_is_a_compilation(stage: Callable[..., Tables]) -> None:
    def people(count: int) -> list[Row]:
        return [{"id": n, "name": f"Artist {n}"} for n in range(1, count + 1)]

    tables = stage(
        releases__ndjson=[
            release(90, artists=people(12), track_count=12),
            release(91, artists=people(3), track_count=12),
            release(92, artists=people(12), track_count=1),
            release(93, type={"id": 3, "name": "Compilation"}),
        ]
    )
    assert tables["source_release"]["is_compilation"].to_list() == [True, False, False, True]
    assert tables["source_release"]["release_type"].to_list() == [None, None, None, "compilation"]


def test_same_number_on_every_track_of_a_release_is_ignored(stage: Callable[..., Tables]) -> None:
    other = {"id": 91, "name": "Other", "label": None}
    numbered = [track(7, number=1), track(8, number=1), track(9, number=1, release=other), track(10, number=2, release=other)]
    tables = stage(tracks__ndjson=numbered)
    assert tables["source_release_track"].select("external_id", "track_number").rows() == [("7", None), ("8", None), ("9", 1), ("10", 2)]


def test_dirt_is_rejected_with_its_reason(stage: Callable[..., Tables]) -> None:
    tables = stage(
        tracks__ndjson=[
            track(7, isrc="GBCPZ222149"),
            track(8, isrc="gb-cpz-22-21494"),
            track(9, length_ms=-5, length=None),
            track(10, new_release_date="0000-00-00"),
            track(7, name="Again"),
            track(11, name=" "),
            track(12, id=None),
            track(13, id="abc"),
            track(14, artists="Matroda"),
            track(15, number="A1"),
            track(16, genre={"id": 5, "name": None}),
            {"detail": "Not found."},
        ],
        releases__ndjson=[release(90, upc="0826194665495", track_count=-1), release(91, id="")],
    )
    assert rejects(tables) == {
        ("source_recording", "invalid_isrc", "line 1", "7", "isrc"),
        ("source_recording", "invalid_duration", "line 3", "9", "duration"),
        ("source_recording", "invalid_date", "line 4", "10", "release_date"),
        ("source_recording", "duplicate_id", "line 5", "7", None),
        ("source_recording", "missing_title", "line 6", "11", None),
        ("source_recording", "missing_id", "line 7", None, None),
        ("source_recording", "invalid_id", "line 8", "abc", None),
        ("source_recording", "wrong_type", "line 9", "14", "artists[0]"),
        ("source_recording", "invalid_number", "line 10", "15", "track_number"),
        ("source_recording", "dangling_reference", "line 11", "16", "genres"),
        ("source_recording", "missing_id", "line 12", None, None),
        ("source_release", "invalid_gtin", "line 1", "90", "upc"),
        ("source_release", "invalid_number", "line 1", "90", "track_count"),
        ("source_release", "missing_id", "line 2", "", None),
    }
    assert tables["source_recording"]["isrcs"].to_list()[1] == ["GBCPZ2221494"]


def test_files_of_artists_and_labels_are_recognised_by_their_names(stage: Callable[..., Tables]) -> None:
    tables = stage(artists__ndjson=[{"id": 1, "name": "A", "slug": "a"}], labels__ndjson=[{"id": 2, "name": "L", "slug": "l"}])
    assert tables["source_artist"].select("artist_id", "name").rows() == [("1", "A")]
    assert tables["source_label"].select("label_id", "name").rows() == [("2", "L")]


def test_version_3_entities_become_characters_and_remixers_are_recognised_by_type(stage: Callable[..., Tables]) -> None:
    older = {
        "id": 7817567,
        "type": "track",
        "name": "Rock &amp; Roll &#9837;",
        "mixName": "Original Mix",
        "lengthMs": None,
        "length": "7:05",
        "artists": [{"id": 1, "name": "A &amp; B", "type": "artist"}, {"id": 2, "name": "C", "type": "remixer"}],
        "genres": [{"id": 9, "name": "Breaks"}],
        "subGenres": [{"id": 209, "name": "Glitch &amp; Hop"}],
        "release": {"id": 17, "name": "X &lt;3", "slug": "x"},
        "label": {"id": 24, "name": "L&amp;L"},
        "releaseDate": "2016-04-11",
    }
    tables = stage(tracks__json=[older])
    recording = tables["source_recording"].row(0, named=True)
    assert (recording["title"], recording["version"], recording["duration_ms"]) == ("Rock & Roll ♭", "Original Mix", 425_000)
    assert credited(recording) == [("1", "A & B", "primary"), ("2", "C", "remixer")]
    assert tables["source_genre"].select("genre", "parent").rows() == [("Breaks", None), ("Glitch & Hop", "Breaks")]
    assert tables["source_release"].select("title", "label_name").rows() == [("X <3", "L&L")]


def test_tracks_of_the_site_search_are_staged(stage: Callable[..., Tables]) -> None:
    found = {
        "track_id": 5,
        "track_name": "Song",
        "mix_name": "Dub",
        "isrc": "GBCPZ2221494",
        "length": 300000,
        "artists": [
            {"artist_id": 1, "artist_name": "A", "artist_type_name": "Artist"},
            {"artist_id": 2, "artist_name": "B", "artist_type_name": "Remixer"},
        ],
        "genre": [{"genre_id": 5, "genre_name": "House"}],
        "release": {"release_id": 9, "release_name": "R"},
    }
    tables = stage(search__ndjson=[{"tracks": {"data": [found]}}])
    recording = tables["source_recording"].row(0, named=True)
    assert (recording["external_id"], recording["version"], recording["duration_ms"], recording["release_id"]) == ("5", "Dub", 300_000, "9")
    assert credited(recording) == [("1", "A", "primary"), ("2", "B", "remixer")]


CSV_SET = {
    "bp_track__csv": "track_id,title,mix,genre_id,subgenre_id,label_id,release_id,isrc,duration,release_date,track_url\n"
    '1,"Song, one",Original Mix,93,233,7,50,GBCPZ2221494,6:22,2022-03-25,/track/song-one/1\n'
    "2,short row\n"
    '3,"Two\nlines","Y Remix",3,233,7,50,nonsense,382101,2022-03-25 00:00:00,\n'
    "4,Caf\xe9,,5,,7,51,,,,\n"
    "5,Last,Dub,5,999,7,52,,0:00,2022,\n",
    "bp_artist__csv": "artist_id,artist_name,artist_url,updated_on\n10,A,/a,2023\n11,B,/b,2023\n",
    "bp_artist_track__csv": "artist_id,track_id,is_remixer,updated_on\n11,3,t,2023\n10,1,f,2023\n10,3,f,2023\n12,5,f,2023\n",
    "bp_label__csv": "label_id,label_name,label_url\n7,Defected,/l\n",
    "bp_genre_2023-09__csv__gz": "genre_id,genre_name,song_count\n93,Organic House,1\n3,Electronica,1\n5,House,1\n",
    "bp_subgenre__csv": "subgenre_id,subgenre_name,song_count,genre_id\n233,Downtempo,1,93\n233,Downtempo,1,3\n",
    "bp_release__csv": "release_id,release_title,release_date,label_id,release_url\n50,Hits,2022-03-25,7,/release/hits/50\n51,More,,7,\n",
    "bp_artist_release__csv": "artist_id,release_id\n10,50\n",
}


def test_credits_without_a_track_or_release_are_rejected(stage: Callable[..., Tables]) -> None:
    credits_ = {"bp_artist_track__csv": "artist_id,track_id\n10,1\n10,\n11,\n", "bp_artist_release__csv": "artist_id,release_id\n10,\n"}
    found = stage(**CSV_SET | credits_)["reject"].filter(place="whole table").select("entity", "source_file", "field", "value")
    assert set(found.rows()) == {
        ("source_recording", "bp_artist_track", "track_id", "2 rows without a key"),
        ("source_release", "bp_artist_release", "release_id", "1 rows without a key"),
    }


def test_the_csv_set_is_joined(stage: Callable[..., Tables]) -> None:
    tables = stage(**CSV_SET)
    recordings = tables["source_recording"]
    assert recordings.select("external_id", "title", "version", "duration_ms", "release_id", "slug").rows() == [
        ("1", "Song, one", "Original Mix", 382_000, "50", "song-one"),
        ("3", "Two lines", "Y Remix", 382_101, "50", None),
        ("5", "Last", "Dub", None, None, None),
    ]
    assert credited(recordings.row(1, named=True)) == [("10", "A", "primary"), ("11", "B", "remixer")]
    assert tables["source_genre"].select("entity_id", "genre", "parent").rows() == [
        ("1", "Organic House", None),
        ("1", "Downtempo", "Organic House"),
        ("3", "Electronica", None),
        ("3", "Downtempo", "Electronica"),
        ("5", "House", None),
    ]
    assert tables["source_release"].select("release_id", "title", "label_name", "artist_credit", "slug").rows() == [
        ("50", "Hits", "Defected", "A", "hits"),
        ("51", "More", "Defected", None, None),
    ]
    assert rejects(tables) == {
        ("source_recording", "wrong_column_count", "record 2", None, None),
        ("source_recording", "invalid_isrc", "record 3", "3", "isrc"),
        ("source_recording", "invalid_utf8", "record 4", None, None),
        ("source_recording", "invalid_duration", "record 5", "5", "duration"),
        ("source_recording", "dangling_reference", "record 5", "5", "release"),
        ("source_recording", "dangling_reference", "record 5", "5", "artists"),
        ("source_recording", "dangling_reference", "record 5", "5", "genres"),
    }


def test_numbers_with_a_fraction_credits_given_twice_and_headings_in_capitals_are_read(stage: Callable[..., Tables]) -> None:
    tables = stage(
        bp_track__csv="Track_ID,TITLE,genre_id,subgenre_id,release_id\n1.0,Song,93.0,233.0,50.0\n1.5,No,,,\n",
        bp_artist__csv="artist_id,artist_name\n10.0,A\n11,B\n",
        bp_artist_track__csv="artist_id,track_id,is_remixer\n10,1,0.0\n11.0,1.0,1.0\n10,1,0\n",
        bp_label__csv="label_id,label_name\n7,Defected\n",
        bp_genre__csv="genre_id,genre_name\n93,Organic House\n",
        bp_subgenre__csv="subgenre_id,subgenre_name\n233,Downtempo\n",
        bp_release__csv="release_id,release_title,label_id\n50,Hits,7.0\n",
    )
    recording = tables["source_recording"].row(0, named=True)
    assert (recording["external_id"], recording["release_id"]) == ("1", "50")
    assert credited(recording) == [("10", "A", "primary"), ("11", "B", "remixer")]
    assert tables["source_genre"]["genre"].to_list() == ["Organic House", "Downtempo"]
    assert tables["source_release"]["label_name"].to_list() == ["Defected"]
    assert rejects(tables) == {("source_recording", "invalid_id", "record 2", "1.5", None)}


def test_a_length_of_zero_is_replaced_by_the_one_in_words(stage: Callable[..., Tables]) -> None:
    tables = stage(tracks__ndjson=[track(7, length_ms=0, length="3:20"), track(8, length_ms=0, length=None)])
    assert tables["source_recording"]["duration_ms"].to_list() == [200_000, None]
    assert rejects(tables) == {("source_recording", "invalid_duration", "line 2", "8", "duration")}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bp_artist_track__csv": None}, r"no bp_artist_track\.csv"),
        ({"bp_track__csv": "id,mix\n1,x\n"}, r"bp_track\.csv: no column title among id, mix"),
        ({"bp_track_2__csv": "track_id,title\n1,x\n"}, r"a second file of table bp_track"),
        ({"bp_artist__csv": ""}, r"bp_artist\.csv: the file is empty"),
    ],
)
def test_an_incomplete_csv_set_is_an_error(stage: Callable[..., Tables], changes: dict[str, str | None], message: str) -> None:
    files = {name: content for name, content in (CSV_SET | changes).items() if content is not None}
    with pytest.raises(DumpError, match=message):
        stage(**files)


def test_the_same_dump_gives_the_same_tables(tmp_path: Path) -> None:
    first, second = (staged(SAMPLES, tmp_path / name) for name in ("first", "second"))
    assert first["source_recording"].height > 10
    for file in (tmp_path / "first").rglob("*.parquet"):
        assert file.read_bytes() == (tmp_path / "second" / file.relative_to(tmp_path / "first")).read_bytes()
    assert second["intake"].equals(first["intake"])


def test_a_dump_of_nothing_known_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "readme.txt").write_text("hello")
    with pytest.raises(DumpError, match=r"dump: no JSON file and no bp_\*\.csv"):
        stage_dump(PLATFORM, tmp_path / "dump", tmp_path / "staging")


def test_numbers_that_data_frames_and_typists_made_of_codes_are_undone(stage: Callable[..., Tables]) -> None:
    tables = stage(
        tracks__ndjson=[track("7.0", release={"id": 90.0, "name": "R", "label": None}), track(" 8 ", isrc="GBCPZ2221494; GBCPZ2221495")],
        releases__ndjson=[release(90, upc="826194665494.0"), release("91.0", upc="8.26e11")],
    )
    recordings = tables["source_recording"]
    assert recordings["external_id"].to_list() == ["7", "8"]
    assert recordings["release_id"].to_list()[0] == "90"
    assert recordings["isrcs"].to_list()[1] == ["GBCPZ2221494", "GBCPZ2221495"]
    assert dict(tables["source_release"].select("release_id", "gtin").rows()) == {"90": "00826194665494", "91": None}
    assert rejects(tables) == {("source_release", "invalid_gtin", "line 2", "91", "upc")}
