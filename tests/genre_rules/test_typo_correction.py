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


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("dubsteb", "dubstep"),
        ("tehcno", "techno"),
        ("houuse", "house"),
        ("houze", "houze"),
        ("regae", "reggae"),
        ("raggae", "raggae"),
        ("technology", "technology"),
    ],
)
def test_single_word_becomes_a_short_name_only_by_a_slip(word: str, expected: str) -> None:
    names = ["dubstep", "techno", "house", "reggae"]
    assert TypoCorrector(names, names=names).correct(word, is_alone=True) == expected


def test_word_beside_another_becomes_a_word_of_a_name_but_a_real_word_stays() -> None:
    corrector = TypoCorrector([], names=["death metal", "house"], real_words=["mental", "horse"])
    assert [corrector.correct(word) for word in ("deeth", "metel", "houze", "mtal", "mental", "horse", "mouse")] == [
        *("death", "metal", "house", "mtal", "mental", "horse", "mouse")
    ]


def test_word_spelt_by_its_sound_becomes_a_word_of_a_name_that_begins_alike() -> None:
    corrector = TypoCorrector([], names=["punk rock", "bhangra", "synth pop"], real_words=["punch"])
    words = ("punck", "banghra", "sinth", "punch", "zynth", "pank")
    assert [corrector.correct(word) for word in words] == ["punk", "bhangra", "synth", "punch", "zynth", "pank"]
    assert corrector.correct("punck", is_alone=True) == "punck"


def test_whole_string_becomes_a_name_of_several_words_wherever_its_spaces_stand() -> None:
    corrector = TypoCorrector(
        [], wholes={"postpunk": "post punk", "heavymetal": "heavy metal", "dubstep": "dubstep"}, real_words=["mental"]
    )
    assert corrector.correct_whole(["post", "pnuk"]) == corrector.correct_whole(["postpunnk"]) == "post punk"
    assert corrector.correct_whole(["heavy", "mental"]) == corrector.correct_whole(["dubsteb"]) == corrector.correct_whole(["pnk"]) == ""


@pytest.mark.parametrize(
    "name", ["heavy mental", "horse music", "mouse house", "county music", "hose", "trace", "black medal", "soft ruck"]
)
def test_everyday_word_close_to_a_genre_is_no_genre(name: str) -> None:
    answer = Classifier(compile_book(load_book())).classify("catalog_b", name)
    assert not [tag for tag in answer.tags if "as '" in " ".join(answer.path)]


def test_typing_error_is_corrected_only_in_unknown_strings() -> None:
    classifier = Classifier(compile_book(load_book()))
    assert classifier.classify("catalog_b", "psychedleic rock").mains == ("Rock",)
    assert classifier.classify("catalog_b", "electronicat").mains == ()
    assert not classifier.classify("catalog_b", "qwertzuiop").is_known
