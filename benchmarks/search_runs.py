"""The functions that the search benchmark runs in fresh processes: our index built and queried, PostgreSQL loaded and queried."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import psycopg

from catalog_store.cursors import CursorCodec
from catalog_store.name_keys import fold
from catalog_store.queries.track_search import Request, search
from catalog_store.search.search_build import build_search
from catalog_store.search.search_index import SearchIndex

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 10
DEADLINE = 60.0
HITS_SCHEMA = {"query": pl.Int64(), "rank": pl.Int64(), "id": pl.Int64(), "score": pl.Float64(), "class": pl.String()}
GIN = "CREATE INDEX {name} ON song USING gin ({column} gin_trgm_ops)"
GIST = "CREATE INDEX {name} ON song USING gist ({column} gist_trgm_ops(siglen={bytes}))"
_BY_NAME = "SELECT id FROM song WHERE name %% %(name)s ORDER BY similarity(name, %(name)s) DESC LIMIT 10"
_BY_BOTH = (
    "SELECT id FROM song WHERE artist %% %(artist)s AND title %% %(title)s"
    " ORDER BY similarity(artist, %(artist)s) + similarity(title, %(title)s) DESC LIMIT 10"
)
POSTGRES_FORMS = {
    "gin 0.3": ("gin", 0.3, _BY_NAME),
    "gin 0.45": ("gin", 0.45, _BY_NAME),
    "gin 0.6": ("gin", 0.6, _BY_NAME),
    "gist nearest": ("gist", 0.3, "SELECT id FROM song ORDER BY name <-> %(name)s LIMIT 10"),
    "gist 0.45": ("gist", 0.45, _BY_NAME),
    "gin two columns 0.3": ("two", 0.3, _BY_BOTH),
    "gin two columns 0.45": ("two", 0.45, _BY_BOTH),
}
"""Form -> its indexes, threshold, statement. Names are folded on both sides (case, accents), which pg_trgm gets for free."""
INDEXES = {
    "gin": [GIN.format(name="song_gin", column="name")],
    "gist": [GIST.format(name="song_gist", column="name", bytes=128)],
    "two": [GIN.format(name="song_artist", column="artist"), GIN.format(name="song_title", column="title")],
}


def build(tables: str, folder: str) -> int:
    """Build our index of the catalog tables below `tables`; return its bytes on disk."""
    build_search({path.name: path for path in Path(tables).iterdir()}, Path(folder))
    return sum(file.stat().st_size for file in Path(folder).iterdir())


def ask(folder: str, asked: str, out: str) -> dict[str, Any]:
    """Query every row of `asked` [query, artist, title, is_measured], write [query, rank, id, score]; return measured CPU seconds."""
    index, cursors = SearchIndex(Path(folder)), CursorCodec()
    # As the server does at start: objects that live for ever are not scanned by the garbage collector again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)

    def one(artist: str, title: str) -> list[tuple[int, float, str]]:
        page = search(index, cursors, Request(artist, title, LIMIT), deadline=DEADLINE)
        return [(hit.id, hit.score, hit.match_class) for hit in page.hits]

    return _ask(asked, out, one, time.thread_time)


def load_postgres(url: str, names: str) -> int:
    """Create table song(id, artist, title, name) from the Parquet file `names`, folded; return the rows."""
    rows = 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute("CREATE TABLE song (id int PRIMARY KEY, artist text, title text, name text)")
            with cursor.copy("COPY song FROM STDIN") as copy:
                for batch in pl.scan_parquet(names).collect_batches(chunk_size=100_000):
                    for identifier, artist, title in batch.iter_rows():
                        copy.write_row((identifier, artist := fold(artist), title := fold(title), f"{artist} {title}"))
                    rows += batch.height
        # autovacuum is off in this server, so statistics are made here.
        connection.execute("VACUUM ANALYZE song")
    return rows


def index_postgres(url: str, name: str) -> dict[str, Any]:
    """Create the indexes of one kind; return CPU seconds of the server's backend and bytes."""
    with psycopg.connect(url, autocommit=True) as connection:
        before = _read_backend_cpu(connection.info.backend_pid)
        for statement in INDEXES[name]:
            connection.execute(statement)
        spent = _read_backend_cpu(connection.info.backend_pid) - before
        size = connection.execute("SELECT pg_indexes_size('song')").fetchone()
        connection.execute("VACUUM song")
    return {"cpu": spent, "bytes": size[0] if size else 0}


def drop_postgres(url: str) -> None:
    """Remove all trigram indexes, so that no other form's is used."""
    with psycopg.connect(url, autocommit=True) as connection:
        listed = "SELECT indexname FROM pg_indexes WHERE tablename = 'song' AND indexname <> 'song_pkey'"
        for (name,) in connection.execute(listed).fetchall():
            connection.execute(f"DROP INDEX {name}")


def ask_postgres(url: str, asked: str, out: str, form: str) -> dict[str, Any]:
    """Query PostgreSQL as `ask` does; CPU is that of the server's backend."""
    _, threshold, statement = POSTGRES_FORMS[form]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET pg_trgm.similarity_threshold = {threshold}")
        pid = connection.info.backend_pid

        def one(artist: str, title: str) -> list[tuple[int, float, str]]:
            # PostgreSQL refuses NUL in texts.
            artist, title = fold(artist).replace("\x00", ""), fold(title).replace("\x00", "")
            values = {"artist": artist, "title": title, "name": f"{artist} {title}"}
            return [(row[0], 0.0, "") for row in connection.execute(statement, values).fetchall()]

        return _ask(asked, out, one, lambda: _read_backend_cpu(pid))


def _ask(asked: str, out: str, one: Callable[[str, str], list[tuple[int, float, str]]], clock: Callable[[], float]) -> dict[str, Any]:
    hits: list[tuple[int, int, int, float, str]] = []
    spent: list[float] = []
    for row in pl.read_parquet(asked).iter_rows(named=True):
        started = clock()
        found = one(row["artist"], row["title"])
        if row["is_measured"]:
            spent.append(clock() - started)
            hits += [(row["query"], rank, identifier, score, kind) for rank, (identifier, score, kind) in enumerate(found)]
    pl.DataFrame(hits, schema=HITS_SCHEMA, orient="row").write_parquet(out)
    return {"cpu": spent}


def _read_backend_cpu(pid: int) -> float:
    """Return seconds on a processor, from the scheduler's own count in nanoseconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
