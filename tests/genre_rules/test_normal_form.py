from __future__ import annotations

import pytest

from genre_rules import Classifier, compile_book, load_book
from genre_rules.normal_form import Spellings


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(compile_book(load_book()))


def test_words_of_scripts_without_spaces_are_found_inside_others_and_the_longest_first() -> None:
    spellings = Spellings({"rock": ["ロック"], "punk": ["パンク"], "hard rock": ["ハードロック"], "soul": ["соул"]})
    assert spellings.normalise("パンクロック") == spellings.normalise("パンク・ロック") == "punk rock"
    assert spellings.normalise("ハードロック") == "hard rock"
    assert spellings.normalise("соул") == "soul"
    assert spellings.normalise("соулмейт") == "соулмеит"


@pytest.mark.parametrize(
    ("string", "nodes"),
    [
        ("русский рок", ["Rock"]),
        ("ブラックメタル", ["Black Metal"]),
        ("独立摇滚", ["Indie Rock"]),
        ("인디록", ["Indie Rock"]),
        ("κλασική μουσική", ["Classical"]),
        ("موسيقى كلاسيكية", ["Classical"]),
        ("מוזיקה אלקטרונית", ["Electronic"]),
        ("электронная музыка", ["Electronic"]),
        ("ロックマン", []),
        ("ハウス食品", []),
        ("русский", []),
        ("音楽", []),
    ],
)
def test_genres_are_read_in_other_scripts_and_other_words_are_not(classifier: Classifier, string: str, nodes: list[str]) -> None:
    assert [tag.node.name for tag in classifier.classify("catalog_b", string).tags] == nodes
