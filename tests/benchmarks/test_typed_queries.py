"""The typed queries: each asks for a recording that the benchmark's catalog holds, and the split follows from the text alone."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import polars as pl
import pytest

from benchmarks.real_names import RealRecording, read_aliases, read_recordings
from benchmarks.typed_search import ABSENT, PARTS, read_queries, write_tables
from catalog_store.search.search_build import build_search
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("part", "bit"), [("development", 0), ("test", 1)])
def test_checksum_of_fields_decides_part(part: str, bit: int) -> None:
    rows = read_queries(part)
    assert all(zlib.crc32(f"{artist}\t{title}".encode()) % 2 == bit for artist, title in rows.select("artist", "title").iter_rows())


def test_typed_queries_ask_for_recordings_that_exist() -> None:
    names = {("; ".join(one.artists), one.title) for one in read_recordings()}
    rows = pl.concat([read_queries(part) for part in PARTS])
    assert rows.height >= 1_000
    asked = rows.filter(pl.col("class") != ABSENT)
    assert set(asked.select("answer_artists", "answer_title").iter_rows()) <= names


def test_absent_queries_name_no_answer() -> None:
    rows = pl.concat([read_queries(part) for part in PARTS]).filter(pl.col("class") == ABSENT)
    assert set(rows["answer_title"]) == {""}


@pytest.mark.parametrize(("part", "earlier"), [("second_test", PARTS[:2]), ("third_test", PARTS[:3])])
def test_later_part_asks_for_recordings_that_no_earlier_part_asks_for(part: str, earlier: tuple[str, ...]) -> None:
    others = pl.concat([read_queries(name) for name in earlier]).select("answer_artists", "answer_title")
    asked = read_queries(part).filter(pl.col("class") != ABSENT).select("answer_artists", "answer_title")
    assert not set(asked.iter_rows()) & set(others.iter_rows())
    assert asked.n_unique() == asked.height >= 300


def test_aliases_of_samples_name_other_spellings() -> None:
    aliases = read_aliases()
    assert "ボア" in aliases["BoA"]
    assert all(name not in others for name, others in aliases.items())


def test_real_recordings_join_the_tables_that_search_is_built_from(tmp_path: Path) -> None:
    made = make_tables(tmp_path / "world" / "work" / "catalog")
    tables = write_tables(tmp_path / "world", tmp_path / "tables", [RealRecording(("Queen",), "Love of My Life (Live)", 0.5)])
    build_search(tables, tmp_path / "search")
    recordings = read_table(TABLES["recording"], tables["recording"])
    assert recordings.height == read_table(TABLES["recording"], made["recording"]).height + 1
    assert recordings["variants"].to_list()[-1] == [{"kind": "live", "name": None, "year": None}]
