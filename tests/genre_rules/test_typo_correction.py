from __future__ import annotations

import pytest

from genre_rules import Classifier, compile_book, load_book
from genre_rules.typo_correction import TypoCorrector


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("progresssive", "progressive"),
        ("progresive", "progressive"),
        ("prograssive", "progressive"),
        ("porgressive", "progressive"),
        ("progressives", "progressive"),
        ("progressiveo", "progressiveo"),
        ("brogressive", "brogressive"),
        ("pgoressive", "pgoressive"),
        ("garbage", "garbage"),
        ("shoegazr", "shoegazr"),
    ],
)
def test_one_typing_error_in_a_long_word_is_corrected_and_nothing_else(word: str, expected: str) -> None:
    assert TypoCorrector(["progressive", "garage", "shoegaze", "shoegaza"]).correct(word) == expected


def test_typing_error_is_corrected_only_in_unknown_strings() -> None:
    classifier = Classifier(compile_book(load_book()))
    assert classifier.classify("catalog_b", "psychedleic rock").mains == ("Rock",)
    assert classifier.classify("catalog_b", "electronicat").mains == ()
    assert not classifier.classify("catalog_b", "qwertzuiop").is_known
