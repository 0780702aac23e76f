from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.search.credits import Artists, CreditPool, artists_of, encode

NAMES = st.lists(st.sampled_from(["sade", "mo", "東京事変", "earth wind and water", "!!!"]), max_size=3)


class Texts:
    """Names by their number, as an open index gives them."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __getitem__(self, number: int) -> str:
        return self.names[number]


def text(primary: list[str], featured: list[str]) -> str:
    return "|".join(primary) + "\t" + "|".join(featured)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=8))
def test_lists_read_back(lists: list[tuple[list[str], list[str]]]) -> None:
    encoded = encode([text(*one) for one in lists])
    assert len(set(encoded.names)) == len(encoded.names)
    pool = CreditPool(memoryview(encoded.starts), memoryview(encoded.numbers), Texts(encoded.names.to_list()))  # type: ignore[arg-type]
    assert [pool[number] for number in range(len(lists))] == [Artists(tuple(primary), tuple(featured)) for primary, featured in lists]


def test_artists_are_told_apart_by_their_place() -> None:
    found = artists_of(pl.DataFrame({"document": [7, 8, 9], "artists": ["a|b\tc", "\td", "\t"]}), "artists")
    assert found.select("document", "key", "place", "is_featured").rows() == [
        (7, "a", 0, False),
        (7, "b", 1, False),
        (7, "c", 2, True),
        (8, "d", 0, True),
    ]
