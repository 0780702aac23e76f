"""suggestions: what callers proposed and an operator approved, as our own account store writes it: CSV files, small.

    suggestion_id,entity_kind,entity_id,genre_id
    81,recording,1044,203        the catalog's recording id; `artist`: its artist id; `isrc`: the code

UTF-8, one heading, columns in any order, others ignored. Every file `*.csv` of the dump is read, in name order. What cannot be a suggestion
is rejected: an unknown kind, an id of the wrong shape, a genre that is no node of the canonical tree. What must not live here: what a
suggestion does (`pipeline/build/genre_suggestions.py`).
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.identifiers import normalise_isrc
from genre_rules import load_book
from pipeline.dumps.errors import DumpError
from pipeline.dumps.rejects import Reason

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.staging_writer import StagingWriter

ENTITY = "source_suggestion"
COLUMNS = ("suggestion_id", "entity_kind", "entity_id", "genre_id")
_LONGEST_ID = 18
"""Digits that surely fit into 64 bits."""


class _Trouble(NamedTuple):
    reason: Reason
    value: str


def stage(dump: Path, out: StagingWriter) -> None:
    """Read all files below `dump`. DumpError when there is none, or one lacks a column."""
    files = sorted(dump.rglob("*.csv"))
    if not files:
        raise DumpError(f"{dump}: no *.csv file; deliver one with the columns {','.join(COLUMNS)}, even if it has no rows")
    known = frozenset(str(node.id) for node in load_book().taxonomy.nodes)
    seen: set[str] = set()
    rows = []
    for file in files:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.DictReader(opened)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise DumpError(f"{file}: no column {', '.join(missing)}; the first line names {','.join(COLUMNS)}")
            for number, row in enumerate(reader, start=1):
                out.read(ENTITY)
                values = {name: (row[name] or "").strip() for name in COLUMNS}
                trouble = _trouble(values, known, seen)
                if trouble:
                    place = {"source_file": str(file.relative_to(dump)), "place": f"record {number}"}
                    out.reject(ENTITY, trouble.reason, **place, record_id=values["suggestion_id"] or None, value=trouble.value)
                    continue
                seen.add(values["suggestion_id"])
                rows.append({**values, "entity_id": _normal_id(values), "genre_id": int(values["genre_id"])})
    if rows:
        out.write(ENTITY, pl.DataFrame(rows))


def _trouble(row: dict[str, str], known: frozenset[str], seen: set[str]) -> _Trouble | None:
    if not row["suggestion_id"]:
        return _Trouble(Reason.MISSING_ID, "suggestion_id")
    if row["suggestion_id"] in seen:
        return _Trouble(Reason.DUPLICATE_ID, row["suggestion_id"])
    if row["entity_kind"] not in ("recording", "isrc", "artist"):
        return _Trouble(Reason.UNKNOWN_KIND, row["entity_kind"])
    if _normal_id(row) is None:
        return _Trouble(Reason.INVALID_ISRC if row["entity_kind"] == "isrc" else Reason.INVALID_ID, row["entity_id"])
    return None if row["genre_id"] in known else _Trouble(Reason.UNKNOWN_GENRE, row["genre_id"])


def _normal_id(row: dict[str, str]) -> str | None:
    value = row["entity_id"]
    if row["entity_kind"] == "isrc":
        return normalise_isrc(value)
    return str(int(value)) if value.isascii() and value.isdecimal() and len(value) <= _LONGEST_ID and int(value) else None
