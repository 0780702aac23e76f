from __future__ import annotations

import pytest

from genre_rules import Classifier, compile_book, load_book
from genre_rules.hashtags import spell_out


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(compile_book(load_book()))


def _ask(classifier: Classifier, string: str) -> set[str]:
    return {tag.node.name for tag in classifier.classify("catalog_b", string).tags}


@pytest.mark.parametrize(
    ("string", "node"),
    [
        ("Used Bebop LPs", "Bebop"),
        ('Rocksteady 7" singles', "Rocksteady"),
        ("Rare Groove 45s", "Funk"),
        ("grime podcast 12", "Grime"),
        ("Zydeco Radio", "Cajun & Zydeco"),
        ("vallenato para bailar", "Vallenato"),
        ("Best of the Doo-Wop", "Doo-Wop"),
        ("dub techno at night", "Dub Techno"),
        ("#neosoulvibes", "Neo-Soul"),
        ("#psytrancemusic", "Psytrance"),
    ],
)
def test_a_carrier_leaves_the_genre(classifier: Classifier, string: str, node: str) -> None:
    assert _ask(classifier, string) == {node}


@pytest.mark.parametrize(
    "string",
    [
        "Used Vinyl",
        "Weekly Podcast",
        "house party playlist",
        "beach house",
        "dance for me",
        "Tango in the Night",
        "#djlife",
        "#newmusicfriday",
    ],
)
def test_a_carrier_beside_anything_else_says_nothing(classifier: Classifier, string: str) -> None:
    assert _ask(classifier, string) == set()


@pytest.mark.parametrize(
    ("string", "node"),
    [
        ("rock turco", "Rock"),
        ("pop turco", "Turkish Pop"),
        ("koreanischer pop", "K-Pop"),
        ("house française", "French House"),
        ("house deep", "Deep House"),
        ("trance uplifting", "Uplifting Trance"),
        ("jazz soul", "Soul"),
    ],
)
def test_a_people_or_an_adjective_behind_the_genre_is_read_before_it(classifier: Classifier, string: str, node: str) -> None:
    assert node in _ask(classifier, string)


def test_a_hashtag_is_spelled_with_as_few_words_as_possible() -> None:
    assert spell_out("deephousemix", {"deep", "house", "deephouse", "mix"}) == "deephouse mix"
    assert spell_out("deephousexx", {"deep", "house"}) == ""
