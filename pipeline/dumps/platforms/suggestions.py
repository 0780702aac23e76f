"""Adapter of suggestions: approved proposals of callers, in small CSV files that `python -m account_store export-suggestions` writes.

    suggestion_id,entity_kind,entity_id,genre
    81,recording,1044,Acid House        the catalog's recording id; `artist`: its artist id; `isrc`: the code

`genre` is the name of a node, in any case. A column `genre_id` with the node's number may replace it; if both are there, the number counts.
Files are UTF-8 with a heading; the columns may have any order, and others are ignored. Every file `*.csv` of the dump is read, in name
order. An unknown kind, an id of the wrong shape, and a genre that is not a node of the canonical tree are rejects. Out of scope:
the effect of a suggestion (`pipeline/build/genre_suggestions.py`).
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.folder_listing import list_tree
from catalog_store.identifiers import normalise_isrc
from genre_rules import load_book
from pipeline.dumps.errors import DumpError
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

ENTITY = "source_suggestion"
COLUMNS = ("suggestion_id", "entity_kind", "entity_id")
GENRE_COLUMNS = ("genre_id", "genre")
_LONGEST_ID = 18
"""Most digits of an id that always fits into 64 bits."""


class _Trouble(NamedTuple):
    reason: Reason
    value: str


def stage(dump: Path, out: StagingWriter) -> None:
    """Read all files below `dump`. Raises DumpError when there is none, or one lacks a column."""
    files = list_tree(dump, "*.csv")
    if not files:
        raise DumpError(f"{dump}: no *.csv file; deliver one with the columns {','.join(COLUMNS)},genre, even if it has no rows")
    nodes = load_book().taxonomy.nodes
    # Numbers and names share one mapping: no node is called by a number.
    known = {str(node.id): node.id for node in nodes} | {node.name.casefold(): node.id for node in nodes}
    seen: set[str] = set()
    rows: list[dict[str, object]] = []
    out.use(*files)
    for file in files:
        try:
            rows += _read(file, str(file.relative_to(dump)), known, seen, out)
        except (UnicodeDecodeError, csv.Error) as error:
            raise DumpError(f"{file}: cannot be read ({error}); deliver it as CSV in UTF-8") from error
    if rows:
        out.write(ENTITY, pl.DataFrame(rows))


def _read(file: Path, source_file: str, known: Mapping[str, int], seen: set[str], out: StagingWriter) -> Iterator[dict[str, object]]:
    """Yield the usable rows of a file; the others are rejected."""
    with file.open(encoding="utf-8-sig", newline="") as opened:
        reader = csv.DictReader(opened)
        delivered = reader.fieldnames or ()
        missing = [name for name in COLUMNS if name not in delivered]
        if not missing and not set(GENRE_COLUMNS) & set(delivered):
            missing = [" or ".join(GENRE_COLUMNS)]
        if missing:
            raise DumpError(f"{file}: no column {', '.join(missing)}; the first line names {','.join(COLUMNS)},genre")
        for number, row in enumerate(reader, start=1):
            out.count_read(ENTITY)
            place = {"source_file": source_file, "place": f"record {number}"}
            values = {name: (row[name] or "").strip() for name in COLUMNS}
            genre = next(filter(None, ((row.get(name) or "").strip() for name in GENRE_COLUMNS)), "")
            trouble = _find_trouble(values, genre, known, seen)
            if trouble:
                out.reject(ENTITY, trouble.reason, **place, record_id=values["suggestion_id"] or None, value=trouble.value)
                continue
            seen.add(values["suggestion_id"])
            yield {**place, **values, "entity_id": _normalise_id(values), "genre_id": known[genre.casefold()]}


def _find_trouble(row: dict[str, str], genre: str, known: Mapping[str, int], seen: set[str]) -> _Trouble | None:
    if not row["suggestion_id"]:
        return _Trouble(Reason.MISSING_ID, "suggestion_id")
    if row["suggestion_id"] in seen:
        return _Trouble(Reason.DUPLICATE_ID, row["suggestion_id"])
    if row["entity_kind"] not in ("recording", "isrc", "artist"):
        return _Trouble(Reason.UNKNOWN_KIND, row["entity_kind"])
    if _normalise_id(row) is None:
        return _Trouble(Reason.INVALID_ISRC if row["entity_kind"] == "isrc" else Reason.INVALID_ID, row["entity_id"])
    return None if genre.casefold() in known else _Trouble(Reason.UNKNOWN_GENRE, genre)


def _normalise_id(row: dict[str, str]) -> str | None:
    value = row["entity_id"]
    if row["entity_kind"] == "isrc":
        return normalise_isrc(value)
    # `isdecimal` alone also takes digits of other scripts, which no id has.
    return str(int(value)) if value.isascii() and value.isdecimal() and len(value) <= _LONGEST_ID and int(value) else None
