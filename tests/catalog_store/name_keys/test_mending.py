"""Which misspelt version words are set right: by what stands beside them, by their length, and unless they are words themselves."""

from __future__ import annotations

import pytest

from catalog_store.name_keys.mending import KNOWN_WORDS, mended


@pytest.mark.parametrize(
    ("tokens", "right"),
    [
        (["vesion"], ["version"]),  # six letters: enough by itself
        (["extendde"], ["extended"]),
        (["remxi"], ["remxi"]),  # five letters by itself
        (["remxi", "extended"], ["remix", "extended"]),
        (["edti", "radio"], ["edit", "radio"]),
        (["mxi", "extended"], ["mix", "extended"]),  # three letters, swapped
        (["mxi"], ["mxi"]),
        (["mx", "extended"], ["mx", "extended"]),  # two are too few
        (["mi", "extended"], ["mi", "extended"]),
    ],
)
def test_word_is_mended_from_the_length_that_its_neighbours_allow(tokens: list[str], right: list[str]) -> None:
    assert mended(tokens) == right


@pytest.mark.parametrize("word", ["originale", "versione", "vocals", "speed", "zive", "refix", "memo"])
def test_known_version_word_stays_itself_however_near_another(word: str) -> None:
    assert word in KNOWN_WORDS
    assert mended([word, "remix"]) == [word, "remix"]
    assert mended([word]) == [word]


@pytest.mark.parametrize("word", ["alive", "aversion", "local", "love", "remit", "slower", "originals", "conversion"])
def test_word_of_its_own_stays_itself_however_near_a_version_word(word: str) -> None:
    assert mended([word, "remix"]) == [word, "remix"]
    assert mended([word]) == [word]
