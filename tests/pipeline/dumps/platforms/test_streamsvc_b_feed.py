"""Tests of the media feed of streamsvc_b: documented and tolerated shapes give equal rows; dirt ends in a reject or a clear error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Row = dict[str, object]
LOCALISED = pa.map_(pa.string(), pa.string())
PERSON = pa.struct([("id", pa.string()), ("name", pa.string())])
ROLE = pa.struct([("artistId", pa.string()), ("artistName", pa.string()), ("roleName", pa.string())])
GENRE = pa.struct([("name", pa.string()), ("path", pa.list_(pa.string()))])
SONG = {
    "id": pa.string(),
    "nameDefault": pa.string(),
    "titleVersion": LOCALISED,
    "primaryArtists": pa.list_(PERSON),
    "featuredArtists": pa.list_(PERSON),
    "artistRoles": pa.list_(ROLE),
    "album": PERSON,
    "genres": pa.list_(GENRE),
    "durationInMillis": pa.float64(),
    "isrc": pa.string(),
    "releaseDate": LOCALISED,
    "trackNumber": pa.int64(),
    "volumeNumber": pa.int64(),
    "parentalAdvisoryType": pa.string(),
    "contentTraits": pa.list_(pa.string()),
    "copyrightPline": pa.string(),
}
ALBUM = {
    "id": pa.string(),
    "nameDefault": pa.string(),
    "primaryArtists": pa.list_(PERSON),
    "recordLabels": pa.list_(pa.struct([("name", pa.string())])),
    "upc": pa.string(),
    "releaseDate": LOCALISED,
    "albumType": pa.string(),
    "contentTraits": pa.list_(pa.string()),
    "genres": pa.list_(GENRE),
    "songs": pa.list_(pa.struct([("id", pa.string())])),
}
ARTIST = {"id": pa.string(), "nameDefault": pa.string(), "artistType": pa.string()}
CHART = {"storefront": pa.string(), "rankings": pa.list_(pa.string())}
HOUSE = {"name": "House", "path": ["Music", "Dance", "House"]}
ROOT = {"name": "Music", "path": ["Music"]}
POP = {"name": "Pop", "path": ["Music", "Pop"]}


def song(number: int, **changes: object) -> Row:
    record: Row = {
        "id": str(1_000_000_000 + number),
        "nameDefault": f"Song {number}",
        "titleVersion": [],
        "primaryArtists": [{"id": "1", "name": "Earth, Wind & Fire"}],
        "featuredArtists": [],
        "artistRoles": [],
        "album": {"id": "500", "name": "Album"},
        "genres": [ROOT, HOUSE],
        "durationInMillis": 200_000.0,
        "isrc": f"USRC1760783{number}",
        "releaseDate": [("default", "2024-09-26")],
        "trackNumber": number,
        "volumeNumber": 1,
        "parentalAdvisoryType": "none",
        "contentTraits": [],
        "copyrightPline": "2024 Somebody",
    }
    return record | changes


def album(identifier: str, **changes: object) -> Row:
    record: Row = {
        "id": identifier,
        "nameDefault": "Album",
        "primaryArtists": [{"id": "1", "name": "Earth, Wind & Fire"}],
        "recordLabels": [{"name": "Imprint"}, {"name": "Other"}],
        "upc": "00602475093060",
        "releaseDate": [("default", "2024-09-26")],
        "albumType": "standard",
        "contentTraits": [],
        "genres": [POP, ROOT],
        "songs": [{"id": "1000000001"}, {"id": "1000000002"}],
    }
    return record | changes


SONGS = [
    song(
        1,
        titleVersion=[("en-US", "Club"), ("default", "Club Mix")],
        primaryArtists=[{"id": "1", "name": "A"}, {"id": "2", "name": "B"}, {"id": "3", "name": "C"}],
        featuredArtists=[{"id": "1", "name": "A"}, {"id": "4", "name": "D"}],
        artistRoles=[
            {"artistId": "2", "artistName": "B", "roleName": "Remixer"},
            {"artistId": "1", "artistName": "A", "roleName": "Composer"},
        ],
        contentTraits=["remix"],
        parentalAdvisoryType="explicit",
    ),
    song(2, isrc="bad", durationInMillis=-1.0, releaseDate=[("default", "2024-13-40")], parentalAdvisoryType="cleaned"),
    song(3, isrc=None, durationInMillis=None, releaseDate=[], album=None, genres=[], primaryArtists=None, parentalAdvisoryType=None),
    song(4, nameDefault=" "),
    song(5, id=None),
    song(6, id="abc"),
    song(7, id="1000000001"),
    song(8, trackNumber=99_999),
]
ALBUMS = [
    album("500", nameDefault="Nightmare - EP"),
    album("501", upc="00602475093061", albumType="deluxe compilation", contentTraits=["compilation"]),
    album("502", nameDefault=""),
    album("503", nameDefault="One - Single", primaryArtists=[{"id": "9", "name": "Various Artists"}], recordLabels=[], songs=[]),
]
ARTISTS: list[Row] = [
    {"id": "1", "nameDefault": "Earth, Wind & Fire", "artistType": "artist"},
    {"id": "9", "nameDefault": "Various Artists", "artistType": "artist"},
    {"id": "10", "nameDefault": "Somebody Filming", "artistType": "movie artist"},
]
CHARTS: list[Row] = [
    {"storefront": "us", "rankings": ["1000000002", "1000000001"]},
    {"storefront": "de", "rankings": ["1", "2", "3", "1000000001"]},
]


def write(path: Path, schema: dict[str, pa.DataType], rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=pa.schema(list(schema.items()))), path, compression="gzip")


def hive_tree(dump: Path, songs: Sequence[Row] = SONGS) -> Path:
    tail = "version=1/date=2024-03-28/time=16-01"
    write(dump / "Song" / tail / "part-00000-aa-c000.gz.parquet", SONG, songs[:4])
    write(dump / "Song" / tail / "part-00001-aa-c000.gz.parquet", SONG, songs[4:])
    write(dump / "Album" / tail / "part-00000-bb-c000.gz.parquet", ALBUM, ALBUMS)
    write(dump / "Artist" / tail / "part-00000-cc-c000.gz.parquet", ARTIST, ARTISTS)
    write(dump / "PopularityTopChartSongs" / tail / "part-00000-dd-c000.gz.parquet", CHART, CHARTS)
    return dump


def flat_files_of_other_shapes(dump: Path) -> Path:
    """Write the same records in other shapes: files named by feed, albums as lists, localised texts as structs, other letter cases."""
    schema = SONG | {"album": pa.list_(PERSON), "releaseDate": pa.struct([("default", pa.string())])}
    schema["copyrightPLine"] = schema.pop("copyrightPline")
    rows = []
    for record in SONGS:
        date = dict(record["releaseDate"])  # type: ignore[call-overload]
        changed = record | {"album": [record["album"]] if record["album"] else [], "releaseDate": date}
        changed["copyrightPLine"] = changed.pop("copyrightPline")
        rows.append(changed)
    write(dump / "song_2024-03-28T16-01.parquet", schema, rows)
    write(dump / "album_2024-03-28T16-01.parquet", ALBUM, ALBUMS)
    write(dump / "artist_2024-03-28T16-01.parquet", ARTIST, ARTISTS)
    write(dump / "popularityTopChartSongs_2024-03-28T16-01.parquet", CHART, CHARTS)
    return dump


def staged(dump: Path, folder: Path) -> dict[str, pl.DataFrame]:
    stage_dump("streamsvc_b", dump, folder)
    return {table.name: read_table(table, folder / table.name) for table in TABLES.values() if (folder / table.name).is_dir()}


def reasons(tables: dict[str, pl.DataFrame], entity: str, severity: str) -> list[tuple[str, str | None]]:
    rows = tables["reject"].filter((pl.col("entity") == entity) & (pl.col("severity") == severity))
    return sorted(rows.select("reason", pl.coalesce("record_id", pl.lit("-"))).rows())


@pytest.mark.parametrize("tree", [hive_tree, flat_files_of_other_shapes])
def test_songs_are_read_from_either_shape(tree: object, tmp_path: Path) -> None:
    assert callable(tree)
    tables = staged(tree(tmp_path / "dump"), tmp_path / "out")
    recordings = tables["source_recording"]
    assert recordings["external_id"].to_list() == ["1000000001", "1000000002", "1000000003", "1000000008"]
    first = recordings.row(0, named=True)
    assert [(a["artist_id"], a["name"], a["role"]) for a in first["artists"]] == [
        ("1", "A", "primary"),
        ("2", "B", "primary"),
        ("3", "C", "primary"),
        ("4", "D", "featured"),
        ("2", "B", "remixer"),
    ]
    assert (first["artist_credit"], first["version"], first["is_explicit"], first["traits"]) == ("A, B, C & D", "Club Mix", True, ["remix"])
    assert recordings["isrcs"].to_list() == [["USRC17607831"], [], [], ["USRC17607838"]]
    assert recordings["duration_ms"].to_list() == [200_000, None, None, 200_000]
    assert recordings["release_date"].to_list() == ["2024-09-26", "2024-01-01", None, "2024-09-26"]
    assert recordings["release_date_precision"].to_list() == ["day", "year", None, "day"]
    assert recordings["release_id"].to_list() == ["500", "500", None, "500"]
    assert recordings["is_explicit"].to_list() == [True, False, None, False]
    assert recordings["traits"].to_list() == [["remix"], ["clean"], [], []]
    assert recordings["popularity"].to_list() == [0.75, 1.0, None, None]
    assert recordings["artists"].list.len().to_list() == [5, 1, 0, 1]
    assert recordings["artist_credit"].to_list()[1] == "Earth, Wind & Fire"
    assert reasons(tables, "source_recording", "row") == [
        ("duplicate_id", "1000000001"),
        ("invalid_id", "abc"),
        ("missing_id", "-"),
        ("missing_title", "1000000004"),
    ]
    assert reasons(tables, "source_recording", "field") == [("invalid_duration", "1000000002"), ("invalid_isrc", "1000000002")]
    assert reasons(tables, "source_release_track", "field") == [("invalid_number", "1000000008")]
    assert tables["source_release_track"].select("release_id", "external_id", "disc_number", "track_number").rows() == [
        ("500", "1000000001", 1, 1),
        ("500", "1000000002", 1, 2),
        ("500", "1000000008", 1, None),
    ]


def test_albums_artists_and_genres_of_the_feed_are_staged(tmp_path: Path) -> None:
    tables = staged(hive_tree(tmp_path / "dump"), tmp_path / "out")
    releases = tables["source_release"]
    assert releases.select("release_id", "title", "label_name", "gtin", "release_type", "is_compilation", "track_count").rows() == [
        ("500", "Nightmare", "Imprint", "00602475093060", "ep", False, 2),
        ("501", "Album", "Imprint", None, "compilation", True, 2),
        ("503", "One", None, "00602475093060", "single", True, None),
    ]
    assert reasons(tables, "source_release", "field") == [("invalid_gtin", "501")]
    assert tables["source_artist"].select("artist_id", "is_placeholder").rows() == [("1", False), ("9", True)]
    assert reasons(tables, "source_artist", "row") == [("not_audio", "10")]
    genres = tables["source_genre"].select("entity_kind", "entity_id", "position", "genre", "parent")
    assert genres.filter(entity_kind="recording").rows()[0] == ("recording", "1000000001", 0, "House", "Dance")
    assert genres.filter(entity_kind="recording").height == 3
    assert genres.filter(entity_kind="release").rows() == [
        ("release", "500", 0, "Pop", None),
        ("release", "501", 0, "Pop", None),
        ("release", "503", 0, "Pop", None),
    ]
    assert tables["intake"].select("entity", "rows_read", "rows_staged", "rows_rejected").rows() == [
        ("source_artist", 3, 2, 1),
        ("source_recording", 8, 4, 4),
        ("source_release", 4, 3, 1),
    ]


def test_a_cut_off_part_is_an_error_that_names_the_file_and_leaves_no_tables(tmp_path: Path) -> None:
    dump = hive_tree(tmp_path / "dump")
    part = next(dump.glob("Song/**/part-00001*"))
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.raises(DumpError, match=r"part-00001|cannot be read together"):
        staged(dump, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_feed_without_songs_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "dump" / "album_2024.parquet", ALBUM, ALBUMS)
    with pytest.raises(DumpError, match="no song feed"):
        staged(tmp_path / "dump", tmp_path / "out")


@pytest.mark.parametrize("name", ["id", "nameDefault", "NAMEDEFAULT", "primaryArtists", "rankings"])
def test_of_columns_with_equal_names_the_first_counts(name: str, tmp_path: Path) -> None:
    once = staged(hive_tree(tmp_path / "once"), tmp_path / "a")
    for path in hive_tree(tmp_path / "twice").rglob("part-*.parquet"):
        table = pq.read_table(path, partitioning=None)
        if name.lower() in map(str.lower, table.column_names):
            pq.write_table(table.append_column(name, pa.nulls(len(table), pa.string())), path)
    twice = staged(tmp_path / "twice", tmp_path / "b")
    assert {table for table in once if not twice[table].equals(once[table])} == set()


def test_charts_are_read_by_a_name_in_any_case_and_refused_without_lists(tmp_path: Path) -> None:
    dump = hive_tree(tmp_path / "dump")
    chart = next(dump.glob("PopularityTopChartSongs/**/*.parquet"))
    renamed: list[Row] = [{"Rankings": row["rankings"]} for row in CHARTS]
    write(chart, {"Rankings": pa.list_(pa.string())}, renamed)
    assert staged(dump, tmp_path / "out")["source_recording"].filter(external_id="1000000001")["popularity"].to_list() == [0.75]
    write(chart, {"rankings": pa.string()}, [{"rankings": "1000000001"}])
    with pytest.raises(DumpError, match=r"part-00000-dd-c000.gz.parquet: wrong_type: column rankings holds String, not lists"):
        staged(dump, tmp_path / "out")
