"""Tests of days of the fingerprint database: both escapings, upserts, empty days, missing files, rejects and their messages."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.dumps.platforms import fingerprints
from pipeline.dumps.platforms.fingerprints.items import build_fingerprint_keys, to_unsigned

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
STREAMS = ("track", "meta", "fingerprint", "track_fingerprint", "track_mbid")
ITEMS = [-772063964, -772066012, -1007079116, 0, 1, 2147483647, -2147483648, *range(5, 25)]
GID = "9ff43b6a-4f16-427c-93c2-92307ca505e0"
GOOD: dict[str, Row] = {
    "track": {"id": 7, "gid": GID},
    "meta": {"id": 3, "track": "Song", "artist": "AC/DC", "album": "Line1\nLine2", "track_no": 1, "disc_no": 1, "year": 2001},
    "fingerprint": {"id": 9, "fingerprint": ITEMS, "length": 320},
    "track_fingerprint": {"id": 9, "track_id": 7, "fingerprint_id": 9, "submission_count": 3},
    "track_mbid": {"id": 8, "track_id": 7, "mbid": GID, "submission_count": 3},
}


def write_day(folder: Path, day: str, rows: dict[str, list[Row | str]] | None = None, *, doubled: bool = False) -> Path:
    """Write a day as delivered: rows as dicts, or as raw lines. Streams that are not named are empty."""
    folder.mkdir(parents=True, exist_ok=True)
    for stream in (*STREAMS, "track_meta", "track_puid"):
        lines = [row if isinstance(row, str) else compact(row) for row in (rows or {}).get(stream, [])]
        text = "".join(line + "\n" for line in lines)
        data = gzip.compress((text.replace("\\", "\\\\") if doubled else text).encode("utf-8", "surrogateescape"), mtime=0)
        (folder / f"{day}-{stream}-update.jsonl.gz").write_bytes(data)
    return folder


def compact(row: Row) -> str:
    return json.dumps({**row, "created": "2026-07-22T00:00:18.3+00:00"}, separators=(",", ":"), ensure_ascii=False)


def staged(dump: Path, folder: Path) -> dict[str, pl.DataFrame]:
    stage_dump("fingerprints", dump, folder)
    return {path.name: read_table(TABLES[path.name], path) for path in folder.iterdir() if path.is_dir()}


def test_a_day_is_staged_with_unsigned_items_and_absent_keys_as_nulls(tmp_path: Path) -> None:
    day = write_day(tmp_path / "d", "2026-07-22", {name: [row] for name, row in GOOD.items()})
    found = staged(day, tmp_path / "s")
    print_ = found["source_fingerprint"].row(0, named=True)
    assert print_["items"] == [item & 0xFFFFFFFF for item in ITEMS]
    assert (print_["fingerprint_id"], print_["duration_seconds"], print_["day"]) == (9, 320, "2026-07-22")
    assert found["source_fingerprint_track"].row(0) == ("fingerprints", "2026-07-22", 7, GID, None)
    assert found["source_fingerprint_link"].row(0)[2:] == (8, 7, GID, 3, False)
    assert found["source_fingerprint_meta"].row(0)[3:] == ("Song", "AC/DC", "Line1\nLine2", 2001)
    assert found["intake"]["rows_read"].to_list() == [1] * 5
    assert found["reject"].is_empty()


@pytest.mark.parametrize(("day", "doubled"), [("2024-12-04", True), ("2024-12-05", False)])
def test_titles_of_both_escapings_come_out_the_same(tmp_path: Path, day: str, doubled: bool) -> None:  # noqa: FBT001 - a parameter of the test
    titles = ['7" Edit \\ Live', "tab\there", 'ends in "', "\\\\server", "\\n is not a line", "サマー"]
    rows: list[Row | str] = [{"id": number, "track": title} for number, title in enumerate(titles, start=1)]
    found = staged(write_day(tmp_path / "d", day, {"meta": rows}, doubled=doubled), tmp_path / "s")
    shown = [title.replace("\t", " ") for title in titles]
    assert found["source_fingerprint_meta"]["title"].to_list() == shown


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_doubled_backslashes_are_undone_wherever_blocks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(fingerprints, "BLOCK_BYTES", size)
    rows: list[Row | str] = [{"id": 1, "track": "\\\\\\ \\ \\\\server"}]
    found = staged(write_day(tmp_path / "d", "2024-12-04", {"meta": rows}, doubled=True), tmp_path / "s")
    assert found["source_fingerprint_meta"]["title"].to_list() == ["\\\\\\ \\ \\\\server"]


def test_a_day_without_rows_is_a_day(tmp_path: Path) -> None:
    found = staged(write_day(tmp_path / "d", "2026-07-22"), tmp_path / "s")
    assert all(table.is_empty() for table in found.values())


@pytest.mark.parametrize("stream", STREAMS)
def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path, stream: str) -> None:
    day = write_day(tmp_path / "d", "2026-07-22")
    (day / f"2026-07-22-{stream}-update.jsonl.gz").unlink()
    with pytest.raises(DumpError, match=f"{stream}-update"):
        staged(day, tmp_path / "s")


def test_files_of_two_days_are_refused(tmp_path: Path) -> None:
    day = write_day(tmp_path / "d", "2026-07-22")
    (day / "2026-07-22-meta-update.jsonl.gz").rename(day / "2026-07-23-meta-update.jsonl.gz")
    with pytest.raises(DumpError, match="several days"):
        staged(day, tmp_path / "s")


def test_checksums_and_partial_downloads_beside_a_stream_are_no_second_file_of_it(tmp_path: Path) -> None:
    day = write_day(tmp_path / "d", "2026-07-22", {name: [row] for name, row in GOOD.items()})
    for end in ("sha256", "part"):
        (day / f"2026-07-22-meta-update.jsonl.gz.{end}").write_bytes(b"?")
    assert staged(day, tmp_path / "s")["reject"].select("reason", "source_file").rows() == [
        ("unread_layout", "2026-07-22-meta-update.jsonl.gz.part")
    ]


BAD = [
    ("track", {"gid": GID}, "missing_id"),
    ("track", {"id": "x", "gid": GID}, "invalid_id"),
    ("track", {"id": 5, "gid": "no uuid"}, "invalid_id"),
    ("track", {"id": 5, "gid": GID, "new_id": -1}, "invalid_id"),
    ("track", {"id": 7, "gid": GID}, "duplicate_id"),
    ("fingerprint", {"id": 5, "fingerprint": [], "length": 3}, "invalid_fingerprint"),
    ("fingerprint", {"id": 5, "length": 3}, "invalid_fingerprint"),
    ("fingerprint", {"id": 5, "fingerprint": [*ITEMS, 2**32], "length": 3}, "invalid_fingerprint"),
    ("fingerprint", {"id": 5, "fingerprint": [*ITEMS, None], "length": 3}, "invalid_fingerprint"),
    ("fingerprint", {"id": 5, "fingerprint": ITEMS, "length": 0}, "invalid_duration"),
    ("fingerprint", {"id": 5, "fingerprint": ["a", *ITEMS], "length": 3}, "invalid_fingerprint"),
    ("track_fingerprint", {"id": 5, "fingerprint_id": 5, "submission_count": 3}, "invalid_id"),
    ("track_fingerprint", {"id": 5, "track_id": 7, "submission_count": -3}, "invalid_number"),
    ("track_mbid", {"id": 5, "track_id": 7, "mbid": GID[:-1], "submission_count": 3}, "invalid_id"),
    ("track_mbid", '{"id":5,"track_id":7,', "broken_record"),
    ("meta", '{"id":5,"track":"\udcff"}', "invalid_utf8"),
]


@pytest.mark.parametrize(("stream", "bad", "reason"), BAD)
def test_a_row_that_cannot_be_used_is_rejected_with_reason_place_and_excerpt(
    tmp_path: Path, stream: str, bad: Row | str, reason: str
) -> None:
    rows: dict[str, list[Row | str]] = {name: [row] for name, row in GOOD.items()}
    rows[stream].append(bad)
    found = staged(write_day(tmp_path / "d", "2026-07-22", rows), tmp_path / "s")
    (reject,) = found["reject"].filter(severity="row").iter_rows(named=True)
    assert (reject["reason"], reject["severity"], reject["place"]) == (reason, "row", "line 2")
    assert reject["source_file"] == f"2026-07-22-{stream}-update.jsonl.gz"
    assert reject["excerpt"]
    books = found["intake"].filter(pl.col("entity") == reject["entity"]).row(0, named=True)
    assert (books["rows_read"], books["rows_staged"], books["rows_rejected"]) == (2, 1, 1)


def test_a_stream_of_another_layout_is_refused_as_a_whole(tmp_path: Path) -> None:
    rows: dict[str, list[Row | str]] = {"track_mbid": [{"number": 1, "recording": GID}]}
    with pytest.raises(DumpError, match="layout has changed"):
        staged(write_day(tmp_path / "d", "2026-07-22", rows), tmp_path / "s")


def test_disabled_links_are_staged_as_such(tmp_path: Path) -> None:
    rows: dict[str, list[Row | str]] = {"track_mbid": [{**GOOD["track_mbid"], "disabled": True}]}
    found = staged(write_day(tmp_path / "d", "2026-07-22", rows), tmp_path / "s")
    assert found["source_fingerprint_link"]["is_disabled"].to_list() == [True]


FINGERPRINTS = st.lists(st.lists(st.integers(-(2**31), 2**32 - 1), min_size=1, max_size=5), min_size=1, max_size=4)


@given(FINGERPRINTS)
def test_items_come_out_modulo_32_bits_in_their_lists(lists: list[list[int]]) -> None:
    found = to_unsigned(pl.Series(lists, dtype=pl.List(pl.Int64)))
    assert found.to_list() == [[item % 2**32 for item in items] for items in lists]


@given(FINGERPRINTS)
def test_a_key_depends_on_its_own_fingerprint_alone(lists: list[list[int]]) -> None:
    items = to_unsigned(pl.Series(lists, dtype=pl.List(pl.Int64)))
    ids = pl.Series(range(1, len(lists) + 1), dtype=pl.Int64)
    together = build_fingerprint_keys(ids, items)
    alone = [build_fingerprint_keys(ids[row : row + 1], items[row : row + 1]).item() for row in range(len(lists))]
    assert together.to_list() == alone
    assert (together >= 0).all()
    assert np.unique(together.to_numpy()).size == len(lists)


def test_keys_never_change_because_published_indexes_hold_them() -> None:
    items = pl.Series([[1, 2, 3], [3, 2, 1]], dtype=pl.List(pl.UInt32))
    assert build_fingerprint_keys(pl.Series([5, -5], dtype=pl.Int64), items).to_list() == [7459794730569148794, 2188558222851285389]
