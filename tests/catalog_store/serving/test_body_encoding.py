from __future__ import annotations

import random

import pytest

from catalog_store.serving.body_encoding import DICTIONARY_BYTES, compress, create_decompressor, train_dictionary


def made_up(count: int) -> list[bytes]:
    chance = random.Random(7)  # noqa: S311 - test data
    return [
        f'{{"id":{n},"title":"Song {chance.random()}","isrc":"GBAYE{n:07d}"}}\n{{"credit":"Artist {n % 50}"}}'.encode()
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 5, 12_000])
def test_bodies_are_read_back_at_any_size_of_the_catalog(count: int) -> None:
    bodies = made_up(count)
    dictionary = train_dictionary(bodies)
    decompress = create_decompressor(dictionary).decompress
    assert [decompress(frame) for frame in compress(bodies, dictionary)] == bodies


def test_the_same_samples_train_the_same_dictionary_and_it_pays() -> None:
    bodies = made_up(12_000)
    dictionary = train_dictionary(bodies)
    assert dictionary == train_dictionary(bodies)
    assert len(dictionary) <= DICTIONARY_BYTES
    assert sum(map(len, compress(bodies, dictionary))) < 0.5 * sum(map(len, bodies))
