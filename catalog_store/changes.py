"""The changes of ids between the live snapshot and the one about to be published: merges, splits, removals, returns.

Merges, removals and returns are the difference of two `redirect` tables. A split shows in the source records: one that had an old id and
now has a newly issued one. The history of earlier builds is copied from the live snapshot's `serving.sqlite`. The pipeline's registry
decides what an id stands for; queries/id_changes.py answers.
"""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from catalog_store.memory_budget import get_budget
from catalog_store.serving.schema import CHANGES, FILE_NAME, REDIRECT_KINDS
from catalog_store.snapshot import SERVING_FOLDER, TABLES_FOLDER, read_manifest
from catalog_store.tables.files import render_sql_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

log = logging.getLogger(__name__)

KEPT_BUILDS = 100
"""Builds in the history. A caller further behind must load everything again."""
MEMBERS = {"recording": "recording_member", "artist": "artist_source", "release": "release_source", "label": "label_source"}

_REDIRECTS = """
SELECT array_position({kinds}, n.kind) - 1, CASE WHEN n.new_id IS NULL THEN {removed} ELSE {merged} END, n.old_id, coalesce(n.new_id, 0)
FROM {new} n LEFT JOIN {old} o USING (kind, old_id) WHERE o.old_id IS NULL OR o.new_id IS DISTINCT FROM n.new_id
UNION ALL
SELECT array_position({kinds}, o.kind) - 1, {restored}, o.old_id, 0 FROM {old} o ANTI JOIN {new} n USING (kind, old_id)
"""
_SPLITS = """
SELECT DISTINCT {kind}, {split}, o.{id}, n.{id}
FROM (FROM {new} WHERE {id} >= {first_new}) n JOIN {old} o USING (platform, external_id)
"""


class Change(NamedTuple):
    """A row of `change` without its build: indexes in REDIRECT_KINDS and CHANGES, ids."""

    kind: int
    change: int
    old_id: int
    new_id: int


def read_changes(previous: Path, tables: Mapping[str, Path]) -> Iterator[Change]:
    """Yield the changes of ids from the snapshot in `previous` to the tables about to be published, sorted."""
    before, next_ids = previous / TABLES_FOLDER, read_manifest(previous).next_ids
    codes: dict[str, int] = {name: code for code, name in enumerate(CHANGES)}
    queries = [
        _REDIRECTS.format(
            new=render_sql_source(tables["redirect"]), old=render_sql_source(before / "redirect"), kinds=[*REDIRECT_KINDS], **codes
        )
    ]
    for kind, members in MEMBERS.items():
        if members in tables and (before / members).is_dir() and kind in next_ids:
            queries.append(
                _SPLITS.format(
                    kind=REDIRECT_KINDS.index(kind),
                    id=f"{kind}_id",
                    new=render_sql_source(tables[members]),
                    old=render_sql_source(before / members),
                    first_new=next_ids[kind],
                    **codes,
                )
            )
    with closing(duckdb.connect(config={"memory_limit": get_budget().database_limit})) as connection:
        # Sorted, because the rows are inserted in the order of the table's key.
        rows = connection.execute(f"{' UNION ALL '.join(f'({query})' for query in queries)} ORDER BY ALL")
        while block := rows.fetchmany(100_000):
            yield from (Change(*row) for row in block)


def read_builds(previous: Path) -> list[str]:
    """Return the builds in the history of the snapshot in `previous`, oldest first, itself last; only itself without a readable history."""
    file = previous / SERVING_FOLDER / FILE_NAME
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            return [name for (name,) in connection.execute("SELECT snapshot_id FROM build ORDER BY number")]
    except sqlite3.Error:
        return [previous.name]


def read_history(previous: Path) -> tuple[list[str], list[tuple[int, int, int, int, int]]]:
    """Return (the builds of the snapshot in `previous`, itself last; their changes, each with the index of its build in that list).

    A snapshot of a format without history yields only itself. There are at most KEPT_BUILDS.
    """
    file = previous / SERVING_FOLDER / FILE_NAME
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            builds = connection.execute("SELECT number, snapshot_id FROM build ORDER BY number").fetchall()
            # The history would otherwise grow with every night.
            builds = builds[-KEPT_BUILDS:]
            first = builds[0][0]
            # Callers ask for changes after the oldest build, so its own changes are not needed.
            changes = connection.execute(
                "SELECT build - ?1, kind, change, old_id, new_id FROM change WHERE build > ?1 ORDER BY build, kind, change, old_id, new_id",
                (first,),
            ).fetchall()
    except sqlite3.DatabaseError as error:
        # A night must not fail because the snapshot before it is damaged.
        if "no such table" not in str(error):
            log.warning("%s is damaged (%s), so the history of changes begins again: run `verify`", file, error)
        return [read_manifest(previous).id], []
    return [snapshot_id for _, snapshot_id in builds], changes
