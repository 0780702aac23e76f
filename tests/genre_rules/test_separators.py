from __future__ import annotations

import dataclasses

import pytest

from genre_rules import Classifier, compile_book, load_book
from genre_rules.load import Rule
from genre_rules.separators import cut_list, split_path


@pytest.mark.parametrize(
    ("string", "parts"),
    [
        ("Rock; Pop|Jazz", ["Rock", "Pop", "Jazz"]),
        ("rock_pop", ["rock", "pop"]),
        ("Rock, Pop / Jazz", ["Rock", "Pop", "Jazz"]),
        ("Pop/Rock", ["Pop/Rock"]),
        ("R&B", ["R&B"]),
        ("1,000 hits", ["1,000 hits"]),
        ("Pop/Rock→Rock, hard", ["Pop/Rock→Rock, hard"]),
        ("A→B; C→D", ["A→B", "C→D"]),
        ("rock·pop • jazz", ["rock", "pop", "jazz"]),
        ("[Country] [Rock]", ["Country", "Rock"]),
        ('"electronic" "jazz"', ["electronic", "jazz"]),
        ('["k-pop", "dance-pop"]', ["k-pop", "dance-pop"]),
        ("{'rock','pop'}", ["rock", "pop"]),
        ('["rock"]', ["rock"]),
        ("(Rock) (Pop)", ["Rock", "Pop"]),
        ("Alone (feat. Nova) [Club Mix]", ["Alone (feat. Nova) [Club Mix]"]),
        ("rock,pop", ["rock", "pop"]),
        ("rock // metal", ["rock", "metal"]),
        ("#punk #ska", ["punk", "ska"]),
        ("jazz・funk", ["jazz", "funk"]),
        ("パンク・ロック", ["パンク・ロック"]),
        ("ambient::drone", ["ambient", "drone"]),
        ("rock - pop", ["rock", "pop"]),
        ("hip-hop", ["hip-hop"]),
        ("col·lectiu", ["col·lectiu"]),
        (";;", [";;"]),
        ("", [""]),
    ],
)
def test_lists_are_cut_between_names_and_not_inside(string: str, parts: list[str]) -> None:
    assert cut_list(string).parts == parts


@pytest.mark.parametrize(
    ("string", "steps"),
    [("A→B", ["A", "B"]), ("A > B -> C » D", ["A", "B", "C", "D"]), ("→", []), ("a>b", ["a>b"]), ("Rock", ["Rock"]), ("", [])],
)
def test_paths_are_cut_at_arrows_of_any_kind(string: str, steps: list[str]) -> None:
    assert split_path(string) == steps


def asked(string: str, *rules: Rule, platform: str = "catalog_b", parent: str = "") -> list[str]:
    classifier = Classifier(compile_book(dataclasses.replace(load_book(), rules=rules)))
    return [tag.node.name for tag in classifier.classify(platform, string, parent).tags]


def test_a_name_that_holds_separators_stays_whole_when_a_rule_is_written_with_them() -> None:
    rule = Rule("zork", "exact", ("Jazz, Blues, & Zork",), ("Polka",))
    assert asked("Jazz, Blues, & Zork; Techno", rule) == ["Polka", "Techno"]
    assert asked("Techno / Jazz / Blues / & Zork", rule) == ["Techno", "Polka"]
    assert asked("jazz; blues", Rule("zork", "exact", ("jazz blues",), ("Polka",))) == ["Jazz", "Blues"]
    assert asked("jazz; blues", Rule("zork", "exact", ("jazz | blues",), ("Polka",))) == ["Polka"]


def test_a_split_guard_keeps_a_string_in_one_piece_for_the_phrases() -> None:
    guard = Rule("guard", "split_guard", ("Techno / Jazz",), ())
    head = Rule("head", "phrase", ("techno jazz",), ("Polka",))
    assert asked("Techno / Jazz", guard, head) == ["Polka"]


def test_a_rule_of_kind_drop_goes_before_all_others_where_it_speaks() -> None:
    drop = Rule("drop", "drop", ("Techno",), (), sources=("store_a",))
    assert asked("Techno", drop, platform="store_a") == []
    assert asked("Techno", drop) == ["Techno"]


def test_parent_counts_by_its_meaning_and_a_named_one_takes_precedence() -> None:
    meant = Rule("meant", "exact", ("zork",), ("Polka",), parent=("Electronic",))
    named = Rule("named", "exact", ("zork",), ("Jazz",), parent=("Dance",))
    assert asked("zork", meant, platform="streamsvc_b", parent="Dance") == ["Polka"]
    assert asked("zork", meant, named, platform="streamsvc_b", parent="Dance") == ["Jazz"]
    assert asked("zork", meant, named, platform="streamsvc_b", parent="Rock") == ["Rock"], "at least its parent"
    assert asked("zork", meant, named, parent="Rock") == [], "free tags have no list that vouches for them"
