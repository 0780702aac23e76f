from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from catalog_store.analyst_file import is_in_file
from catalog_store.analyst_views import VIEWS
from catalog_store.platforms import INPUTS, PLATFORMS
from catalog_store.publisher import publish
from catalog_store.snapshot import read_manifest
from catalog_store.tables import TABLES
from catalog_store.tables.references import list_references

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "analysts.md").read_text()


@pytest.fixture(scope="module")
def file(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield the file of a snapshot that is elsewhere than where it was published."""
    moved = shutil.copytree(published / "snapshots" / "first", tmp_path_factory.mktemp("elsewhere") / "mine")
    with duckdb.connect(moved / "catalog.duckdb", read_only=True) as connection:
        yield connection


def rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[object, ...]]:
    return connection.execute(sql).fetchall()


def test_the_file_holds_the_published_tables_with_comments(file: duckdb.DuckDBPyConnection, tables: dict[str, Path]) -> None:
    held = dict(file.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall())
    assert held == {
        **{name: TABLES[name].description for name in tables if is_in_file(name)},
        **{view.name: view.description for view in VIEWS},
    }
    uncommented = rows(file, "SELECT table_name, column_name FROM duckdb_columns() WHERE comment IS NULL AND NOT internal")
    assert uncommented == []


def test_the_file_states_every_key(file: duckdb.DuckDBPyConnection, tables: dict[str, Path]) -> None:
    primary = dict(file.execute("SELECT table_name, column_names FROM table_key WHERE kind = 'primary'").fetchall())
    assert primary == {name: [*TABLES[name].primary_key] for name in tables if is_in_file(name) and TABLES[name].primary_key}
    foreign = set(
        rows(file, "SELECT table_name, column_names[1], other_table, other_column, condition FROM table_key WHERE kind = 'foreign'")
    )
    assert foreign >= {
        ("recording_artist", "recording_id", "recording", "recording_id", None),
        ("track", "releases.release_id", "release", "release_id", None),
        ("redirect", "new_id", "artist", "artist_id", "kind = 'artist'"),
    }
    assert {(name, other) for name, _, other, _, _ in foreign} == {
        (found.table, found.other) for found in list_references(filter(is_in_file, tables))
    }


def test_every_row_is_in_the_file(file: duckdb.DuckDBPyConnection, tables: dict[str, Path]) -> None:
    for name, folder in tables.items():
        if is_in_file(name):
            difference = f"(FROM '{folder}/*.parquet' EXCEPT FROM \"{name}\") UNION ALL (FROM \"{name}\" EXCEPT FROM '{folder}/*.parquet')"
            assert rows(file, difference) == [], name


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_is_described_answers_and_is_in_the_docs(view: object, file: duckdb.DuckDBPyConnection) -> None:
    assert isinstance(view, tuple)
    name, description, columns, _, _ = view
    assert rows(file, f"SELECT comment FROM duckdb_views() WHERE view_name = '{name}'") == [(description,)]
    assert rows(file, f"SELECT column_name, comment FROM duckdb_columns() WHERE table_name = '{name}' ORDER BY column_index") == [
        *columns.items()
    ]
    assert rows(file, f"FROM {name}")
    assert f"| `{name}` |" in PAGE


def test_every_source_of_values_has_licence_and_attribution_in_the_file_and_the_manifest(
    file: duckdb.DuckDBPyConnection, published: Path
) -> None:
    stated = {str(key): (licence, words) for key, licence, words in rows(file, "SELECT platform, licence, attribution FROM platform")}
    assert stated.keys() == {*PLATFORMS, *INPUTS}
    assert stated["fingerprints"] == ("CC BY-SA 3.0", "Contains fingerprints of acoustid.org, CC BY-SA 3.0.")
    assert stated["audio"] == ("the operator's own files", None)
    assert "musicbrainz.org" in str(stated["catalog_b"][1])
    manifest = read_manifest(published / "snapshots" / "first")
    told = {one.key: (one.licence, one.attribution or None) for one in (*manifest.platforms, *manifest.input_rights)}
    assert told == stated


def test_views_return_correct_counts(file: duckdb.DuckDBPyConnection) -> None:
    assert rows(file, "SELECT count(*) FROM track_overview") == [(120,)]
    assert rows(file, "SELECT source, recordings FROM platform_coverage WHERE source = 'streamsvc_a'") == [("streamsvc_a", 111)]
    assert rows(file, "SELECT sum(recordings) FROM genre_count") == rows(file, "SELECT count(*) FROM recording_genre")
    assert rows(file, "SELECT url FROM recording_link WHERE recording_id = 1 AND source = 'store_a'") == [
        ("https://www.beatport.com/track/slug-1/5000001",)
    ]
    assert rows(file, "SELECT list(rank ORDER BY rank) FROM work_performance WHERE iswc = 'T0345246801'") == [([1, 2, 3],)]
    assert rows(file, "SELECT isrc, kept_by, lost_by FROM isrc_dispute") == [("GBAYE0000100", 1, 2)]


def test_the_file_answers_from_any_folder_through_any_path(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = shutil.copytree(published / "snapshots" / "first", tmp_path / "it's mine")
    (tmp_path / "link").symlink_to(moved)
    for folder, path in ((tmp_path, "it's mine/catalog.duckdb"), (moved, "catalog.duckdb"), (tmp_path / "link", "../link/catalog.duckdb")):
        monkeypatch.chdir(folder)
        with duckdb.connect(path, read_only=True) as connection:
            assert rows(connection, "SELECT count(*) FROM recording") == [(120,)]
            [(found,)] = rows(connection, "SELECT catalog_folder()")
            assert Path(str(found)).samefile(moved)


def test_copies_in_folders_with_characters_of_patterns_answer_with_their_own_rows(published: Path, tmp_path: Path) -> None:
    names = ("a?b", "a*b", "a[xb]", "a[b", "a.tmp?b?", "axb", "ab")
    moved = [shutil.copytree(published / "snapshots" / "first", tmp_path / name) for name in names]
    for folder in moved:
        with duckdb.connect(folder / "catalog.duckdb", read_only=True) as connection:
            assert rows(connection, "SELECT count(*) FROM recording") == [(120,)], folder
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{folder}/catalog.duckdb' AS music (READ_ONLY)")
            connection.execute(f"SET VARIABLE catalog_folder = '{folder}'")
            assert rows(connection, "SELECT count(*) FROM music.recording") == [(120,)], folder


def test_the_attached_file_answers_from_where_it_was_published(published: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{published}/current/catalog.duckdb' AS music (READ_ONLY)")
        assert rows(connection, "SELECT count(*) FROM music.track_overview") == [(120,)]


def test_the_attached_file_of_a_moved_snapshot_answers_from_the_folder_that_the_variable_names(published: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(published / "snapshots" / "first", tmp_path / "moved")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{moved}/catalog.duckdb' AS music (READ_ONLY)")
        connection.execute(f"SET VARIABLE catalog_folder = '{moved}'")
        assert rows(connection, "SELECT count(*) FROM music.recording") == [(120,)]
        (moved / "tables").rename(moved / "gone")
        with pytest.raises(duckdb.IOException, match=re.escape(f"{moved}/tables/recording/part-00000-")):
            rows(connection, "SELECT count(*) FROM music.recording")


def test_the_file_never_reads_the_rows_of_another_snapshot(tables: dict[str, Path], tmp_path: Path) -> None:
    publish(tables, tmp_path, snapshot_id="one", next_ids={})
    fewer = tmp_path / "fewer"
    fewer.mkdir()
    pl.read_parquet(tables["work_conflict"] / "*.parquet").clear().write_parquet(fewer / "part-00000.parquet")
    publish({**tables, "work_conflict": fewer}, tmp_path, snapshot_id="two", next_ids={})
    with duckdb.connect(tmp_path / "current" / "catalog.duckdb", read_only=True) as connection:
        connection.execute(f"ATTACH '{tmp_path}/snapshots/one/catalog.duckdb' AS one (READ_ONLY)")
        assert rows(connection, "SELECT count(*) FROM one.recording") == rows(connection, "SELECT count(*) FROM recording")
        with pytest.raises(duckdb.IOException, match="part-00000-"):
            rows(connection, "FROM one.work_conflict")
