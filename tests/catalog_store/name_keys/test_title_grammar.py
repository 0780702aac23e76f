# ruff: noqa: RUF001 - look-alike letters are what is tested
"""Tests of titles: articles, keys, credits, spellings of one title, and the letters that segments keep."""

from __future__ import annotations

import polars as pl
import pytest

from catalog_store.name_keys import (
    build_title_keys,
    build_title_keys_frame,
    split_title_segments,
)


def test_article_after_the_title_is_moved_to_the_front() -> None:
    assert (
        build_title_keys("Sound of Silence, The - Live")[:3]
        == build_title_keys("The Sound of Silence (Live)")[:3]
        == ("the sound of silence",) * 2 + ("live",)
    )
    assert build_title_keys("Silence, The Sound").core == "silence the sound"


@pytest.mark.parametrize("title", ["Prelude in E\u266d Major", "Prelude in E-Flat Major", "Prelude in E Flat Major"])
def test_flat_key_is_equal_in_every_spelling_and_differs_from_the_natural_key(title: str) -> None:
    assert build_title_keys(title).core == "prelude in e flat major"
    assert (
        build_title_keys("Prelude in C# Minor")
        == build_title_keys("Prelude in C\u266f Minor")
        == build_title_keys("Prelude in C-Sharp Minor")
    )
    assert build_title_keys("Prelude in C# Minor") != build_title_keys("Prelude in C Minor")
    assert build_title_keys("Love \u266f1") == build_title_keys("Love #1")


@pytest.mark.parametrize(
    ("title", "credit"),
    [
        ("Give Me Everything (feat. Nayer)", "nayer"),
        ("I Don't Care (with Justin Bieber) - Loud Luxury Remix", "justin bieber"),
        ("Feel The Heat feat. Mike Dunn (Extended Mix)", "mike dunn"),
        ("Lose My Mind (feat. Doja Cat) [From F1 The Movie]", "doja cat"),
        ("Sparks - Featuring Hayley Williams Of Paramore", "hayley williams of paramore"),
        ("Summertime Sadness (Lana Del Rey vs. Cedric Gervais)", "lana del rey vs cedric gervais"),
        ("This Way (Khalid x H.E.R.)", "khalid x h e r"),
        ("Some Day One Day (feat. VERBAL (m-flo))", "verbal m flo"),
        ("Sueño (con Pablo Alborán)", "pablo alboran"),
        ("Love Saw It (Duet with Karyn White)", "karyn white"),
        ("Ric Flair Drip (& Metro Boomin)", "metro boomin"),
        ("Trust Nobody (w/ Selena Gomez)", "selena gomez"),
        ("Song【feat. Mira】", "mira"),
        ("Song（ft. Mira）", "mira"),
        ("Song (part. Mira)", "mira"),
        ("Song - Part. Esp. Mira", "mira"),
        ("Song (Participação Especial de Mira)", "mira"),
        ("Песня (при уч. Мира)", "мира"),
        ("1999 ft. Mira", "mira"),
    ],
)
def test_guests_named_in_the_title_are_credits_and_not_part_of_it(title: str, credit: str) -> None:
    keys = build_title_keys(title)
    assert keys.credits == credit
    assert not set(credit.split()) & set(keys.core.split())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("F**k Faces", "Fuck Faces"),
        ("In Da Club (Shake Sh-T Up)", "In Da Club (Shake Shit Up)"),
        ("Down A** B**ch", "Down Ass Bitch"),
        ("Rock &amp; Roll", "Rock & Roll"),
        ("Die Walk&#252;re", "Die Walküre"),
        ("Rock 'n' Roll", "Rock and Roll"),
        ("Day 'N' Nite", "Day & Nite"),
        ("A / B (Medley)", "Medley: A / B"),
        ("Aquarius/Let the Sunshine In", "Aquarius / Let the Sunshine In"),
        ("ｶﾞｰﾙ", "ガール"),
        ("Ёлка", "Елка"),
        ("שָׁלוֹם", "שלום"),
        ("قَلْبِي", "قلبى"),
        ("ΌΝΕΙΡΟΣ", "όνειρος"),
        ("I\u0307stanbul", "Istanbul"),
        ("OVER\u301cacross the time\u301c", "OVER～across the time～"),
        ("달라달라", "\u1103\u1161\u11af\u1105\u1161\u1103\u1161\u11af\u1105\u1161"),
        ("Signed, Sealed (I'm Yours", "Signed, Sealed (I'm Yours)"),
    ],
)
def test_two_spellings_of_one_title_share_a_key(one: str, other: str) -> None:
    assert build_title_keys(one)[:2] == build_title_keys(other)[:2]


@pytest.mark.parametrize(
    ("title", "stem"),
    [
        ("(I Can't Get No) Satisfaction - Live", "satisfaction"),
        ("(Sittin' On) The Dock of the Bay", "the dock of the bay"),
        ("[Everything I Do] I Do It for You (Single Version)", "i do it for you"),
        ("(Can't) Go", "cant go"),
        ("(Untitled)", "untitled"),
    ],
)
def test_stem_leaves_a_leading_bracket_out(title: str, stem: str) -> None:
    assert build_title_keys(title).stem == build_title_keys_frame(pl.Series([title]))["stem"].item() == stem
    assert build_title_keys(title).core.endswith(stem)


def test_a_subtitle_in_brackets_is_in_the_core_and_not_in_the_stem() -> None:
    keys = build_title_keys("You Make Me Feel (Mighty Real) Clean")
    assert keys == ("you make me feel mighty real", "you make me feel", "clean", "", "")


@pytest.mark.parametrize(
    ("title", "segments"),
    [
        ("Song (feat. MØ) \u2013  Kask Remix", ["(", "fMØ", ") ", "-Kask Remix"]),
        ("Song FT. Mira & Kask [Club Mix]", ["fMira & Kask ", "(Club Mix", ")"]),
        ("(I Can't) Wait (\uff2d\uff49\uff52\uff41 Edit)", ["(Mira Edit", ")"]),
        ("Song", []),
    ],
)
def test_segments_keep_their_letters(title: str, segments: list[str]) -> None:
    assert split_title_segments(title) == segments
