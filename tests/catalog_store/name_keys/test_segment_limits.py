"""Tests of folding and segments at their limits: each kind of sign, and each length or word count that changes the reading."""

from __future__ import annotations

import pytest

from catalog_store.name_keys.folding import compact, extract_words, fold, is_bare, normalize_display
from catalog_store.name_keys.segments import Segment, read_segment


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("", ""),
        ("''`", ""),
        (" A  b ", "a b"),
        ("a\u3000b\tc", "a b c"),
        ("A$AP", "asap"),
        ("$100", "100"),
        ("A$$", "ass"),
        ("P!nk", "pink"),
        ("a!b!c", "aibic"),
        ("Hi! you", "hi! you"),
        ("R&amp;amp;B", "r&b"),
        ("Don\u2019t", "dont"),
        ("Beyonc\u00e9 \u2013 \u00abX\u00bb", 'beyonce - "x"'),
        ("Stra\u00dfe", "strasse"),
    ],
)
def test_fold_removes_differences_of_spelling(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    ("folded", "words"),
    [
        ("", ""),
        ("...", ""),
        ("a & b + c", "a and b and c"),
        ("rock n roll", "rock and roll"),
        ("salt n pe n pa", "salt and pe and pa"),
        ("t n t", "t n t"),
        ("ab n c", "ab n c"),
        ("a - b (c)", "a b c"),
    ],
)
def test_words_are_letters_and_digits_with_single_spaces(folded: str, words: str) -> None:
    assert extract_words(folded) == words
    assert is_bare(words) or words == ""
    assert compact(words) == "".join(words.split())


@pytest.mark.parametrize(("folded", "is_one"), [("ab 1", True), ("a-b", False), ("\u00e9 1", True), ("\u00e9-", False), ("\u590f", True)])
def test_bare_text_has_no_signs(folded: str, is_one: bool) -> None:  # noqa: FBT001
    assert is_bare(folded) is is_one


def test_display_keeps_case_and_accents() -> None:
    assert normalize_display(" \uff21\u2010\u00c9\u200b  (b) ") == "A-\u00c9 (b)"


@pytest.mark.parametrize(
    ("segment", "read"),
    [
        ("(", Segment()),
        ("(!?", Segment()),
        ("fmira & kask", Segment(credit="mira and kask")),
        # behind a bracket: stamps, one digit, notes, more of the title
        (") 130 11a", Segment()),
        (") 5", Segment()),
        (") 55", Segment(kept="55")),
        (") 59", Segment(kept="59")),
        (") 60", Segment()),
        (") 229", Segment()),
        (") 230", Segment(kept="230")),
        (") bpm", Segment()),
        (") 12b 13b", Segment(kept="12b 13b")),
        (") radio edit", Segment(tags=("radio",))),
        (") again", Segment(kept="again")),
        # stamps: two or three words, one of them a tempo
        ("(132 ebm", Segment()),
        ("(132", Segment(kept="132")),
        ("(102 4a 98", Segment()),
        ("(102 4a 98 5a", Segment(kept="102 4a 98 5a")),
        ("(4a 5b", Segment(kept="4a 5b")),
        # producers
        ("(prod kask", Segment(notes=("produced",))),
        ("(prod. by kask", Segment(notes=("produced",))),
        ("(prod", Segment(kept="prod")),
        # guests
        ("(& metro boomin", Segment(credit="metro boomin")),
        ("(&", Segment(kept="and")),
        ("(feat mira", Segment(credit="mira")),
        ("(feat", Segment(kept="feat")),
        ("(with mira", Segment(credit="mira")),
        ("(with you", Segment(kept="with you")),
        ("(with strings", Segment(tags=("version:strings",))),
        ("(with strings mira", Segment(credit="strings mira")),
        ("(w/ mira", Segment(credit="mira")),
        ("(w mira", Segment(kept="w mira")),
        ("(part. mira", Segment(credit="mira")),
        ("(part mira", Segment(kept="part mira")),
        ("(part. ii", Segment(kept="part ii")),
        ("(in duet with mira", Segment(credit="mira")),
        ("(in love", Segment(kept="in love")),
        # opponents
        ("(kask vs mira", Segment(credit="kask vs mira")),
        ("(vs mira", Segment(kept="vs mira")),
        ("(kask vs", Segment(kept="kask vs")),
        ("(kask x mira", Segment(credit="kask x mira")),
        ("(x mira", Segment(kept="x mira")),
        ("(2 x 4", Segment(kept="2 x 4")),
        ("(kask x the mira", Segment(kept="kask x the mira")),
        # films
        ('(from "rocky iv"', Segment(notes=("soundtrack:rocky iv",))),
        ("(from the inside", Segment(kept="from the inside")),
        ("-from the inside", Segment(notes=("soundtrack:inside",))),
        ("(original motion picture soundtrack", Segment(notes=("soundtrack",))),
        # several notes, sizes
        ("(radio edit / remastered 2011", Segment(tags=("radio",), notes=("remaster:2011",))),
        ('(12" mix', Segment(tags=("extended",))),
        ("(7 inch mix", Segment()),
        ("(wholly other words", Segment(kept="wholly other words")),
    ],
)
def test_segment_is_read_by_how_it_is_set_off_and_by_its_words(segment: str, read: Segment) -> None:
    assert read_segment(segment) == read
