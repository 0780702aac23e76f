"""streamsvc_a: each layout is read whole, and each kind of dirt ends as a reject or a clear error."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.adapters import stage_dump

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLATFORM = "streamsvc_a"
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
    """Six good tracks with one bad value each, four that are out, two albums and an artist of the same sort."""
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
def test_albums_artists_and_genres_of_the_relational_layout(write: Callable[[dict[str, list[Row]], Path], Path], tmp_path: Path) -> None:
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
