from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from catalog_store.cursors import CursorCodec
from catalog_store.errors import InvalidCursorError, InvalidQueryError
from catalog_store.queries.isrc_conflicts import list_isrc_conflicts
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table

if TYPE_CHECKING:
    from pathlib import Path

CURSORS = CursorCodec()
CODES = ("AA0010000000", "AA0ZZ0000001", "USUM71703861", "USUM71703862", "ZZZZZ9999999")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    chance = random.Random(5)  # noqa: S311 - test data
    pairs = sorted((code, recording) for code in CODES for recording in chance.sample(range(1, 2**40), 9))
    return [
        {"isrc": code, "recording_id": one, "owner_recording_id": 7, "platforms": ["store_a"], "record_count": 1, "reason": "variant"}
        for code, one in pairs
    ]


@pytest.fixture(scope="module")
def tables(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    table = TABLES["isrc_conflict"]
    # Several parts: pages cross their borders.
    write_table(table, folder / table.name, (pl.DataFrame(rows, schema=table.polars_schema)[first : first + 20] for first in (0, 20, 40)))
    return folder


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
@pytest.mark.parametrize("isrc", [None, *CODES, "GBAAA0000000"])
def test_pages_hold_every_conflict_once_in_order(tables: Path, rows: list[dict[str, Any]], isrc: str | None, limit: int) -> None:
    found, cursor = [], None
    while True:
        page = list_isrc_conflicts(tables, CURSORS, isrc=isrc, limit=limit, cursor=cursor)
        assert len(page.conflicts) <= limit
        found += [one._asdict() for one in page.conflicts]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == [row for row in rows if isrc in {None, row["isrc"]}]


def test_cursor_of_another_question_is_refused(tables: Path) -> None:
    cursor = list_isrc_conflicts(tables, CURSORS, isrc=None, limit=1, cursor=None).next_cursor
    with pytest.raises(InvalidCursorError):
        list_isrc_conflicts(tables, CURSORS, isrc=CODES[0], limit=1, cursor=cursor)


@pytest.mark.parametrize("limit", [0, 101])
def test_limit_out_of_range_is_refused(tables: Path, limit: int) -> None:
    with pytest.raises(InvalidQueryError):
        list_isrc_conflicts(tables, CURSORS, isrc=None, limit=limit, cursor=None)
