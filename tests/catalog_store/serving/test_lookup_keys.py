from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.serving.lookup_keys import (
    KEY_SPACES,
    NAME_KINDS,
    decode_iswc,
    encode_iswc,
    hash_key,
    hash_keys,
    hash_name,
    hash_names,
    hash_title,
    hash_titles,
    normalize_key,
)


def test_hash_differs_by_text_length_and_key_space() -> None:
    asked = [(space, text) for space in range(len(KEY_SPACES)) for text in ("", "\0", "\0\0", "1", "1\0", "12345678", "123456781", "0")]
    assert len({hash_key(*one) for one in asked}) == len(asked)


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=40))
def test_name_hashes_fit_sqlite_integers_and_differ_by_kind(key: str) -> None:
    hashes = [hash_name(kind, key) for kind in range(len(NAME_KINDS))]
    assert all(0 <= one < 2**63 for one in hashes)
    assert len(set(hashes)) == len(hashes)


def test_hashes_spread_evenly_also_of_numbers_that_follow_each_other() -> None:
    hashes = np.array([hash_key(2, str(number)) for number in range(64_000)], dtype=np.uint64)
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
    assert normalize_key(space, text) == stored


@given(st.integers(0, 10**10 - 1).map(lambda number: f"T{number:010d}"))
def test_iswcs_are_read_back(iswc: str) -> None:
    assert decode_iswc(encode_iswc(iswc)) == iswc


def test_a_column_has_the_hashes_of_its_texts() -> None:
    texts = ["", "GBAYE0000401", "宮島 みゆき", "ß"]
    column = pl.Series(texts)
    assert hash_keys(3, column).tolist() == [hash_key(3, text) for text in texts]
    assert hash_names(1, column).tolist() == [hash_name(1, text) for text in texts]
    titles = pl.DataFrame({"artist_id": range(4), "title_key": texts})
    assert hash_titles(titles).tolist() == [hash_title(artist, text) for artist, text in titles.rows()]
