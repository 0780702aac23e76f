"""Plain words: numbers in six languages, numerals, classical terms in several languages, years as they are said."""

from __future__ import annotations

import pytest

from catalog_store.name_keys import build_title_keys
from catalog_store.search.plain_words import list_other_spellings, read_plain_words


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("ninety nine luftballons", "99 Luftballons"),
        ("neunundneunzig luftballons", "99 Luftballons"),
        ("fünfundzwanzig Jahre", "25 Jahre"),
        ("veinticinco horas", "25 Horas"),
        ("trentatre", "33"),
        ("einundzwanzig", "21"),
        ("hundertvierundneunzig Länder", "194 Länder"),
        ("zweihundert", "200"),
        ("duecento", "200"),
        ("mille", "1000"),
        ("nineteen oh one", "1901"),
        ("in the year twenty five twenty five", "In the Year 2525"),
        ("life in technicolor two", "Life in Technicolor ii"),
        ("klavierkonzert d-moll kv 466", "Piano Concerto D minor K. 466"),
        ("flötenkonzert nr. 1", "Flute Concerto No. 1"),
        ("polonaise cis-moll opus 26", "Polonaise C sharp minor, Op. 26"),
        ("symphonie es-dur", "Symphony in E flat major".replace(" in", "")),
        ("the cat and the hat", "Cat Hat"),
        ("me w/o you", "Me Without You"),
        ("すきやき", "スキヤキ"),
    ],
)
def test_two_ways_to_write_a_title_have_the_same_plain_words(typed: str, shown: str) -> None:
    assert read_plain_words(build_title_keys(typed).core) == read_plain_words(build_title_keys(shown).core)


def test_letters_of_an_abbreviation_are_no_words() -> None:
    assert read_plain_words(build_title_keys("W.O.L.D.").core) == ("w", "o", "l", "d")


def test_name_of_articles_alone_keeps_them() -> None:
    assert read_plain_words("the the") == ("the", "the")


def test_digits_and_terms_have_other_spellings_to_look_up() -> None:
    assert {"seven", "sieben", "sept", "siete", "sette", "sete"} <= set(list_other_spellings("7"))
    assert "sinfonie" in list_other_spellings("symphony")
    assert list_other_spellings("velvet") == []
