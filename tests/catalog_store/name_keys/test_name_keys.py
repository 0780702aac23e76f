# ruff: noqa: RUF001 - look-alike letters are what is tested
from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.name_keys import (
    compact,
    display_title_expr,
    fold,
    fold_expr,
    name_key,
    name_key_expr,
    title_keys,
    title_keys_frame,
    title_segments,
    title_segments_expr,
    variant_kinds,
    variants_agree,
)
from catalog_store.name_keys.folding import words, words_expr

FALSE_FRIENDS = [
    ("Come Clean", "come clean"),
    ("Intro", "intro"),
    ("Dub", "dub"),
    ("Original", "original"),
    ("Long Live", "long live"),
    ("Extended Mix", "extended mix"),
    ("Remix", "remix"),
    ("Live", "live"),
    ("(Live)", "live"),
    ("(I Can't) Wait", "i cant wait"),
    ("Feat", "feat"),
    ("You Make Me Feel (Mighty Real)", "you make me feel mighty real"),
    ("(Everything I Do) I Do It for You", "everything i do i do it for you"),
    ("Gimme! Gimme! Gimme! (A Man After Midnight)", "gimme gimme gimme a man after midnight"),
    ("Get Down (In the Mix)", "get down in the mix"),
    ("One Night (From Amsterdam With Love)", "one night from amsterdam with love"),
    ("Party (Live Your Life)", "party live your life"),
    ("Nobody (But You) Live", "nobody but you live"),
    ("Stuck (With You)", "stuck with you"),
    ("Theme (Part 2)", "theme part 2"),
    ("Untitled (1)", "untitled 1"),
    ("Song (Lover)", "song lover"),
    ("Song (Alive)", "song alive"),
    ("Song (Radio Six)", "song radio six"),
    ("Symphony - II. Allegro", "symphony ii allegro"),
]

COSMETIC = [
    "Song (Original Mix)",
    "Song - Original Version",
    "Song (Album Version)",
    "Song - Single Version",
    "Song (Main Mix)",
    "Song [Explicit]",
    "Song (Dirty)",
    "Song - Remastered 2011",
    "Song - 2011 Remaster",
    "Song - 2016 Remastered Version",
    "Song - 40th Anniversary Version / 2011 Remastered",
    "Song - Remasterizado 2009",
    "Song (Bonus Track)",
    'Song - From "Rocky IV" Soundtrack',
    'Song (From "Rocky IV")',
    "Song [From F1 The Movie]",
    "Song - From Spider-Man: Into the Spider-Verse",
    "Song (prod. Somebody)",
    "Song (132 Ebm)",
    "Song (Dirty) 130 11a",
    "Song - 102 4a",
    "SONG",
    "Ｓｏｎｇ",
    "Söng",
    "  song\t",
]

VARIANTS = [
    ("Song - Radio Edit", "radio"),
    ("Song (Extended Mix)", "extended"),
    ("Song - Edit", "edit"),
    ("Song (Club Mix)", "club"),
    ("Song (Dub)", "dub"),
    ("Song (Instrumental Version)", "instrumental"),
    ("Song (Acapella)", "acapella"),
    ("Song - Live", "live"),
    ("Song - Ao Vivo", "live"),
    ("Song (Live at Wembley, 1985)", "live:wembley1985"),
    ("Song - Acoustic Version", "acoustic"),
    ("Song - MTV Unplugged", "unplugged:mtv"),
    ("Song - Tiësto Remix", "remix:tiesto"),
    ("Song (The Avener Rework)", "remix:avener"),
    ("Song - Remix", "remix"),
    ("Song (R3HAB & Quintino Extended Remix)", "extended+remix:r3habquintino"),
    ("Song (Tiësto Extended Mix)", "extended+remix:tiesto"),
    ("Song - Robin Schulz Radio Edit", "radio+remix:robinschulz"),
    ("Song (Remix by Tiësto)", "remix:tiesto"),
    ("Song (VIP Mix)", "vip"),
    ("Song (Karaoke Version) [Originally Performed By Somebody]", "karaoke"),
    ("Song (Cover)", "cover"),
    ("Song (Taylor's Version)", "rerecorded"),
    ("Song - Re-Recorded / Remastered", "rerecorded"),
    ("Song (Sped Up)", "sped up"),
    ("Song (Slowed + Reverb)", "slowed"),
    ("Song - Album Version (Edited)", "clean"),
    ("Song (Clean)", "clean"),
    ("Song (Mix Cut)", "mixed"),
    ("Song - Spanish Version", "version:spanish"),
    ("Song - 1985 Version", "version:1985"),
    ("Song (DJcity Intro - Dirty)", "intro"),
    ("Song [Intro Clean]", "clean+intro"),
    ("Song (Trayze Qh)", "short"),
    ("Song (Clean)(Acap Out)", "acap mix+clean"),
    ("Song (Nick Bike Acap In:Out)", "acap mix"),
    ("Song (Feat Kevin Knapp - Zds Remix)", "remix:zds"),
    ("Song (Original Mix/Cyberkid Re-Edit)", "edit:cyberkid"),
    ("Song - Trayze Nola Bounce Flip - 102 4a", "remix:nolabounce"),
    ("Song (feat. Somebody) Extended Mix", "extended"),
    ("Song (Original Mix) (Tiësto Remx)", "remix:tiesto"),
    ("Song (Radio Edti)", "radio"),
    ("Song - Extendde Mix", "extended"),
    ("Song (acoustic verion)", "acoustic"),
    ("Song -Club Version", "club"),
    ("Song - Alive Remix", "remix:alive"),
]


@pytest.mark.parametrize(("title", "core"), FALSE_FRIENDS)
def test_words_that_only_look_like_version_notes_stay_in_the_title(title: str, core: str) -> None:
    keys = title_keys(title)
    assert keys.core == core
    assert keys.variant == ""
    assert keys.credits == ""


@pytest.mark.parametrize("title", COSMETIC)
def test_cosmetic_notes_make_no_variant(title: str) -> None:
    assert title_keys(title)[:3] == ("song", "song", "")


@pytest.mark.parametrize(("title", "variant"), VARIANTS)
def test_notes_that_name_another_recording_make_a_variant(title: str, variant: str) -> None:
    keys = title_keys(title)
    assert keys.core == "song"
    assert keys.variant == variant


@pytest.mark.parametrize(
    ("title", "credit"),
    [
        ("Give Me Everything (feat. Nayer)", "nayer"),
        ("I Don't Care (with Justin Bieber) - Loud Luxury Remix", "justin bieber"),
        ("Feel The Heat feat. Mike Dunn (Extended Mix)", "mike dunn"),
        ("Lose My Mind (feat. Doja Cat) [From F1 The Movie]", "doja cat"),
        ("Sparks - Featuring Hayley Williams Of Paramore", "hayley williams of paramore"),
        ("Summertime Sadness (Lana Del Rey vs. Cedric Gervais)", "lana del rey vs cedric gervais"),
    ],
)
def test_guests_named_in_the_title_are_credits_and_not_part_of_it(title: str, credit: str) -> None:
    keys = title_keys(title)
    assert keys.credits == credit
    assert not set(credit.split()) & set(keys.core.split())


@pytest.mark.parametrize(
    ("title", "version"),
    [
        ("Song", "Tiësto Remix"),
        ("Song", "(Tiësto Remix)"),
        ("Song - Tiësto Remix", None),
        ("Song (Tiësto Remix)", ""),
        ("Song [TIESTO REMIX]", None),
    ],
)
def test_a_version_means_the_same_wherever_the_platform_keeps_it(title: str, version: str | None) -> None:
    assert title_keys(title, version) == ("song", "song", "remix:tiesto", "", "")
    frame = pl.DataFrame({"t": [title], "v": [version]}, schema={"t": pl.String, "v": pl.String})
    shown = frame.select(display_title_expr(pl.col("t"), pl.col("v"))).to_series()
    assert title_keys_frame(shown).row(0) == ("song", "song", "remix:tiesto", "", "")


def test_a_subtitle_in_brackets_is_in_the_core_and_not_in_the_stem() -> None:
    keys = title_keys("You Make Me Feel (Mighty Real) Clean")
    assert keys == ("you make me feel mighty real", "you make me feel", "clean", "", "")


@pytest.mark.parametrize("title", ["You've Got", "You’ve Got", "Youve Got", "YOU´VE GOT"])
def test_apostrophes_do_not_part_words(title: str) -> None:
    assert title_keys(title).core == "youve got"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("The Beatles", "beatles"),
        ("Beatles, The", "beatles"),
        ("The The", "the"),
        ("The", "the"),
        ("Nirvana (2)", "nirvana"),
        ("Nirvana (2)*", "nirvana"),
        ("(2)", "2"),
        ("Björk*", "bjork"),
        ("Earth, Wind & Fire", "earth wind and fire"),
        ("Earth, Wind and Fire", "earth wind and fire"),
        ("P!nk", "pink"),
        ("A$AP Rocky", "asap rocky"),
        ("Ty Dolla $ign", "ty dolla sign"),
        ("Blink-182", "blink 182"),
        ("Beyoncé", "beyonce"),
        ("Mø", "mo"),
        ("Ｐｅｒｆｕｍｅ", "perfume"),
        ("坂本龍一", "坂本龍一"),
        ("Земфира", "земфира"),
        ("אייל גולן", "אייל גולן"),
        ("!!!", "!!!"),
        ("†††", "†††"),
        ("+/-", "and"),
        ("50 Cent", "50 cent"),
    ],
)
def test_artist_names(name: str, key: str) -> None:
    assert name_key(name) == key


def test_kana_voicing_parts_words_and_latin_accents_do_not() -> None:
    assert name_key("かき") != name_key("かぎ")
    assert name_key("Céline") == name_key("Celine")


def test_spellings_that_differ_in_spaces_and_dots_share_a_compact_key() -> None:
    assert compact(name_key("R.E.M.")) == compact(name_key("REM"))
    assert compact(name_key("alt-J")) == compact(name_key("Alt J"))


def test_variants_agree_when_a_name_is_missing_or_part_of_the_other() -> None:
    assert variants_agree("remix:tiesto", "remix")
    assert variants_agree("extended+remix:tiesto", "extended+remix:djtiesto")
    assert not variants_agree("remix:tiesto", "remix:feddelegrand")
    assert not variants_agree("remix:tiesto", "extended+remix:tiesto")
    assert not variants_agree("live", "")
    assert variant_kinds("extended+remix:tiesto") == {"extended", "remix"}


PIECES = [
    *(
        "love",
        "Intro",
        "Remix",
        "(",
        "((",
        ")",
        "[",
        "]",
        " - ",
        "feat. ",
        "ft ",
        "with ",
        "Tiësto",
        "Live",
        "at",
        "Radio Edit",
        "Original Mix",
    ),
    *(
        "Extended",
        "2011",
        "Remaster",
        "/",
        "&",
        "Clean",
        "130 11a",
        "!!!",
        "\u2019",
        '"',
        "from ",
        "Version",
        "あ",
        "が",
        "vs",
        "  ",
        "\t",
        "the ",
    ),
]
characters = st.characters(exclude_categories=["Cn", "Co", "Cs"])
"""Assigned characters only: the two Unicode tables are of different years."""
texts = st.one_of(
    st.text(characters, max_size=16),
    st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=9).map("".join),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(texts, min_size=20, max_size=60))
def test_columns_and_single_strings_give_the_same_keys(batch: list[str]) -> None:
    frame = pl.DataFrame({"t": batch}, schema={"t": pl.String})
    text = pl.col("t")
    columns = frame.select(folded=fold_expr(text), words=words_expr(fold_expr(text)), name=name_key_expr(text))
    assert columns.rows() == [(fold(value), words(fold(value)), name_key(value)) for value in batch]
    assert title_keys_frame(frame["t"]).rows() == [tuple(title_keys(value)) for value in batch]
    assert frame.select(title_segments_expr(text)).to_series().to_list() == [title_segments(value) for value in batch]


@settings(max_examples=400, deadline=None)
@given(texts)
def test_nothing_becomes_empty_and_keys_are_their_own_keys(text: str) -> None:
    keys, name = title_keys(text), name_key(text)
    assert bool(keys.core) == bool(keys.stem) == bool(name) == bool(text.strip(" "))
    assert fold(fold(text)) == fold(text)
    assert name_key(name) == name
    if words(keys.core) == keys.core and not {"feat", "ft", "featuring"} & set(keys.core.split()):
        assert title_keys(keys.core) == (keys.core, keys.core, "", "", "")


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
    assert title_segments(title) == segments


def test_nulls_and_no_titles_are_let_through() -> None:
    assert title_keys_frame(pl.Series([None, "a"], dtype=pl.String)).rows() == [("", "", "", "", ""), ("a", "a", "", "", "")]
    assert title_keys_frame(pl.Series([], dtype=pl.String)).is_empty()
