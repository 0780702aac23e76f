from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.search.credits import CreditPool, artists_of, encode

if TYPE_CHECKING:
    from random import Random


NAMES = st.lists(st.sampled_from(["sade", "mo", "東京事変", "earth wind and water", "!!!"]), max_size=3)


class Texts:
    """Names by their number, as an open index gives them."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __getitem__(self, number: int) -> bytes:
        return self.names[number].encode()


def text(primary: list[str], featured: list[str]) -> str:
    return "|".join(primary) + "\t" + "|".join(featured)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=8), st.randoms(use_true_random=False))
def test_lists_read_back_in_any_order(lists: list[tuple[list[str], list[str]]], chance: Random) -> None:
    encoded = encode([text(*one) for one in lists])
    assert len(set(encoded.names)) == len(encoded.names)
    pool = CreditPool(encoded.starts, encoded.numbers, Texts(encoded.names.to_list()))  # type: ignore[arg-type]
    asked = [*range(len(lists)), *range(len(lists))]
    chance.shuffle(asked)
    assert pool.artists(np.array(asked, dtype=np.uint32)) == [lists[number] for number in asked]


def test_artists_are_told_apart_by_their_place() -> None:
    found = artists_of(pl.DataFrame({"document": [7, 8, 9], "artists": ["a|b\tc", "\td", "\t"]}), "artists")
    assert found.select("document", "key", "place", "is_featured").rows() == [
        (7, "a", 0, False),
        (7, "b", 1, False),
        (7, "c", 2, True),
        (8, "d", 0, True),
    ]
