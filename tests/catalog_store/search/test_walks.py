"""Tests that the compiled walks agree with plain Python and stay inside their arrays, whatever the arrays hold."""

from __future__ import annotations

from itertools import accumulate
from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from catalog_store.layered_order import IN_BASE, PLACE_BITS
from catalog_store.search.layout import FIELD_SEPARATOR, POSTINGS_CAP, SHORT_RANKS, TAG_BITS
from catalog_store.search.titles import Title, encode_ranks
from catalog_store.search.walks import Postings, SortedWords, Titles

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUCKET_BITS = 3
BUCKET_SHIFT = 64 - BUCKET_BITS
WORD = st.text("abcd\u00e9\u6771\U0001f3b5", min_size=1, max_size=9)
HASH = st.integers(0, 2**6 - 1).map(lambda top: top << 58)
"""Few buckets and tags: pairs meet."""


def postings(held: dict[int, list[int]], dtype: type[np.unsignedinteger[Any]] = np.uint32) -> Postings:
    """Return the postings of documents by the hash of a pair."""
    return open_postings(*postings_arrays(held, dtype))


def postings_arrays(
    held: dict[int, list[int]], dtype: type[np.unsignedinteger[Any]] = np.uint32
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the arrays of documents by the hash of a pair."""
    entries = sorted((pair >> (BUCKET_SHIFT - TAG_BITS), document) for pair, documents in held.items() for document in documents)
    counts = np.bincount([place >> TAG_BITS for place, _ in entries], minlength=2**BUCKET_BITS)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(dtype)
    tags = np.array([place & (1 << TAG_BITS) - 1 for place, _ in entries], dtype=np.uint16)
    return starts, tags, np.array([document for _, document in entries], dtype=np.uint32)


NO_PAIRS = np.zeros(3, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint32)
EVERY, NO_PLACES = np.empty(0, np.uint8), np.empty(0, np.uint32)


def open_postings(*base: NDArray[Any]) -> Postings:
    return Postings(base, NO_PAIRS, BUCKET_BITS, 1, EVERY, NO_PLACES)  # type: ignore[arg-type] - three arrays


def in_base(number: int) -> int:
    """Return the document of a number of the base."""
    return number << PLACE_BITS | IN_BASE


@given(
    st.dictionaries(HASH, st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True).map(sorted), max_size=12),
    st.lists(st.tuples(st.lists(HASH, max_size=4), st.lists(HASH, max_size=4)), max_size=3),
    st.sampled_from([np.uint32, np.uint64]),
)
def test_documents_of_pairs_are_weighted_by_how_few_each_pair_has(
    held: dict[int, list[int]], grids: list[tuple[list[int], list[int]]], dtype: type[np.unsignedinteger[Any]]
) -> None:
    pairs = [one ^ other for left, right in grids for one in left for other in right]
    weights: dict[int, float] = {}
    for pair in pairs:
        for document in map(in_base, held.get(pair, [])):
            weights[document] = weights.get(document, 0.0) + 1 / (1 + log2(len(held[pair])))
    counts, documents, evidence = postings(held, dtype).look(grids)
    assert counts == [len(held.get(pair, [])) for pair in pairs]
    assert dict(zip(documents, evidence, strict=True)) == weights
    assert documents == sorted(weights)


def test_hashes_use_all_their_bits() -> None:
    pair = 2**64 - 1
    assert postings({pair: [7], 0: [8]}).look([([pair ^ 5], [5])])[1] == [in_base(7)]


LISTS = st.dictionaries(HASH, st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True).map(sorted), max_size=12)
DELTA_BITS = 1


@given(LISTS, LISTS, st.sets(st.integers(0, 40)), st.lists(st.integers(0, 41), min_size=41, max_size=41).map(sorted))
def test_postings_of_base_and_delta_are_read_as_one(
    base: dict[int, list[int]], delta: dict[int, list[int]], dead: set[int], places: list[int]
) -> None:
    entries = sorted((pair >> (BUCKET_SHIFT - TAG_BITS), document) for pair, documents in delta.items() for document in documents)
    ends = np.cumsum(np.bincount([known >> (TAG_BITS + BUCKET_BITS - DELTA_BITS) for known, _ in entries], minlength=2**DELTA_BITS))
    columns = (np.array([entry[place] for entry in entries], dtype=np.uint32) for place in (0, 1))
    bitmap = np.packbits([document in dead for document in range(41)], bitorder="little")
    layers = postings_arrays(base), (np.array([0, *ends], dtype=np.uint32), *columns)
    opened = Postings(*layers, BUCKET_BITS, DELTA_BITS, bitmap, np.array(places, dtype=np.uint32))  # type: ignore[arg-type]
    for pair in {*base, *delta}:
        expected = [in_base(document) for document in base.get(pair, []) if document not in dead]
        expected += [places[document] << PLACE_BITS | document for document in delta.get(pair, [])]
        assert opened.look([([pair], [0])])[:2] == ([len(expected)], sorted(expected))


def test_no_more_postings_than_the_cap_are_read() -> None:
    base = np.array([0, POSTINGS_CAP + 50], np.uint32).repeat([1, 2**BUCKET_BITS])
    tags, documents = np.zeros(POSTINGS_CAP + 50, np.uint16), np.arange(POSTINGS_CAP + 50, dtype=np.uint32)
    delta = np.array([0, 2, 2], np.uint32), np.zeros(2, np.uint32), np.arange(2, dtype=np.uint32)
    dead = np.packbits(np.arange(POSTINGS_CAP + 50) < 10, bitorder="little")
    opened = Postings((base, tags, documents), delta, BUCKET_BITS, DELTA_BITS, dead, np.array([3, 600], np.uint32))
    (count,), found, _ = opened.look([([0], [0])])
    # The first document of the delta replaces the last of the base, and the second comes too late.
    assert count == POSTINGS_CAP
    assert found == [3 << PLACE_BITS, *map(in_base, range(10, 9 + POSTINGS_CAP))]


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    starts, tags, documents = np.zeros(2**BUCKET_BITS + 1, np.uint32), np.zeros(2, np.uint16), np.zeros(2, np.uint32)
    with pytest.raises(ValueError, match="do not belong together"):
        open_postings(starts[:-1], tags, documents)
    with pytest.raises(ValueError, match="do not belong together"):
        open_postings(starts, tags, documents[:1])
    with pytest.raises(ValueError, match="uint32 or uint64"):
        open_postings(starts.astype(np.int32), tags, documents)


def test_starts_beyond_the_postings_are_not_followed() -> None:
    starts = np.full(2**BUCKET_BITS + 1, 2**31, np.uint32)
    starts[0] = 0
    # The entries behind the first are valid memory too, so only a bounds check stops the walk.
    tags, documents = np.zeros(10, np.uint16)[:1], np.arange(10, dtype=np.uint32)[:1]
    assert open_postings(starts, tags, documents).look([([0], [0, 1 << 63])]) == ([1, 0], [in_base(0)], [1.0])


def title_arrays(titles: list[list[int]], words: list[str]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], bytes]:
    """Return the arrays of a layer that `Titles` takes, for titles as ranks."""
    units, sizes = encode_ranks(np.array([rank for title in titles for rank in title], dtype=np.uint32))
    lengths = iter(sizes.tolist())
    starts = np.cumsum([0, *(sum(next(lengths) for _ in title) for title in titles)]).astype(np.uint32)
    texts = [word.encode() for word in words]
    return starts, units, np.array([*accumulate(map(len, texts), initial=0)], dtype=np.uint64), b"".join(texts)


WORDS = [f"w\u00f6rd{number}" for number in range(60_000)] + [f"{FIELD_SEPARATOR}remix:a", "!!!"]


@given(st.lists(st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=6), min_size=1, max_size=8))
def test_titles_of_any_size_are_read_back(titles: list[list[int]]) -> None:
    documents = [*map(in_base, range(len(titles)))]
    pool = pool_of(titles)
    counts = np.empty(len(titles), np.int64)
    pool.count_words(np.array(documents), counts)
    assert counts.tolist() == [len(title) for title in titles]
    for title, found in zip(titles, pool.of(documents), strict=True):
        texts = [WORDS[rank] for rank in title]
        core = " ".join(text for text in texts if not text.startswith(FIELD_SEPARATOR))
        variant = "".join(text[1:] for text in texts if text.startswith(FIELD_SEPARATOR))
        assert found == Title(core, variant)


def test_title_longer_than_any_is_read_back() -> None:
    assert pool_of([[3, SHORT_RANKS + 7] * 5_000]).of([in_base(0)])[0].core == " ".join([WORDS[3], WORDS[SHORT_RANKS + 7]] * 5_000)


def pool_of(titles: list[list[int]]) -> Titles:
    return Titles(title_arrays(titles, WORDS), title_arrays([[2]], WORDS[:3]))


def test_unknown_document_or_word_raises_index_error() -> None:
    pool = pool_of([[1], [2]])
    with pytest.raises(IndexError, match="no document 2"):
        pool.of([in_base(0), in_base(2)])
    with pytest.raises(IndexError, match="a word of rank 65535"):
        pool_of([[1], [SHORT_RANKS + 16_383]]).of([in_base(1)])
    damaged = (*title_arrays([[0]], ["a"])[:2], np.array([2**40, 1], np.uint64), b"a")
    with pytest.raises(IndexError, match="a word of rank 0"):
        Titles(damaged, damaged).of([in_base(0)])
    with pytest.raises(IndexError, match="no document 1"):
        pool.of([1])
    with pytest.raises(OverflowError):
        pool.of([-1])


def sorted_words(words: list[str], stride: int = 2, longest_counted: int = 8) -> tuple[SortedWords, list[str]]:
    """Return the opened words, and the words in their order."""
    ordered = sorted({*words}, key=lambda word: (min(len(word), longest_counted), word.encode()))
    lines = [f"{word}\n".encode() for word in ordered]
    starts = [*accumulate(map(len, lines), initial=1)]
    strides = np.array([*starts[:-1][::stride], starts[-1]], dtype=np.uint32)
    return SortedWords(b"\n" + b"".join(lines), strides, stride, longest_counted), ordered


@given(st.lists(WORD, max_size=30), WORD, st.integers(1, 5))
def test_a_word_has_its_place_and_others_have_none(words: list[str], other: str, stride: int) -> None:
    opened, ordered = sorted_words(words, stride)
    assert [opened.place(word) for word in ordered] == [*range(len(ordered))]
    assert opened.place(other) == (ordered.index(other) if other in ordered else -1)
    assert [opened.place(text) for text in ("", "zzz", f"{other}\n")] == [-1] * 3


@given(st.lists(WORD, max_size=40), WORD, st.integers(0, 3), st.integers(1, 9), st.integers(1, 2))
def test_close_words_are_those_with_the_beginning_and_within_so_many_edits(
    words: list[str], word: str, kept: int, characters: int, most: int
) -> None:
    opened, ordered = sorted_words(words)
    counted = min(characters, 8)
    expected = {
        (OSA.distance(word, other), other)
        for other in ordered
        if min(len(other), 8) == counted and other.startswith(word[:kept]) and OSA.distance(word, other) <= most
    }
    found = opened.close(word, kept, characters, most, 1_000, False)
    # The strides that hold the first and the last of them may hold words of other lengths, too.
    assert expected <= {*found}
    assert all(other in ordered and other.startswith(word[:kept]) and OSA.distance(word, other) == edits <= most for edits, other in found)
    beside = opened.close(word, kept, characters, most, 1_000, True)
    assert {*found} <= {*beside}
    assert all(other in ordered and OSA.distance(word, other) == edits <= most for edits, other in beside)


def test_no_more_words_are_looked_at_than_asked() -> None:
    opened, _ = sorted_words([f"a{first}{second}" for first in "bcdefghijk" for second in "bcdefghijk"])
    assert len(opened.close("azb", 1, 3, 1, 1_000, False)) == 10
    assert len(opened.close("azb", 1, 3, 1, 20, False)) == 2


@given(st.text("ab", min_size=60, max_size=600), st.lists(st.tuples(st.integers(0, 599), st.sampled_from("abc\u6771")), max_size=3))
def test_long_words_are_compared_too(word: str, changes: list[tuple[int, str]]) -> None:
    letters = list(word)
    for place, letter in changes:
        letters[place % len(letters)] = letter
    other = "".join(letters)
    edits = OSA.distance(word, other)
    assert sorted_words([other], longest_counted=255)[0].close(word, 0, len(other), 2, 1, False) == ([(edits, other)] if edits <= 2 else [])


def test_starts_beyond_the_texts_are_not_followed() -> None:
    opened = SortedWords(b"\nab\ncd\n", np.array([1, 2**31, 2**32 - 1], np.uint32), 1, 255)
    assert (opened.place("ab"), opened.place("zz")) == (-1, -1)
    assert {*opened.close("cd", 1, 2, 1, 100, True)} <= {(0, "cd"), (1, "ab")}
    falling = SortedWords(b"\nab\ncd\n", np.array([4, 1, 0], np.uint32), 1, 255)
    assert (falling.place("ab"), falling.close("ab", 1, 2, 1, 100, True)) == (-1, [])
    with pytest.raises(ValueError, match="the end of the words is not stored"):
        SortedWords(b"\n", np.array([], np.uint32), 1, 255)
