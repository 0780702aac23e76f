"""The invariants between the files of a snapshot, checked before every switch of `current`, and on demand.

A manifest proves that each file is the written one; the invariants prove that the files belong together. References between tables come
from their specs (tables/references.py). serving_invariants.py compares serving, search and recognition files with the tables. All work is
on integers, block by block: a byte per id that counts up, eight per atom and work, and one kind of id at a time. Checksums belong in
snapshot.verify, rules of single columns in tables/checks.py.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catalog_store.analyst_file import is_in_file
from catalog_store.errors import SnapshotInconsistentError
from catalog_store.folder_listing import list_tree
from catalog_store.id_sets import SHOWN, IdSet, read_batches
from catalog_store.memory_budget import get_budget
from catalog_store.serving.schema import REDIRECT_KINDS
from catalog_store.serving_invariants import Faults, list_serving_checks
from catalog_store.snapshot import MANIFEST, TABLES_FOLDER
from catalog_store.tables import TABLES
from catalog_store.tables.references import list_references

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.snapshot import Manifest, Role
    from catalog_store.tables.references import Reference

ENTITIES = ("recording", "artist", "release", "label", "genre")
"""Tables whose ids count up. The id column is `<table>_id`."""
# Everything that a damaged file makes a reader raise. Other errors are bugs and must not pass as damage.
_UNREADABLE = (
    OSError,
    ValueError,
    IndexError,
    KeyError,
    EOFError,
    pa.ArrowException,
    pl.exceptions.PolarsError,
    sqlite3.Error,
    duckdb.Error,
)
# The tables of snapshots from before they were views over the parts are tables of the file.
_HELD = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views()"


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold: its name, its meaning, the number of wrong rows and the first of them."""

    name: str
    description: str
    rows: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line for an operator."""
        shown = f", the first: {'; '.join(self.examples)}" if self.examples else ""
        return f"{self.name}: {self.description}: {self.rows:,} at fault{shown}"


def require_invariants(folder: Path, manifest: Manifest, role: Role = "all") -> None:
    """Raise SnapshotInconsistentError with every invariant of `role` that the snapshot in `folder` breaks, unless all hold."""
    broken = find_violations(folder, manifest, role)
    if broken:
        raise SnapshotInconsistentError(
            f"snapshot {manifest.id} contradicts itself; {'; '.join(map(str, broken))}. "
            "Look at these rows in the tables; rebuild with --relink, and if it fails again report it with the tables"
        )


def find_violations(folder: Path, manifest: Manifest, role: Role = "all") -> list[Violation]:
    """Return every invariant that the snapshot in `folder` breaks. An unreadable file breaks the invariants that read it.

    A folder with the files of one role is checked for what these files alone can show.
    """
    tables = {name: folder / TABLES_FOLDER / name for name in manifest.tables}
    checks = _Checks()
    ask = checks.ask
    ask("files_are_listed", "the folder holds just the files that the manifest lists", lambda: _find_unlisted_files(folder, manifest, role))
    # Serving files are compared with tables, and a serving node has none.
    if role == "serving":
        return checks.broken
    ask("rows_are_counted", "each part holds as many rows as the manifest says", lambda: _compare_row_counts(folder, manifest))
    ask(
        "analyst_file_is_whole",
        "catalog.duckdb holds as many rows of each table as the manifest says",
        lambda: _compare_analyst_file(folder, manifest),
    )
    ask("codes_are_marked", "as many recordings have a code as codes are marked representative", lambda: _count_unmarked_codes(tables))
    ask(
        "tracks_are_nested_whole",
        "tracks nest as many releases and artists as the flat tables hold",
        lambda: _compare_nested_rows(tables, manifest),
    )
    known = _check_references(checks, tables, manifest)
    # These checks need the ids of every entity. A table that could not be read is reported already.
    if known.keys() >= {*ENTITIES}:
        ask("tracks_are_recordings", "track holds just the recordings", lambda: _compare_tracks(tables, manifest, known["recording"]))
        for name, description, question in list_serving_checks(folder, manifest, known) if role == "all" else ():
            ask(name, description, question)
    return checks.broken


class _Checks:
    """Runs checks and collects the broken invariants."""

    def __init__(self) -> None:
        self.broken: list[Violation] = []

    def ask(self, name: str, description: str, question: Callable[[], Faults]) -> None:
        try:
            rows, examples = question()
        except _UNREADABLE as error:
            rows, examples = 1, (f"it cannot be read: {error}",)
        if rows:
            self.broken.append(Violation(name, description, rows, tuple(map(str, examples))))


def _check_references(checks: _Checks, tables: dict[str, Path], manifest: Manifest) -> dict[str, IdSet]:
    """Check each table that others refer to, one after the other. Return the ids of the entities, for the checks of the serving files."""
    by_target: defaultdict[tuple[str, str], list[Reference]] = defaultdict(list)
    for reference in list_references(tables):
        by_target[reference.other, reference.key].append(reference)
    known: dict[str, IdSet] = {}
    for (table, key), referring in by_target.items():
        is_entity = table in ENTITIES and key == f"{table}_id"
        # A list, because the check may fail to read the table: then there are no ids, and the references to them are not checked.
        held: list[IdSet] = []

        def repeated(table: str = table, key: str = key, held: list[IdSet] = held, *, is_entity: bool = is_entity) -> Faults:
            held.append(IdSet(_read_values(tables[table], table, key), rows=manifest.tables[table].rows, is_counted=is_entity))
            return held[0].repeated, ()

        checks.ask(f"{table}_{key}_unique", f"{table}.{key} is unique", repeated)
        for ids in held:
            for reference in referring:
                checks.ask(reference.name, str(reference), partial(_find_unknown, tables, reference, ids))
            if is_entity:
                known[table] = ids
                if table in REDIRECT_KINDS:
                    checks.ask(
                        f"no_{table}_is_redirected",
                        f"no living {table} is redirected",
                        partial(_find_redirected_living, tables, table, ids),
                    )
    return known


def _find_unlisted_files(folder: Path, manifest: Manifest, role: Role) -> Faults:
    listed = {file.path for file in manifest.list_files(role)} | {MANIFEST}
    # The manifest does not list itself.
    there = {path.relative_to(folder).as_posix() for path in list_tree(folder) if path.is_file()} | {MANIFEST}
    # A machine may hold more than a role needs.
    of_other_roles = {file.path for file in manifest.list_files("all")} - listed
    wrong = sorted((listed ^ there) - of_other_roles)
    return len(wrong), tuple(wrong[:SHOWN])


def _compare_row_counts(folder: Path, manifest: Manifest) -> Faults:
    faults, gap = [], 0
    for name, table in manifest.tables.items():
        if table.rows != sum(part.rows for part in table.files):
            gap += abs(table.rows - sum(part.rows for part in table.files))
            faults.append(f"{name} has {table.rows} rows, its parts have {sum(part.rows for part in table.files)}")
        for part in table.files:
            rows = pq.read_metadata(folder / part.path).num_rows
            if rows != part.rows:
                gap += abs(rows - part.rows)
                faults.append(f"{part.path} has {rows} instead of {part.rows}")
    return gap, tuple(faults[:SHOWN])


def _compare_analyst_file(folder: Path, manifest: Manifest) -> Faults:
    faults, gap = [], 0
    with closing(
        duckdb.connect(folder / manifest.analyst_file.path, read_only=True, config={"memory_limit": get_budget().database_limit})
    ) as file:
        held = {name for (name,) in file.execute(_HELD).fetchall()}
        for name, table in manifest.tables.items():
            if not is_in_file(name):
                continue
            (rows,) = (file.execute(f'SELECT count(*) FROM "{name}"').fetchone() if name in held else None) or (0,)
            if rows != table.rows or name not in held:
                gap += max(1, abs(rows - table.rows))
                faults.append(f"{name} has {rows if name in held else 'no table and no'} rows instead of {table.rows}")
    return gap, tuple(faults[:SHOWN])


def _count_unmarked_codes(tables: dict[str, Path]) -> Faults:
    coded = sum(len(batch) - batch.column(0).null_count for batch in read_batches(tables["recording"], ["isrc"]))
    marked = sum(pc.sum(batch.column(0)).as_py() or 0 for batch in read_batches(tables["recording_isrc"], ["is_representative"]))
    return abs(coded - marked), (f"{coded} recordings with a code, {marked} codes marked",)


def _compare_nested_rows(tables: dict[str, Path], manifest: Manifest) -> Faults:
    faults, gap = [], 0
    for nested, field, flat in (("releases", "release_id", "recording_release"), ("artists", "artist_id", "recording_artist")):
        rows = sum(len(block) for block in _read_nested(tables["track"], nested, field))
        if rows != manifest.tables[flat].rows:
            gap += abs(rows - manifest.tables[flat].rows)
            faults.append(f"{rows} {nested} nested, {manifest.tables[flat].rows} rows of {flat}")
    return gap, tuple(faults)


def _find_unknown(tables: dict[str, Path], reference: Reference, known: IdSet) -> Faults:
    count, shown = 0, list[object]()
    for block in _read_referring(tables[reference.table], reference):
        lacked = known.find_unknown(_convert_to_integers(block))
        count += len(lacked)
        if len(lacked) and len(shown) < SHOWN:
            wrong = block.filter(pl.Series(np.isin(_convert_to_integers(block), lacked)))
            shown += wrong.head(SHOWN - len(shown)).to_list()
    name = reference.nested or reference.column
    return count, tuple(f"{name}={value}" for value in shown)


def _read_referring(table: Path, reference: Reference) -> Iterator[pl.Series]:
    """Yield the values of the referring column, without nulls."""
    if reference.nested:
        yield from _read_nested(table, reference.column, reference.nested)
        return
    kinds = [reference.kind[0]] if reference.kind else []
    for batch in read_batches(table, [reference.column, *kinds]):
        rows = pl.DataFrame(batch)
        rows = rows.filter(pl.col(kinds[0]) == reference.kind[1]) if reference.kind else rows
        yield rows[reference.column].drop_nulls()


def _read_nested(table: Path, column: str, field: str) -> Iterator[pl.Series]:
    for batch in read_batches(table, [f"{column}.list.element.{field}"]):
        values = pl.Series(pc.list_flatten(batch.column(0))).struct.field(field)
        yield values.drop_nulls() if values.null_count() else values


def _read_values(table: Path, name: str, column: str) -> Iterator[NDArray[np.int64]]:
    # A KeyError names a column that the spec does not have.
    TABLES[name].get_column(column)
    for batch in read_batches(table, [column]):
        yield _convert_to_integers(pl.Series(batch.column(0)))


def _convert_to_integers(values: pl.Series) -> NDArray[np.int64]:
    """Return ids as integers, texts as 64-bit hashes."""
    return (values.hash().reinterpret(signed=True) if values.dtype == pl.String else values.cast(pl.Int64)).to_numpy()


def _find_redirected_living(tables: dict[str, Path], table: str, known: IdSet) -> Faults:
    count, shown = 0, list[int]()
    for batch in read_batches(tables["redirect"], ["kind", "old_id"]):
        old = pl.DataFrame(batch).filter(pl.col("kind") == table)["old_id"].to_numpy()
        living = np.setdiff1d(old, known.find_unknown(old))
        count += len(living)
        shown += living[: SHOWN - len(shown)].tolist()
    return count, tuple(f"old_id={number}" for number in shown)


def _compare_tracks(tables: dict[str, Path], manifest: Manifest, recordings: IdSet) -> Faults:
    tracks = IdSet(_read_values(tables["track"], "track", "recording_id"), rows=manifest.tables["track"].rows)
    without, shown = recordings.find_missing(tracks)
    more, others = tracks.find_missing(recordings)
    return without + more + tracks.repeated, tuple(f"recording_id={number}" for number in [*shown, *others][:SHOWN])
