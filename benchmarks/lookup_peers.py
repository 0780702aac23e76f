"""The peers of benchmarks/lookups.py: the published DuckDB file, and PostgreSQL with tables designed for these questions.

A peer answers encoded JSON, as ours does. Questions and timing belong in lookups.py.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import msgspec
import polars as pl
import psycopg

from catalog_store.queries.tracks import read_track_bodies
from catalog_store.serving.store import ServingStore
from catalog_store.tables.files import render_sql_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date
    from pathlib import Path

    from catalog_store.queries.browse import BrowseFilters

PAGE = 20
_BLOCK = 50_000
_STAMP = """CASE WHEN release_date IS NULL THEN 0 ELSE strftime(release_date, '%Y%m%d')::INT * 4
    + CASE release_date_precision WHEN 'day' THEN 3 WHEN 'month' THEN 2 ELSE 1 END END"""


class Peer(Protocol):
    """The questions that each peer answers."""

    def find_by_isrc(self, isrc: str) -> bytes:
        """Return the encoded track."""

    def find_by_isrcs(self, isrcs: list[str]) -> list[bytes]:
        """Return encoded tracks."""

    def browse(self, filters: BrowseFilters) -> list[bytes]:
        """Return the first page, encoded."""

    def list_new_releases(self, today: date) -> list[bytes]:
        """Return the first page, encoded."""


def write_duckdb_tables(tables: Mapping[str, Path], path: Path) -> None:
    """Write the new DuckDB file `path` with the tables of a catalog, stored by DuckDB itself: its fastest form."""
    with closing(duckdb.connect(path, config={"memory_limit": "2GB"})) as file:
        for name, folder in tables.items():
            file.execute(f'CREATE TABLE "{name}" AS FROM {render_sql_source(folder)}')


class DuckdbPeer:
    """A file of `write_duckdb_tables`, read-only, on one thread. Genres one level deep, ties by id: slightly less than ours answers."""

    def __init__(self, path: Path) -> None:
        """Open `path`."""
        self._file = duckdb.connect(path, read_only=True, config={"threads": 1})

    def find_by_isrc(self, isrc: str) -> bytes:
        """Return the encoded track."""
        return self._fetch_tracks("SELECT recording_id FROM recording_isrc WHERE isrc = ?", [isrc])[0]

    def find_by_isrcs(self, isrcs: list[str]) -> list[bytes]:
        """Return encoded tracks."""
        return self._fetch_tracks(f"SELECT recording_id FROM recording_isrc WHERE isrc IN ({', '.join('?' * len(isrcs))})", isrcs)

    def browse(self, filters: BrowseFilters) -> list[bytes]:
        """Return the first page."""
        wanted, values = [], []
        if filters.genre_id is not None:
            wanted.append(
                "recording_id IN (SELECT recording_id FROM recording_genre JOIN genre USING (genre_id) WHERE ? IN (genre_id, main_id))"
            )
            values.append(filters.genre_id)
        if filters.artist_id is not None:
            wanted.append("recording_id IN (SELECT recording_id FROM recording_artist WHERE artist_id = ?)")
            values.append(filters.artist_id)
        if filters.label_id is not None:
            wanted.append("recording_id IN (SELECT recording_id FROM recording_release JOIN release USING (release_id) WHERE label_id = ?)")
            values.append(filters.label_id)
        if filters.year is not None:
            wanted.append(f"release_date BETWEEN '{filters.year}-01-01' AND '{filters.year}-12-31'")
        condition = " AND ".join(wanted) or "true"
        first = f"SELECT recording_id FROM recording WHERE {condition} ORDER BY release_date DESC NULLS LAST, recording_id LIMIT {PAGE}"
        return self._fetch_tracks(first, values)

    def list_new_releases(self, today: date) -> list[bytes]:
        """Return the first page."""
        return self._encode_rows(
            "SELECT r.* FROM release r JOIN artist a USING (artist_id) WHERE release_date <= ? "
            f"ORDER BY release_date DESC, a.popularity DESC, release_id LIMIT {PAGE}",
            [today.isoformat()],
        )

    def _fetch_tracks(self, query: str, values: list[Any]) -> list[bytes]:
        # Two steps: with ids as constants only the row groups that hold them are read. A join reads the whole column.
        ids = [str(row[0]) for row in self._file.execute(query, values).fetchall()]
        return self._encode_rows(f"SELECT * FROM track WHERE recording_id IN ({', '.join(ids)})", []) if ids else []

    def _encode_rows(self, query: str, values: list[Any]) -> list[bytes]:
        cursor = self._file.execute(query, values)
        names = [column[0] for column in cursor.description or ()]
        return [msgspec.json.encode(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_TABLES = {
    "track": ("recording_id bigint PRIMARY KEY, body text NOT NULL", None),
    "isrc": ("isrc text PRIMARY KEY, recording_id bigint NOT NULL", "SELECT isrc, recording_id FROM recording_isrc"),
    "everything": ("newest int, recording_id bigint, PRIMARY KEY (newest, recording_id)", "SELECT newest, recording_id FROM dated"),
    "by_genre": (
        "genre_id int, newest int, recording_id bigint, PRIMARY KEY (genre_id, newest, recording_id)",
        """SELECT DISTINCT g, newest, recording_id FROM (
            SELECT unnest([genre_id, main_id, parent_id]) AS g, recording_id FROM recording_genre JOIN genre USING (genre_id)
        ) JOIN dated USING (recording_id) WHERE g IS NOT NULL ORDER BY ALL""",
    ),
    "by_artist": (
        "artist_id bigint, newest int, recording_id bigint, PRIMARY KEY (artist_id, newest, recording_id)",
        "SELECT DISTINCT artist_id, newest, recording_id FROM recording_artist JOIN dated USING (recording_id) ORDER BY ALL",
    ),
    "by_label": (
        "label_id bigint, newest int, recording_id bigint, PRIMARY KEY (label_id, newest, recording_id)",
        """SELECT DISTINCT label_id, newest, recording_id FROM recording_release JOIN release USING (release_id)
        JOIN dated USING (recording_id) WHERE label_id IS NOT NULL ORDER BY ALL""",
    ),
    "release": (
        "newest int, unheard double precision, release_id bigint, body text, PRIMARY KEY (newest, unheard, release_id)",
        f"""SELECT -({_STAMP}), -a.popularity, release_id, to_json(r) FROM release r JOIN artist a USING (artist_id)
        WHERE release_date IS NOT NULL ORDER BY ALL""",
    ),
}
"""Name -> columns, and the DuckDB query of their rows. Lists include their order in the key, so a page is one range of an index."""


class PostgresPeer:
    """Loads missing tables, then answers by prepared statements."""

    def __init__(self, url: str, tables: Mapping[str, Path], serving: Path) -> None:
        """Load from `tables`; the encoded tracks come from our files in `serving`."""
        self._database = psycopg.connect(url, autocommit=True)
        if self._read_value("SELECT to_regclass('loaded')") is None:
            self._load(tables, serving)

    def _load(self, tables: Mapping[str, Path], serving: Path) -> None:
        with closing(duckdb.connect(config={"memory_limit": "3GB", "threads": 1})) as source:
            for name in (
                "recording",
                "recording_isrc",
                "recording_genre",
                "genre",
                "recording_artist",
                "recording_release",
                "release",
                "artist",
            ):
                source.execute(f"CREATE VIEW {name} AS SELECT * FROM {render_sql_source(tables[name])}")
            source.execute(f"CREATE VIEW dated AS SELECT recording_id, -({_STAMP}) AS newest FROM recording")
            for name, (columns, query) in _TABLES.items():
                self._database.execute(f"DROP TABLE IF EXISTS {name}")
                rows = _read_rows(source, query) if query else _encode_bodies(tables, serving)
                # Filled in the transaction that creates it, so its rows skip the log.
                with self._database.transaction():
                    self._database.execute(f"CREATE TABLE {name} ({columns})")
                    with self._database.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
                        for row in rows:
                            copy.write_row(row)
                self._database.execute(f"VACUUM (FREEZE, ANALYZE) {name}")
        self._database.execute("CREATE TABLE loaded ()")

    def find_by_isrc(self, isrc: str) -> bytes:
        """Return the encoded track."""
        return self._read_column("SELECT body FROM isrc JOIN track USING (recording_id) WHERE isrc = %s", [isrc])[0]

    def find_by_isrcs(self, isrcs: list[str]) -> list[bytes]:
        """Return encoded tracks."""
        return self._read_column("SELECT body FROM isrc JOIN track USING (recording_id) WHERE isrc = ANY(%s)", [isrcs])

    def browse(self, filters: BrowseFilters) -> list[bytes]:
        """Return the first page."""
        given = {"genre": filters.genre_id, "artist": filters.artist_id, "label": filters.label_id}
        lists: list[tuple[str, str, int | None]] = [
            (f"by_{kind}", f"{kind}_id", value) for kind, value in given.items() if value is not None
        ]
        first, *others = lists or [("everything", "true", None)]
        conditions = [f"l.{first[1]} = %s" if first[2] is not None else "true"]
        conditions += [f"EXISTS (SELECT FROM {name} o WHERE o.{key} = %s AND (o.newest, o.recording_id) = (l.newest, l.recording_id))"
                       for name, key, _ in others]  # fmt: skip
        values = [value for _, _, value in (first, *others) if value is not None]
        if filters.year is not None:
            conditions.append("l.newest > %s AND l.newest <= %s")
            values += [-(filters.year + 1) * 40_000, -filters.year * 40_000]
        chosen = (
            f"SELECT newest, recording_id FROM {first[0]} l WHERE {' AND '.join(conditions)} ORDER BY newest, recording_id LIMIT {PAGE}"
        )
        return self._read_column(f"SELECT body FROM ({chosen}) c JOIN track USING (recording_id) ORDER BY newest, recording_id", values)

    def list_new_releases(self, today: date) -> list[bytes]:
        """Return the first page."""
        latest = -((today.year * 100 + today.month) * 100 + today.day) * 4 - 3
        return self._read_column(f"SELECT body FROM release WHERE newest >= %s ORDER BY newest, unheard, release_id LIMIT {PAGE}", [latest])

    def measure_size(self) -> int:
        """Return the bytes of all tables and indexes."""
        size: int = self._read_value(f"SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(ARRAY{[*_TABLES]}) name")
        return size

    def _read_column(self, query: str, values: list[Any]) -> list[bytes]:
        rows = self._database.execute(query, values, prepare=True, binary=True).fetchall()
        return [row[0].encode() for row in rows]

    def _read_value(self, query: str) -> Any:  # noqa: ANN401 - of any type
        row = self._database.execute(query).fetchone()
        return row[0] if row else None

    def close(self) -> None:
        """End the session."""
        self._database.close()


def _read_rows(source: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    source.execute(query)
    while block := source.fetchmany(_BLOCK):
        yield from block


def _encode_bodies(tables: Mapping[str, Path], serving: Path) -> Iterator[tuple[int, str]]:
    ids = pl.scan_parquet(f"{tables['recording']}/part-*.parquet").select("recording_id").sort("recording_id").collect().to_series()
    with closing(ServingStore(serving, 600.0)) as store:
        for block in ids.to_frame().iter_slices(_BLOCK):
            for identifier, body in read_track_bodies(store, block["recording_id"].to_list()).items():
                yield identifier, body.decode()
