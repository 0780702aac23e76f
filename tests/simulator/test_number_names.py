from __future__ import annotations

import pytest

from catalog_store.name_keys import build_title_keys
from catalog_store.search.plain_words import read_plain_words
from simulator.number_names import LANGUAGES, spell_number

AMBIGUOUS = {("fr", 10), ("fr", 11), ("fr", 100), ("es", 1000), ("it", 6), ("pt", 11), ("pt", 1000)}
"""Words with another meaning, where they stand alone: `dix`, `onze`, `cent`, `mil`, `sei`."""
VALUES = (*range(2, 130), *range(195, 205), 342, 500, 777, *range(990, 1012), *range(1895, 2030, 3), 5000, 9999)


@pytest.mark.parametrize(
    ("value", "language", "words"),
    [
        (22, "en", "twenty two"),
        (1999, "en", "nineteen ninety nine"),
        (1901, "en", "nineteen oh one"),
        (1999, "de", "neunzehnhundertneunundneunzig"),
        (2017, "de", "zweitausendsiebzehn"),
        (71, "fr", "soixante et onze"),
        (99, "fr", "quatre-vingt-dix-neuf"),
        (200, "fr", "deux cents"),
        (22, "es", "veintidós"),
        (100, "es", "cien"),
        (28, "it", "ventotto"),
        (1992, "it", "millenovecentonovantadue"),
        (105, "pt", "cento e cinco"),
    ],
)
def test_number_is_spelled_as_people_say_it(value: int, language: str, words: str) -> None:
    assert spell_number(value, language) == words


@pytest.mark.parametrize("language", LANGUAGES)
def test_search_reads_spelled_numbers_as_digits(language: str) -> None:
    wrong = [
        value
        for value in VALUES
        if (language, value) not in AMBIGUOUS
        and read_plain_words(build_title_keys(f"Song {spell_number(value, language)}").core) != ("song", str(value))
    ]
    assert wrong == []


def test_word_with_another_meaning_is_a_number_beside_another_one() -> None:
    assert read_plain_words("mil") == ("mil",)
    assert read_plain_words("mil novecientos noventa y nueve") == ("1999",)
    assert read_plain_words("i et moi") == ("i", "et", "moi")
