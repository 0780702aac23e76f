from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from catalog_store.analyst_file import is_in_file
from catalog_store.analyst_views import VIEWS
from catalog_store.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "analysts.md").read_text()
QUERIES = re.findall(r"```sql (duckdb|parquet)\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture(scope="module")
def file(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield the file alone, moved to where nothing else of the snapshot is."""
    moved = shutil.copy(published / "current" / "catalog.duckdb", tmp_path_factory.mktemp("elsewhere") / "mine.duckdb")
    with duckdb.connect(moved, read_only=True) as connection:
        yield connection


def rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[object, ...]]:
    return connection.execute(sql).fetchall()


def test_the_page_has_ten_queries() -> None:
    assert len(QUERIES) == 10


@pytest.mark.parametrize(("source", "sql"), QUERIES, ids=[f"query {number}" for number in range(1, len(QUERIES) + 1)])
def test_each_query_of_the_page_runs_and_finds_something(
    source: str, sql: str, published: Path, file: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "duckdb":
        assert rows(file, sql)
    else:
        monkeypatch.chdir(published / "current")
        with duckdb.connect() as connection:
            assert rows(connection, sql)


def test_the_file_holds_the_published_tables_with_comments(file: duckdb.DuckDBPyConnection, tables: dict[str, Path]) -> None:
    held = dict(file.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall())
    assert held == {name: TABLES[name].description for name in tables if is_in_file(name)}
    uncommented = rows(file, "SELECT table_name, column_name FROM duckdb_columns() WHERE comment IS NULL AND NOT internal")
    assert uncommented == []


def test_every_row_is_in_the_file(file: duckdb.DuckDBPyConnection, tables: dict[str, Path]) -> None:
    for name, folder in tables.items():
        if is_in_file(name):
            difference = f"(FROM '{folder}/*.parquet' EXCEPT FROM \"{name}\") UNION ALL (FROM \"{name}\" EXCEPT FROM '{folder}/*.parquet')"
            assert rows(file, difference) == [], name


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_is_described_answers_and_stands_in_the_docs(view: object, file: duckdb.DuckDBPyConnection) -> None:
    assert isinstance(view, tuple)
    name, description, columns, _, _ = view
    assert rows(file, f"SELECT comment FROM duckdb_views() WHERE view_name = '{name}'") == [(description,)]
    assert rows(file, f"SELECT column_name, comment FROM duckdb_columns() WHERE table_name = '{name}' ORDER BY column_index") == [
        *columns.items()
    ]
    assert rows(file, f"FROM {name}")
    assert f"| `{name}` |" in PAGE


def test_views_return_correct_counts(file: duckdb.DuckDBPyConnection) -> None:
    assert rows(file, "SELECT count(*) FROM track_overview") == [(120,)]
    assert rows(file, "SELECT source, recordings FROM platform_coverage WHERE source = 'streamsvc_a'") == [("streamsvc_a", 111)]
    assert rows(file, "SELECT sum(recordings) FROM genre_count") == rows(file, "SELECT count(*) FROM recording_genre")
    assert rows(file, "SELECT url FROM recording_link WHERE recording_id = 1 AND source = 'store_a'") == [
        ("https://www.beatport.com/track/slug-1/5000001",)
    ]
    assert rows(file, "SELECT list(rank ORDER BY rank) FROM work_performance WHERE iswc = 'T0345246801'") == [([1, 2, 3],)]
    assert rows(file, "SELECT isrc, kept_by, lost_by FROM isrc_dispute") == [("GBAYE0000100", 1, 2)]
