"""Tests of streamsvc_a: each layout is read whole, and each kind of dirt ends in a reject or a clear error."""

from __future__ import annotations

import functools
import json
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import pipeline.dumps.platforms.streamsvc_a.relational_tables
import pipeline.engine.duckdb_session
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump

if TYPE_CHECKING:
    from collections.abc import Callable

PLATFORM = "streamsvc_a"
SAMPLES = Path(__file__).parents[3] / "sample_dumps" / PLATFORM
Row = dict[str, object]


def base62(number: int) -> str:
    return f"{number:022d}"


def track(row: int, **changes: object) -> Row:
    record = {
        "rowid": row,
        "id": base62(row),
        "fetched_at": 1751328000000,
        "name": f"Song {row} - Radio Edit",
        "album_rowid": 1,
        "track_number": row,
        "external_id_isrc": f"USRC2500000{row}",
        "popularity": 50,
        "available_markets_rowid": 1,
        "disc_number": 1,
        "duration_ms": 180_000 + row,
        "explicit": 0,
    }
    return record | changes


def album(row: int, **changes: object) -> Row:
    record = {
        "rowid": row,
        "id": base62(1000 + row),
        "name": f"Album {row}",
        "album_type": "album",
        "external_id_upc": "00602475093060",
        "label": "Made Up Records",
        "popularity": 40,
        "release_date": "2024-08-16",
        "release_date_precision": "day",
        "total_tracks": 12,
    }
    return record | changes


def artist(row: int, **changes: object) -> Row:
    return {"rowid": row, "id": base62(2000 + row), "name": f"Artist {row}", "followers_total": 5, "popularity": 30} | changes


def dirty_world() -> dict[str, list[Row]]:
    """Return six good tracks with one bad value each, four that are out, two albums and an artist of the same sort."""
    return {
        "tracks": [
            track(1),
            track(2, external_id_isrc="not an isrc", explicit=1),
            track(3, duration_ms=0, popularity=101),
            track(4, album_rowid=99),
            track(5, external_id_isrc=None, disc_number=None),
            track(6, name="  "),
            track(7, id="short"),
            track(8, id=""),
            track(9, id=base62(1)),
            track(10, external_id_isrc="gb-ayE-76-00024", album_rowid=2),
        ],
        "albums": [
            album(1),
            album(2, name="", external_id_upc=None),
            album(3, release_date="0000", release_date_precision="year", album_type="COMPILATION", external_id_upc="602475093060"),
            album(4, external_id_upc="00602475093061", release_date="1999", release_date_precision="year", album_type="single"),
        ],
        "artists": [artist(1), artist(2), artist(3, name=""), artist(4, name="Various Artists", popularity=None)],
        "track_artists": [
            {"track_rowid": t, "artist_rowid": a} for t, a in [(1, 2), (1, 1), (1, 2), (2, 1), (3, 3), (3, 2), (4, 77), (10, 1), (55, 1)]
        ],
        "artist_albums": [
            {"artist_rowid": 2, "album_rowid": 1, "is_appears_on": 1, "is_implicit_appears_on": 0, "index_in_album": None},
            {"artist_rowid": 1, "album_rowid": 1, "is_appears_on": 0, "is_implicit_appears_on": 0, "index_in_album": 0},
            {"artist_rowid": 4, "album_rowid": 4, "is_appears_on": 0, "is_implicit_appears_on": 0, "index_in_album": 0},
        ],
        "artist_genres": [
            {"artist_rowid": 1, "genre": "deep house"},
            {"artist_rowid": 2, "genre": "pop"},
            {"artist_rowid": 1, "genre": " "},
            {"artist_rowid": 1, "genre": "tech house"},
        ],
        "available_markets": [{"rowid": 1, "available_markets": ""}],
    }


def write_parquet(world: dict[str, list[Row]], dump: Path) -> Path:
    dump.mkdir(parents=True)
    for name, rows in world.items():
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(dump / f"{name}.parquet")
    return dump


def write_sqlite(world: dict[str, list[Row]], dump: Path) -> Path:
    dump.mkdir(parents=True)
    connection = sqlite3.connect(dump / "catalog.sqlite3")
    for name, rows in world.items():
        columns = [column for column in rows[0] if column != "rowid"]
        key = "rowid INTEGER PRIMARY KEY, " if "rowid" in rows[0] else ""
        connection.execute(f"CREATE TABLE {name} ({key}{', '.join(columns)})")
        names = list(rows[0])
        connection.executemany(
            f"INSERT INTO {name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", [[row[c] for c in names] for row in rows]
        )
    connection.commit()
    connection.close()
    return dump


def staged(dump: Path, folder: Path) -> dict[str, pl.DataFrame]:
    stage_dump(PLATFORM, dump, folder)
    return {table.name: read_table(table, folder / table.name) for table in TABLES.values() if (folder / table.name).is_dir()}


def reasons(tables: dict[str, pl.DataFrame], entity: str, severity: str) -> list[tuple[str, str]]:
    rows = tables["reject"].filter((pl.col("entity") == entity) & (pl.col("severity") == severity))
    return sorted(rows.select("reason", "place").rows())


@pytest.mark.parametrize("write", [write_parquet, write_sqlite])
def test_the_relational_layout_gives_the_same_rows_from_parquet_and_from_sqlite(
    write: Callable[[dict[str, list[Row]], Path], Path], tmp_path: Path
) -> None:
    tables = staged(write(dirty_world(), tmp_path / "dump"), tmp_path / "out")
    recordings = tables["source_recording"]
    assert recordings["external_id"].to_list() == [base62(n) for n in (1, 2, 3, 4, 5, 10)]
    assert recordings["isrcs"].to_list() == [["USRC25000001"], [], ["USRC25000003"], ["USRC25000004"], [], ["GBAYE7600024"]]
    assert recordings["duration_ms"].to_list() == [180001, 180002, None, 180004, 180005, 180010]
    assert recordings["popularity"].to_list() == [0.5, 0.5, None, 0.5, 0.5, 0.5]
    assert recordings["is_explicit"].to_list() == [None, True, None, None, None, None]
    assert recordings["release_id"].to_list() == [base62(1001), base62(1001), base62(1001), None, base62(1001), None]
    assert [[a["name"] for a in row] for row in recordings["artists"]] == [
        ["Artist 2", "Artist 1"],
        ["Artist 1"],
        ["Artist 2"],
        [],
        [],
        ["Artist 1"],
    ]
    assert recordings["artist_credit"].to_list() == ["Artist 2, Artist 1", "Artist 1", "Artist 2", None, None, "Artist 1"]
    assert reasons(tables, "source_recording", "row") == [
        ("duplicate_id", "rowid 9"),
        ("invalid_id", "rowid 7"),
        ("missing_id", "rowid 8"),
        ("missing_title", "rowid 6"),
    ]
    assert reasons(tables, "source_recording", "field") == [
        ("dangling_reference", "rowid 10"),
        ("dangling_reference", "rowid 3"),
        ("dangling_reference", "rowid 4"),
        ("dangling_reference", "rowid 4"),
        ("invalid_duration", "rowid 3"),
        ("invalid_isrc", "rowid 2"),
        ("invalid_number", "rowid 3"),
    ]
    assert tables["intake"].select("entity", "rows_read", "rows_staged", "rows_rejected").rows() == [
        ("source_artist", 4, 3, 1),
        ("source_recording", 10, 6, 4),
        ("source_release", 4, 3, 1),
    ]


@pytest.mark.parametrize("write", [write_parquet, write_sqlite])
def test_albums_artists_and_genres_of_the_relational_layout_are_staged(
    write: Callable[[dict[str, list[Row]], Path], Path], tmp_path: Path
) -> None:
    tables = staged(write(dirty_world(), tmp_path / "dump"), tmp_path / "out")
    releases = tables["source_release"]
    assert releases.select("release_id", "gtin", "release_date", "release_date_precision", "release_type", "is_compilation").rows() == [
        (base62(1001), "00602475093060", "2024-08-16", "day", "album", False),
        (base62(1003), "00602475093060", None, None, "compilation", True),
        (base62(1004), None, "1999-01-01", "year", "single", True),
    ]
    assert [[a["name"] for a in row] for row in releases["artists"]] == [["Artist 1"], [], ["Various Artists"]]
    assert reasons(tables, "source_release", "field") == [("invalid_date", "rowid 3"), ("invalid_gtin", "rowid 4")]
    assert reasons(tables, "source_release", "row") == [("missing_title", "rowid 2")]
    assert tables["source_artist"].select("name", "popularity", "is_placeholder").rows() == [
        ("Artist 1", 0.3, False),
        ("Artist 2", 0.3, False),
        ("Various Artists", None, True),
    ]
    assert tables["source_genre"].select("entity_kind", "entity_id", "position", "genre").rows() == [
        ("artist", base62(2001), 0, "deep house"),
        ("artist", base62(2001), 2, "tech house"),
        ("artist", base62(2002), 0, "pop"),
    ]
    assert tables["source_release_track"].height == 4


@pytest.mark.parametrize("write", [write_parquet, write_sqlite])
def test_rows_of_relations_that_lead_nowhere_are_rejected(write: Callable[[dict[str, list[Row]], Path], Path], tmp_path: Path) -> None:
    world = dirty_world() | {
        "tracks": [track(1)],
        "albums": [album(1)],
        "track_artists": [{"track_rowid": t, "artist_rowid": a} for t, a in [(1, 1), (None, 1), (None, 2), (1, None), (1, 77)]],
        "artist_albums": [{"artist_rowid": 1, "album_rowid": None}, {"artist_rowid": 66, "album_rowid": 1}],
        "artist_genres": [{"artist_rowid": 1, "genre": "pop"}, {"artist_rowid": None, "genre": "pop"}],
    }
    tables = staged(write(world, tmp_path / "dump"), tmp_path / "out")
    found = tables["reject"].filter(reason="dangling_reference").select("entity", "source_file", "place", "field", "value").rows()
    file = "catalog.sqlite3" if write is write_sqlite else "{}.parquet"
    assert set(found) == {
        ("source_genre", "artist_genres", "whole table", "artist_rowid", "1 rows without a key"),
        ("source_recording", file.format("tracks"), "rowid 1", "artists", "77"),
        ("source_recording", "track_artists", "whole table", "artist_rowid", "1 rows without a key"),
        ("source_recording", "track_artists", "whole table", "track_rowid", "2 rows without a key"),
        ("source_release", file.format("albums"), "rowid 1", "artists", "66"),
        ("source_release", "artist_albums", "whole table", "album_rowid", "1 rows without a key"),
    }
    assert tables["source_recording"]["artist_credit"].to_list() == ["Artist 1"]


def test_first_dump_whose_credits_lead_nowhere_is_staged_with_warnings(tmp_path: Path) -> None:
    world = dirty_world() | {"track_artists": [{"track_rowid": None, "artist_rowid": 1}] * 3}
    said = stage_dump(PLATFORM, write_parquet(world, tmp_path / "dump"), tmp_path / "out").warnings
    assert "table track_artists: 3 rows have no track_rowid, so they relate nothing" in said
    assert "no recording names an artist; were the credits delivered?" in said


def test_re_exports_with_other_names_and_text_values_are_read_alike(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    (dump / "tracks").mkdir(parents=True)
    tracks = pl.DataFrame([track(1), track(2), track(3)]).rename({"rowid": "row_id"}).cast(pl.String)
    tracks.slice(0, 2).write_parquet(dump / "tracks" / "part-0.parquet")
    tracks.slice(2).write_parquet(dump / "tracks" / "part-1.parquet")
    pl.DataFrame([album(1)]).rename({"rowid": "row_id"}).write_parquet(dump / "albums.parquet")
    pl.DataFrame([artist(1), artist(2)]).rename({"rowid": "row_id"}).write_parquet(dump / "artists-00001.parquet")
    credited = {"track_rowid": [3, 3, 1], "artist_rowid": [1, 2, 1], "index_in_track": [1, 0, 0]}
    pl.DataFrame(credited).write_parquet(dump / "track_artists.parquet")
    tables = staged(dump, tmp_path / "out")
    assert tables["source_recording"]["artist_credit"].to_list() == ["Artist 1", None, "Artist 2, Artist 1"]
    assert tables["source_recording"]["duration_ms"].to_list() == [180_001, 180_002, 180_003]
    assert tables["reject"].is_empty()


@pytest.mark.parametrize("name", ["tracks", "albums", "artists"])
def test_part_delivered_twice_gives_every_record_once_and_a_warning(name: str, tmp_path: Path) -> None:
    once = staged(write_parquet(dirty_world(), tmp_path / "once"), tmp_path / "a")
    dump = write_parquet(dirty_world(), tmp_path / "twice")
    shutil.copy(dump / f"{name}.parquet", dump / f"{name}-0001.parquet")
    twice = staged(dump, tmp_path / "b")
    for table in once.keys() - {"reject", "intake"}:
        assert twice[table].equals(once[table]), table
    rows = len(dirty_world()[name])
    entity = {"tracks": "source_recording", "albums": "source_release", "artists": "source_artist"}[name]
    severe = [tables["reject"].filter(entity=entity, severity="row").height for tables in (once, twice)]
    assert severe[1] == severe[0] + rows


def test_the_side_table_of_files_gives_versions_and_remixers(tmp_path: Path) -> None:
    world = dirty_world() | {
        "tracks": [track(1), track(2), track(3)],
        "track_artists": [{"track_rowid": t, "artist_rowid": a} for t in (1, 2, 3) for a in (1, 2)],
        "track_files": [
            {"track_id": base62(1), "artist_roles": '["main_artist", "remixer"]', "original_title": "Song", "version_title": "Two Remix"},
            {"track_id": base62(2), "artist_roles": json.dumps([{"artist_id": base62(2001), "role": "ARTIST_ROLE_FEATURED_ARTIST"}])},
            {"track_id": base62(3), "artist_roles": "no json, remixer", "original_title": "Song", "version_title": ""},
        ],
    }
    recordings = staged(write_parquet(world, tmp_path / "dump"), tmp_path / "out")["source_recording"]
    assert recordings.select("title", "version").rows() == [
        ("Song", "Two Remix"),
        ("Song 2 - Radio Edit", None),
        ("Song 3 - Radio Edit", None),
    ]
    assert [[a["role"] for a in row] for row in recordings["artists"]] == [
        ["primary", "remixer"],
        ["featured", "primary"],
        ["primary", "primary"],
    ]


def test_blocks_of_any_size_give_the_same_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = write_parquet(dirty_world(), tmp_path / "dump")
    whole = staged(dump, tmp_path / "whole")
    small = functools.partial(pipeline.engine.duckdb_session.stream, rows=2)
    monkeypatch.setattr(pipeline.dumps.platforms.streamsvc_a.relational_tables, "stream", small)
    by_twos = staged(dump, tmp_path / "by_twos")
    assert {name: frame.equals(by_twos[name]) for name, frame in whole.items() if name != "reject"} == dict.fromkeys(
        whole.keys() - {"reject"}, True
    )
    assert sorted(whole["reject"].rows(), key=str) == sorted(by_twos["reject"].rows(), key=str)


def test_bytes_in_sqlite_that_are_not_utf8_are_replaced_and_reported(tmp_path: Path) -> None:
    dump = write_sqlite(dirty_world() | {"tracks": [track(1), track(2)]}, tmp_path / "dump")
    connection = sqlite3.connect(dump / "catalog.sqlite3")
    connection.execute("UPDATE tracks SET name = CAST(x'41FF42' AS TEXT) WHERE rowid = 2")
    connection.commit()
    connection.close()
    tables = staged(dump, tmp_path / "out")
    assert tables["source_recording"]["title"].to_list() == ["Song 1 - Radio Edit", "A\ufffdB"]
    assert reasons(tables, "source_recording", "field") == [("invalid_utf8", "rowid 2")]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda dump: (dump / "track_artists.parquet").unlink(), "no table track_artists among albums"),
        (lambda dump: (dump / "tracks.parquet").write_bytes(b"PAR1 and no more"), r"table tracks \(tracks\.parquet\) cannot be read"),
        (lambda dump: pl.DataFrame({"rowid": [1]}).write_parquet(dump / "albums.parquet"), "albums.parquet: no column id"),
    ],
)
def test_a_dump_that_is_not_whole_is_an_error_and_leaves_no_tables(spoil: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    dump = write_parquet(dirty_world(), tmp_path / "dump")
    spoil(dump)
    with pytest.raises(DumpError, match=message):
        staged(dump, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]


@pytest.mark.parametrize("data", [b"SQLite format 3\x00" + b"\x00" * 2000, b"no database", b""])
def test_file_of_another_format_than_a_database_is_an_error(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "catalog.sqlite3").write_bytes(data)
    with pytest.raises(DumpError, match=r"catalog\.sqlite3"):
        staged(tmp_path / "dump", tmp_path / "out")


def test_the_sample_answers_hold_76_tracks(tmp_path: Path) -> None:
    tables = staged(SAMPLES / "answers", tmp_path / "out")
    assert {name: frame.height for name, frame in tables.items() if frame.height and name != "intake"} == {
        "source_recording": 76,
        "source_release": 4,
        "source_release_track": 76,
        "source_artist": 45,
        "source_redirect": 50,
        "reject": 7,
    }
    known = tables["source_recording"].row(by_predicate=pl.col("external_id") == "2plbrEY59IikOBgBGLjaoe", named=True)
    assert (known["isrcs"], known["duration_ms"], known["artist_credit"]) == (["USUM72409273"], 251_667, "Lady Gaga, Bruno Mars")
    assert tables["source_release"]["gtin"].to_list() == ["00602475093060", "00602455070951", "00857970002363", "05057728789361"]


def test_web_objects_with_null_or_absent_fields_are_staged(tmp_path: Path) -> None:
    simplified = {"id": base62(900), "name": "Single", "album_type": "SINGLE", "artists": [{"id": base62(2001), "name": "One"}]}
    lines = [
        {"id": base62(1), "name": "Bare", "type": "track"},
        {"id": base62(2), "name": "Full", "type": "track", "album": simplified, "explicit": True, "popularity": 100, "duration_ms": 1.5e5}
        | {"artists": [{"id": base62(2001), "name": "One"}, {"id": None, "name": "Two"}], "external_ids": {"isrc": "US-RC1-76-07839"}},
        {"id": base62(3), "name": "Relinked", "type": "track", "linked_from": {"id": base62(30)}},
        {"id": base62(4), "name": "Relinked to one that is there", "type": "track", "linked_from": {"id": base62(1)}},
        {"id": None, "name": "Mine", "type": "track", "is_local": True},
        {"id": base62(1), "name": "Bare again", "type": "track", "external_ids": {"isrc": "USRC17607840"}},
        {"id": base62(5), "name": "Talk", "type": "episode"},
        {"id": base62(6), "name": "What is it"},
        {"id": base62(7), "name": "On a nameless album", "duration_ms": "long", "album": {"id": base62(901), "name": ""}},
        {"id": base62(900), "name": "Single", "type": "album", "label": "Imprint", "release_date": "0000", "tracks": None}
        | {"external_ids": {"upc": "602475093060"}, "total_tracks": 1},
        {"id": base62(2001), "name": "One", "type": "artist", "genres": ["french house", "disco"], "popularity": 80},
        [1, 2],
    ]
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "objects.ndjson").write_text("\n".join(json.dumps(line) for line in lines) + '\n{"id": "cut')
    tables = staged(tmp_path / "dump", tmp_path / "out")
    recordings = tables["source_recording"]
    assert recordings["external_id"].to_list() == [base62(n) for n in (2, 3, 4, 1, 7)]
    full = recordings.row(0, named=True)
    assert (full["isrcs"], full["duration_ms"], full["popularity"], full["is_explicit"]) == (["USRC17607839"], 150_000, 1.0, True)
    assert [(a["artist_id"], a["name"]) for a in full["artists"]] == [(base62(2001), "One"), (None, "Two")]
    assert recordings["release_id"].to_list() == [base62(900), None, None, None, None]
    assert tables["source_release"].select("release_id", "label_name", "gtin", "release_type", "release_date").rows() == [
        (base62(900), "Imprint", "00602475093060", None, None)
    ]
    assert tables["source_artist"].select("name", "popularity").rows() == [("One", 0.8)]
    assert tables["source_genre"]["genre"].to_list() == ["french house", "disco"]
    assert tables["source_redirect"].select("old_id", "new_id").rows() == [(base62(30), base62(3))]
    assert sorted(tables["reject"].filter(entity="source_recording").select("severity", "reason").rows()) == [
        ("field", "dangling_reference"),
        ("field", "invalid_duration"),
        ("row", "broken_record"),
        ("row", "duplicate_id"),
        ("row", "local_file"),
        ("row", "not_audio"),
        ("row", "truncated_file"),
        ("row", "unknown_kind"),
    ]
    assert tables["intake"].select("entity", "rows_read", "rows_staged", "rows_rejected").rows() == [("source_recording", 11, 5, 6)]


def test_web_objects_without_an_id_are_rejected_and_not_taken_for_answers(tmp_path: Path) -> None:
    people = [{"id": base62(2001), "name": "One"}]
    inside = {"items": [{"id": base62(2), "name": "Inside", "duration_ms": 1000, "artists": people}]}
    lines = [
        {"id": base62(1), "name": "Whole", "type": "track"},
        {"name": "Track without an id", "duration_ms": 1000, "artists": people},
        {"name": "Album without an id", "album_type": "album", "artists": people, "tracks": inside},
    ]
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "objects.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    tables = staged(tmp_path / "dump", tmp_path / "out")
    assert tables["source_recording"]["title"].to_list() == ["Whole", "Inside"]
    assert reasons(tables, "source_recording", "row") == [("missing_id", "line 2")]
    assert reasons(tables, "source_release", "row") == [("missing_id", "line 3")]


def test_a_blank_id_of_an_artist_or_album_is_no_id(tmp_path: Path) -> None:
    people = [{"id": "", "name": "One"}, {"id": " ", "name": "Two"}, {"id": base62(2003), "name": "Three"}]
    lines = [
        {"id": base62(1), "name": "Blank", "type": "track", "artists": people, "album": {"id": "", "name": "Album"}},
        {"id": base62(2), "name": "Blanks", "type": "track", "artists": people, "album": {"id": "  ", "name": "Album"}},
    ]
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "objects.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    tables = staged(tmp_path / "dump", tmp_path / "out")
    credits_ = [[(a["artist_id"], a["name"]) for a in row] for row in tables["source_recording"]["artists"]]
    assert credits_ == [[(None, "One"), (None, "Two"), (base62(2003), "Three")]] * 2
    assert tables["source_recording"]["release_id"].to_list() == [None, None]
    assert tables["source_release_track"].is_empty()
