from __future__ import annotations

import pytest

from genre_rules import Classifier, compile_book, load_book
from genre_rules.slips import Slips


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
def test_one_slip_in_a_long_word_is_mended_and_nothing_else(word: str, expected: str) -> None:
    assert Slips(["progressive", "garage", "shoegaze", "shoegaza"]).mend(word) == expected


def test_a_slip_is_mended_only_where_nothing_knows_the_string() -> None:
    classifier = Classifier(compile_book(load_book()))
    assert classifier.classify("catalog_b", "psychedleic rock").mains == ("Rock",)
    assert classifier.classify("catalog_b", "electronicat").mains == ()
    assert not classifier.classify("catalog_b", "qwertzuiop").is_known
