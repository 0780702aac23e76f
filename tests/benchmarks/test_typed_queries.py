"""The typed queries: each asks for a recording that the benchmark's catalog holds, and the split follows from the text alone."""

from __future__ import annotations

import zlib

import polars as pl
import pytest

from benchmarks.real_names import read_aliases, read_recordings
from benchmarks.typed_search import ABSENT, PARTS, read_queries


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
