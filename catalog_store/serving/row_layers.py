"""The rows of artists, labels, names, works and redirects: a base that snapshots share, and a delta in `serving.sqlite`.

Both files have the same tables. For each table, `gone_<table>` in `serving.sqlite` has the keys of the base's rows that no longer count. A
reader attaches the base and reads views that have the names of the tables, so a query is written as if there were one file. schema.py
specifies the tables.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import quote

from catalog_store.published_files import has_published, link_or_copy
from catalog_store.serving.schema import BASE_FILE, DDL, FILE_NAME, FORMAT_VERSION, ROW_KEYS
from catalog_store.snapshot import SERVING_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

MERGED_AT = 0.1
"""Bytes of `serving.sqlite` by those of the base from which all rows are written as a new base."""


def build_uri(path: Path) -> str:
    """Return the URI under which SQLite opens a published file."""
    return f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"


def connect_rows(serving: Path) -> sqlite3.Connection:
    """Open base and delta in the folder `serving` for reading, as one. The connection may be used by any thread."""
    connection = sqlite3.connect(
        build_uri(serving / FILE_NAME), uri=True, check_same_thread=False, isolation_level=None, cached_statements=64
    )
    connection.execute("ATTACH ? AS base", (build_uri(serving / BASE_FILE),))
    for table, keys in ROW_KEYS.items():
        is_same = " AND ".join(f"gone.{key} = base_rows.{key}" for key in keys)
        connection.execute(
            f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} UNION ALL SELECT base_rows.* FROM base.{table} AS base_rows "
            f"WHERE NOT EXISTS (SELECT 1 FROM main.gone_{table} AS gone WHERE {is_same})"
        )
    return connection


def create_file(path: Path, ddl: str) -> sqlite3.Connection:
    """Create a file with the tables of `ddl`, and begin a transaction."""
    file = sqlite3.connect(path, isolation_level=None, uri=True)
    # A failed build discards the file, and the publisher flushes it: neither a journal nor syncs are needed.
    file.execute("PRAGMA journal_mode = OFF")
    file.execute("PRAGMA synchronous = OFF")
    file.executescript(ddl)
    file.execute("BEGIN")
    return file


def share_rows(folder: Path, previous: Path | None) -> None:
    """Replace the new base in `folder` by that of the snapshot `previous`, and write what differs into `serving.sqlite`.

    The new base stays if the other one is damaged or has another format, or if much differs.
    """
    if previous is None or not _has_base(previous):
        return
    before = previous / SERVING_FOLDER / BASE_FILE
    delta = folder / ".delta"
    with closing(create_file(delta, DDL)) as file:
        file.execute("COMMIT")
        file.execute("ATTACH ? AS base", (build_uri(before),))
        file.execute("ATTACH ? AS tonight", (build_uri(folder / BASE_FILE),))
        file.execute("ATTACH ? AS small", (build_uri(folder / FILE_NAME),))
        file.execute("BEGIN")
        for table in ("meta", "genre", "build", "change"):
            file.execute(f"INSERT INTO main.{table} SELECT * FROM small.{table}")
        for table, keys in ROW_KEYS.items():
            columns = [name for _, name, *_ in file.execute(f"PRAGMA main.table_info({table})")]
            # Both sides are in the order of the key. A search by it takes half the time of EXCEPT, which sorts all rows of one side again.
            for target, chosen, own, other in ((table, columns, "tonight", "base"), (f"gone_{table}", keys, "base", "tonight")):
                is_same = " AND ".join(f"other.{name} IS own.{name}" for name in columns)
                file.execute(
                    f"INSERT INTO main.{target} SELECT {', '.join(chosen)} FROM {own}.{table} AS own "
                    f"WHERE NOT EXISTS (SELECT 1 FROM {other}.{table} AS other WHERE {is_same})"
                )
        file.execute("COMMIT")
    if delta.stat().st_size > MERGED_AT * before.stat().st_size:
        delta.unlink()
        return
    delta.replace(folder / FILE_NAME)
    (folder / BASE_FILE).unlink()
    link_or_copy(before, folder / BASE_FILE)


def _has_base(previous: Path) -> bool:
    if not has_published(previous, (f"{SERVING_FOLDER}/{FILE_NAME}", f"{SERVING_FOLDER}/{BASE_FILE}")):
        return False
    with closing(sqlite3.connect(build_uri(previous / SERVING_FOLDER / FILE_NAME), uri=True)) as file:
        ((version,),) = file.execute("SELECT value FROM meta WHERE name = 'format_version'").fetchall()
    return bool(version == FORMAT_VERSION)
