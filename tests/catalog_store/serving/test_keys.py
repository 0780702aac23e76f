from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.serving.keys import KEY_SPACES, few_hashes, iswc_code, iswc_text, key_hash, key_hashes, name_hash, name_hashes, spelled

TEXTS = st.one_of(
    st.integers(0, 10**19).map(str),
    st.uuids().map(str),
    st.from_regex(r"[0-9A-Za-z]{22}", fullmatch=True),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=40),
    st.just("x" * 99),
)


@given(st.lists(TEXTS, max_size=20), st.integers(0, len(KEY_SPACES) - 1))
@settings(max_examples=50)
def test_query_and_build_hash_keys_alike(texts: list[str], space: int) -> None:
    column = pl.Series(texts, dtype=pl.String)
    assert key_hashes(space, column).tolist() == [key_hash(space, text) for text in texts]
    assert few_hashes(space, texts).tolist() == [key_hash(space, text) for text in texts]
    assert name_hashes(1, column).tolist() == [name_hash(1, text) for text in texts]
    assert all(0 <= one < 2**63 for one in name_hashes(1, column).tolist())


def test_a_hash_tells_texts_lengths_and_spaces_apart() -> None:
    asked = [(space, text) for space in range(len(KEY_SPACES)) for text in ("", "\0", "\0\0", "1", "1\0", "12345678", "123456781", "0")]
    assert len({key_hash(*one) for one in asked}) == len(asked)


def test_hashes_spread_evenly_also_of_numbers_that_follow_each_other() -> None:
    hashes = key_hashes(2, pl.Series(range(64_000)).cast(pl.String))
    assert len(np.unique(hashes)) == 64_000
    for shift in (0, 16, 32, 54):
        filled = np.bincount((hashes >> np.uint64(shift) & np.uint64(1023)).astype(np.int64), minlength=1024)
        # 62.5 a cell, so a standard deviation near 8.
        assert filled.min() > 25
        assert filled.max() < 105


@pytest.mark.parametrize(
    ("space", "text", "stored"),
    [
        ("catalog_b", "FFFFFFFF-1111-4222-8333-444455556666", "ffffffff-1111-4222-8333-444455556666"),
        ("streamsvc_a", "aB0", "aB0"),
        ("store_a", "\ud83d", "?"),
    ],
)
def test_keys_are_spelled_as_stored(space: str, text: str, stored: str) -> None:
    assert spelled(space, text) == stored


@given(st.integers(0, 10**10 - 1).map(lambda number: f"T{number:010d}"))
def test_iswcs_read_back(iswc: str) -> None:
    assert iswc_text(iswc_code(iswc)) == iswc
