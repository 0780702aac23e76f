"""Tests of the correction of misspelt version words: by neighbours and length, never for words of the language."""

from __future__ import annotations

from string import ascii_lowercase

import pytest
from rapidfuzz.distance import OSA

from catalog_store.name_keys.spelling_correction import KNOWN_WORDS, SHORTEST, correct_unambiguous, correct_words
from catalog_store.name_keys.version_words import CORRECTABLE_WORDS, NOT_MISSPELLED


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
def test_word_is_corrected_from_the_length_that_its_neighbours_allow(tokens: list[str], right: list[str]) -> None:
    assert correct_words(tokens) == right


@pytest.mark.parametrize("word", ["originale", "versione", "vocals", "speed", "zive", "refix", "memo"])
def test_known_version_word_stays_itself_however_near_another(word: str) -> None:
    assert word in KNOWN_WORDS
    assert correct_words([word, "remix"]) == [word, "remix"]
    assert correct_words([word]) == [word]


@pytest.mark.parametrize("word", ["alive", "aversion", "local", "love", "remit", "slower", "originals", "conversion"])
def test_word_of_its_own_stays_itself_however_near_a_version_word(word: str) -> None:
    assert correct_words([word, "remix"]) == [word, "remix"]
    assert correct_words([word]) == [word]


def slips(word: str) -> set[str]:
    """Return the word with one letter changed, added, left out, or swapped with the next."""
    places = range(len(word))
    changed = {word[:i] + letter + word[i + 1 :] for i in places for letter in ascii_lowercase}
    added = {word[:i] + letter + word[i:] for i in range(len(word) + 1) for letter in ascii_lowercase}
    left_out = {word[:i] + word[i + 1 :] for i in places}
    swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in places[:-1]}
    return changed | added | left_out | swapped


@pytest.mark.parametrize("word", [word for word in CORRECTABLE_WORDS if len(word) > SHORTEST + 1])
def test_one_typing_error_is_corrected_beside_a_version_word(word: str) -> None:
    for slip in slips(word) - KNOWN_WORDS - NOT_MISSPELLED:
        (right, _) = correct_words([slip, "remix"])
        assert right in CORRECTABLE_WORDS, slip
        assert OSA.distance(right, slip) == 1, slip


@pytest.mark.parametrize(
    ("tokens", "right"),
    [
        (["lvie", "at", "tokyo"], ["live", "at", "tokyo"]),
        (["lixe", "at", "tokyo"], ["live", "at", "tokyo"]),
        (["lvie", "in", "tokyo"], ["live", "in", "tokyo"]),
        (["lixe", "in", "tokyo"], ["lixe", "in", "tokyo"]),  # `in` is weak evidence: swapped letters only
        (["lvie", "tokyo"], ["lvie", "tokyo"]),  # no evidence of a version word
        (["remxi", "tokyo"], ["remix", "tokyo"]),  # five letters, and another word
        (["spde", "up"], ["sped", "up"]),
        (["zive", "at", "tokyo"], ["zive", "at", "tokyo"]),  # a version word itself
        (["love", "at", "home"], ["love", "at", "home"]),  # a word itself
        (["mixx", "extended"], ["mixx", "extended"]),  # `mix` is short: swapped letters only
        (["liv", "extended"], ["liv", "extended"]),
    ],
)
def test_short_word_is_corrected_by_its_neighbour(tokens: list[str], right: list[str]) -> None:
    assert correct_words(tokens) == right


@pytest.mark.parametrize(
    ("tokens", "right"),
    [
        (["vesion"], ["version"]),
        (["remix", "vesion"], ["remix", "version"]),
        (["remxi", "version"], ["remxi", "version"]),  # too short to be sure of
        (["extendde", "tiestos"], ["extendde", "tiestos"]),  # a word that stays unknown
    ],
)
def test_words_with_a_reading_are_corrected_only_into_version_words(tokens: list[str], right: list[str]) -> None:
    assert correct_unambiguous(tokens) == right
