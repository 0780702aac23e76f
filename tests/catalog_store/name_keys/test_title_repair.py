"""Tests of the rewrites of titles before the grammar: each rule at its limit, and near titles that stay unchanged."""

from __future__ import annotations

import pytest

from catalog_store.name_keys.title_repair import decode_entities, repair_title


@pytest.mark.parametrize(
    ("folded", "repaired"),
    [
        # censored words, but not every star
        ("f**k it", "fuck it"),
        ("f-ck it", "fuck it"),
        ("sh-t up", "shit up"),
        ("bad a** b", "bad ass b"),
        ("a*s", "ass"),
        # feet and deeds
        ("6 ft under", "6 feet under"),
        ("six ft. under", "six feet under"),
        ("60 ft. tall", "60 feet tall"),
        ("amazing feat of love", "amazing feat-of love"),
        # credits and versions without a space
        ("song feat.mira", "song feat. mira"),
        ("song (ft.mira)", "song (ft. mira)"),
        ("song feat.\u521d\u97f3", "song feat. \u521d\u97f3"),
        ("song (twinver.)", "song (twin ver.)"),
        ("song -livever.-", "song  (live ver.)"),
        ("song ~acousticver. ~", "song (acoustic ver.)"),
        ("song (remotever.)", "song (remote ver.)"),
        ("song ft.mira", "song ft. mira"),
        ("\u66f2feat.mira", "\u66f2 feat. mira"),
        # subtitles and versions between two dashes
        ("\u66f2~sub~", "\u66f2 (sub)"),
        ("\u66f2 ~sub~ (live)", "\u66f2 (sub) (live)"),
        ("\u66f2-sub-", "\u66f2 (sub)"),
        ("song -sub-", "song  (sub)"),
        ("song-tv size-", "song (tv size)"),
        # accidentals
        ("e\u266d major", "e flat  major"),
        ("c\u266f minor", "c sharp  minor"),
        ("c# minor", "c sharp minor"),
        ("c# dur", "c sharp dur"),
        # an article behind the title
        ("silence, the", "the silence"),
        ("silence, the (live)", "the silence (live)"),
        ("silence, the - live", "the silence - live"),
        # the second copy of a file
        ("song (clean) (1)", "song (clean)"),
        # medleys of several songs
        ("medley: a / b", "a / b"),
        ("a / b (medley)", "a / b"),
        ("a / b - medley", "a / b"),
        ("a / b - medley / c", "a / b - c"),
        ("(medley) / ", "/"),
    ],
)
def test_misleading_writing_is_spelled_out(folded: str, repaired: str) -> None:
    assert repair_title(folded) == repaired


@pytest.mark.parametrize(
    "folded",
    [
        "song",
        "ba** b",
        "a**embly",
        "class* act",
        "sixteen ft. mira",
        "song 6 ft. mira",
        "feat of love",
        "ac# minor",
        "h\u266f",
        "love \u266f1",
        "silence , the",
        "silence (a), the",
        "silence, the sound",
        "song (clean) (12)",
        "song (clean) (1) x",
        "song (1)",
        "song (forever.)",
        "song (whatever.)",
        "live at ft.worth",
        "song (discover.)",
        "defeat.of",
        "spider-man-",
        "a ~ b ~ c",
        "song - a - b",
        "~sub",
        "song (livever)",
        "forever.",
        "soft.machine",
        "song feat. mira",
        "medley a / b",
        "medley: a",
        "a (medley)",
    ],
)
def test_writing_next_to_a_rule_stays(folded: str) -> None:
    assert repair_title(folded) == folded


@pytest.mark.parametrize(
    ("folded", "repaired"),
    [
        # words of the title keep their order
        ("song (a (b) c)", "song (a ) (b) ( c)"),
        ("song (a (b", "song (a ) (b)"),
        ("song (mira (live)) x", "song (mira ) (live) x"),
        ("song (to be (a wonder) (live))", "song (to be ) (a wonder) (live)"),
        ("song ((live))", "song (live)"),
        ("song [(live)] x [(demo)]", "song (live) x (demo)"),
        # a note comes before its inner brackets, or takes their words
        ("song ((live) remix)", "song (remix) (live)"),
        ("song (remix (radio edit))", "song (remix) (radio edit)"),
        ("song (live (at kask hall))", "song (live at kask hall)"),
        # two or three letters, or three digits, qualify a name
        ("song (nautica (uk) remix)", "song (nautica remix)"),
        ("song (nautica (usa) remix)", "song (nautica remix)"),
        ("song (nautica (u) remix)", "song (nautica u remix)"),
        ("song (nautica (euro) remix)", "song (nautica euro remix)"),
        ("song (kask (123) remix)", "song (kask remix)"),
        ("song (kask (1234) remix)", "song (kask 1234 remix)"),
        # guests keep theirs
        ("song (feat. verbal (m-flo))", "song (feat. verbal  m-flo )"),
        # a dash inside
        ("song (sell - out version)", "song (sell out version)"),
        ("song (diesel mix - radio edit)", "song (diesel mix - radio edit)"),
        ("song (nicktim - original mix)", "song (nicktim - original mix)"),
        ("song (april 1978 - original mix)", "song (april 1978 original mix)"),
        ("song [a - b] c (d - e)", "song (a - b) c (d - e)"),
        ("song () (a - b)", "song () (a - b)"),
        ("song a) b (c - d)", "song a) b (c - d)"),
    ],
)
def test_nested_brackets_become_brackets_side_by_side(folded: str, repaired: str) -> None:
    assert repair_title(folded) == repaired


@pytest.mark.parametrize(
    ("folded", "repaired"),
    [
        ("song - live - april 1978", "song - live april 1978"),
        ("song - live - 28th april 1978", "song - live 28th april 1978"),
        ("song - live - 1978", "song - live 1978"),
        ("song - live - 15 09 19", "song - live 15 09 19"),
        ("song - live - tokyo 1978", "song - live tokyo 1978"),
        ("song - remix - 2011", "song - remix 2011"),
        ("song - live - april 1978 (remaster)", "song - live april 1978 (remaster)"),
        ("song - live - 15 09 19 - remastered", "song - live 15 09 19 - remastered"),
        ("song - live - 1978 - april 1978", "song - live 1978 april 1978"),
        # two or four numbers are no day, month and year
        ("song - live - 15 09", "song - live - 15 09"),
        ("song - live - 10 20 30 40", "song - live - 10 20 30 40"),
        ("song - live - 1234 - 15 09 19", "song - live - 1234 - 15 09 19"),
        # a line of lyrics is no date
        ("song - live - summer of 1969", "song - live - summer of 1969"),
        # before the date there is no note, or a bracket ends it
        ("song - april - 1978", "song - april - 1978"),
        ("song - nicktim - 1978", "song - nicktim - 1978"),
        ("song - feat. mira - 1978", "song - feat. mira - 1978"),
        ("song - live (x) - april 1978", "song - live (x) - april 1978"),
    ],
)
def test_date_after_a_dash_joins_the_note_before_it(folded: str, repaired: str) -> None:
    assert repair_title(folded) == repaired


@pytest.mark.parametrize(
    ("title", "decoded"),
    [
        ("R&amp;B", "R&B"),
        ("Walk&#252;re", "Walküre"),
        ("Walk&#xfc;re", "Walküre"),
        ("A & B;", "A & B;"),
        ("A&B", "A&B"),
        ("&copyright", "&copyright"),  # no semicolon: no entity
    ],
)
def test_entities_of_web_pages_become_characters(title: str, decoded: str) -> None:
    assert decode_entities(title) == decoded
