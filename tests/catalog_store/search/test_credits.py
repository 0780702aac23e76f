from __future__ import annotations

from itertools import accumulate

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.search.credits import Artists, EncodedLists, encode_lists, split_artists
from catalog_store.search.walks import Credits

NAMES = st.lists(st.sampled_from(["sade", "mo", "東京事変", "earth wind and water", "!!!"]), max_size=3)


def opened(encoded: EncodedLists, names: list[str]) -> Credits:
    texts = [name.encode() for name in names]
    starts = np.array([0, *accumulate(map(len, texts))], dtype=np.uint32)
    return Credits(encoded.starts, encoded.numbers, starts, b"".join(texts))


def text(primary: list[str], featured: list[str]) -> str:
    return "|".join(primary) + "\t" + "|".join(featured)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=8))
def test_lists_are_read_back(lists: list[tuple[list[str], list[str]]]) -> None:
    encoded = encode_lists([text(*one) for one in lists])
    assert len(set(encoded.names)) == len(encoded.names)
    pool = opened(encoded, encoded.names.to_list())
    assert [pool[number] for number in range(len(lists))] == [Artists(tuple(primary), tuple(featured)) for primary, featured in lists]


def test_unknown_list_or_artist_raises_index_error() -> None:
    encoded = encode_lists([text(["sade"], ["mo"])])
    for number in (1, -1):
        with pytest.raises(IndexError, match=f"no list of artists {number}"):
            opened(encoded, ["sade", "mo"])[number]
    with pytest.raises(IndexError, match="an artist 1, which is none"):
        opened(encoded, ["sade"])[0]


def test_artists_are_distinguished_by_their_place() -> None:
    found = split_artists(pl.DataFrame({"document": [7, 8, 9], "artists": ["a|b\tc", "\td", "\t"]}), "artists")
    assert found.select("document", "key", "place", "is_featured").rows() == [
        (7, "a", 0, False),
        (7, "b", 1, False),
        (7, "c", 2, True),
        (8, "d", 0, True),
    ]
