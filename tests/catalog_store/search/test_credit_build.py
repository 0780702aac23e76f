from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.array_files import map_array, map_bytes
from catalog_store.search.credit_build import FirstAppearances, write_credits
from catalog_store.search.credits import Artists
from catalog_store.search.layout import ROLE_BITS
from catalog_store.search.walks import Credits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

NAMES = st.lists(st.sampled_from(["sade", "mo", "東京事変", "earth wind and water", "!!!"]), max_size=3)
LISTS = st.lists(st.tuples(NAMES, NAMES, NAMES), max_size=30)


def render(*sides: list[str]) -> str:
    return "\t".join("|".join(names) for names in sides)


def write(folder: Path, texts: list[str], block: int) -> tuple[list[int], Credits, list[str]]:
    """Write the lists of some documents; return the number of each document's list, the lists, and the names in their order."""

    def read() -> Iterator[pl.Series]:
        for first in range(0, max(1, len(texts)), block):
            yield pl.Series(texts[first : first + block], dtype=pl.String)

    (folder / "work").mkdir(parents=True)
    write_credits(folder, folder / "work", read)
    starts, numbers, name_starts = (map_array(folder / f"{name}.npy") for name in ("credit_starts", "credit_artists", "artist_starts"))
    pool = bytes(map_bytes(folder / "artist.bin"))
    names = [pool[start:end].decode() for start, end in pairwise(name_starts)]
    empty = (np.zeros(1, np.uint64), np.empty(0, np.uint32), np.zeros(1, np.uint64), b"")
    credits_ = Credits((starts.astype(np.uint64), numbers, name_starts, pool), empty, role_bits=ROLE_BITS)
    return map_array(folder / "credit_of.npy").tolist(), credits_, names


@given(LISTS, st.integers(1, 40))
def test_lists_of_documents_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, lists: list[tuple[list[str], list[str], list[str]]], block: int
) -> None:
    numbers, pool, names = write(tmp_path_factory.mktemp("credits"), [render(*one) for one in lists], block)
    assert [pool[number] for number in numbers] == [Artists(*map(tuple, sides)) for sides in lists]
    assert names == list(dict.fromkeys(name for sides in lists for side in sides for name in side))


@given(LISTS)
def test_lists_are_numbered_in_order_of_first_appearance(
    tmp_path_factory: pytest.TempPathFactory, lists: list[tuple[list[str], list[str], list[str]]]
) -> None:
    texts = [render(*one) for one in lists]
    numbers, _, _ = write(tmp_path_factory.mktemp("credits"), texts, block=4)
    order = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    assert numbers == [order[text] for text in texts]


@given(st.lists(st.lists(st.integers(0, 6), max_size=9), max_size=9))
def test_first_appearances_do_not_depend_on_blocks(blocks: list[list[int]]) -> None:
    found, whole = FirstAppearances(), [value for block in blocks for value in block]
    for block in blocks:
        found.extend(np.array(block, dtype=np.uint64))
    numbers = found.build_numbers()
    order = {value: number for number, value in enumerate(dict.fromkeys(whole))}
    assert found.length == len(whole)
    assert numbers.look(np.array(whole, dtype=np.uint64)).tolist() == [order[value] for value in whole]
    assert numbers.first_places.tolist() == [whole.index(value) for value in order]
    for begin in range(len(whole)):
        expected = [place - begin for place in sorted(map(whole.index, order)) if begin <= place < begin + 3]
        assert numbers.find_first(begin, begin + 3).tolist() == expected
