from __future__ import annotations

import re

import pytest

from genre_rules import Classifier, compile_book, load_book
from genre_rules.frames import Frame


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(compile_book(load_book()))


def test_frame_asks_for_its_names_in_order_unless_a_word_forbids_it() -> None:
    frame = Frame(re.compile("(?P<genre>.+) in spanish"), ("latin {genre}", "{genre}"), frozenset({"my"}))
    assert frame.find_names("rap in spanish") == ["latin rap", "rap"]
    assert frame.find_names("rap in french") == frame.find_names("my rap in spanish") == []


def test_place_of_a_frame_must_be_known() -> None:
    frame = Frame(re.compile("(?P<genre>.+) from (?P<place>.+)"), ("{genre}",))
    assert frame.find_names("jazz from san juan", frozenset(("san", "juan"))) == ["jazz"]
    assert frame.find_names("jazz from san hell", frozenset(("san", "juan"))) == frame.find_names("jazz from hell") == []


@pytest.mark.parametrize(
    ("string", "nodes"),
    [
        ("rap in spanish", ["Latin Hip-Hop"]),
        ("jazz in spanish", ["Latin Jazz"]),
        ("children's music in spanish", ["Children's Music"]),
        ("metal in portuguese", ["Metal"]),
        ("folk music of iceland", ["Folk"]),
        ("punk tapatiense", ["Punk"]),
        ("shoegaze marseillais", ["Shoegaze"]),
        ("live in spanish harlem", []),
        ("music in my head", []),
        ("rock casino", []),
        ("lost in french", []),
    ],
)
def test_language_place_and_people_around_a_whole_name_are_read(classifier: Classifier, string: str, nodes: list[str]) -> None:
    assert [tag.node.name for tag in classifier.classify("catalog_b", string).tags] == nodes
