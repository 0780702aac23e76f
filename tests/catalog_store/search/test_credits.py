from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from catalog_store.search.credits import Artists, split_artists
from catalog_store.search.walks import Credits


def test_unknown_list_or_artist_raises_index_error() -> None:
    # One list: `sade` and, featured, `mo`, who is also another name of `sade`.
    starts, numbers = np.array([0, 3], dtype=np.uint64), np.array([0, 5, 6], dtype=np.uint32)
    base = (starts, numbers, np.array([0, 4, 6], dtype=np.uint32), b"sademo")
    damaged = (starts, numbers, np.array([0, 4], dtype=np.uint32), b"sade")
    known = Credits(base, damaged, role_bits=2)
    assert known[0] == Artists(("sade",), ("mo",), ("mo",))
    for number in (2, -1):
        with pytest.raises(IndexError, match="no list of artists"):
            known[number]
    with pytest.raises(IndexError, match="an artist 1, which is none"):
        known[1]


def test_artists_are_distinguished_by_their_place() -> None:
    found = split_artists(pl.DataFrame({"document": [7, 8, 9], "artists": ["a|b\tc\te|f", "\td\tg", "\t\t"]}), "artists")
    assert found.select("document", "key", "place", "role").rows() == [
        (7, "a", 0, 0),
        (7, "b", 1, 0),
        (7, "c", 2, 1),
        (7, "e", 3, 2),
        (7, "f", 4, 2),
        (8, "d", 0, 1),
        (8, "g", 1, 2),
    ]


def test_lists_of_the_format_before_have_two_roles() -> None:
    starts, numbers = np.array([0, 2], dtype=np.uint64), np.array([0, 3], dtype=np.uint32)
    base = (starts, numbers, np.array([0, 4, 6], dtype=np.uint32), b"sademo")
    assert Credits(base, base, role_bits=1)[0] == Artists(("sade",), ("mo",))
