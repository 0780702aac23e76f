# ruff: noqa: RUF001 - look-alike letters are what is tested
"""Tests of version notes: those of another recording, cosmetic ones, and words that only look like a note."""

from __future__ import annotations

import polars as pl
import pytest

from catalog_store.name_keys import (
    are_variants_compatible,
    build_title_keys,
    build_title_keys_frame,
    compose_display_title_expr,
    list_variant_kinds,
)

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
    ("I Won't Say (I'm in Love)", "i wont say im in love"),
    ("Runnin' (Dying to Live)", "runnin dying to live"),
    ("You Spin Me Round (Like a Record)", "you spin me round like a record"),
    ("Song (Live in the Moment)", "song live in the moment"),
    ("Song (You Live)", "song you live"),
    ("Song (The Way We Live)", "song the way we live"),
    ("Song (Live and Let Die)", "song live and let die"),
    ("Song (Live for Tonight)", "song live for tonight"),
    ("Song (Run for Cover)", "song run for cover"),
    ("Song (Take My Hand)", "song take my hand"),
    ("Song (From Paris to Berlin)", "song from paris to berlin"),
    ("Song (From the Inside)", "song from the inside"),
    ("Song (Con Te)", "song con te"),
    ("Allegro (Con Brio)", "allegro con brio"),
    ("Song (Mit Dir)", "song mit dir"),
    ("La Plena (W Sound 05)", "la plena w sound 05"),
    ("New Gold Dream (81-82-83-84)", "new gold dream 81 82 83 84"),
    ("The Remix", "the remix"),
    ("Song in the Mix", "song in the mix"),
    ("So Clean", "so clean"),
    ("Tupac Intro", "tupac intro"),
    ("Born to Live", "born to live"),
    ("No One", "no one"),
    ("Live", "live"),
    ("Cover Me", "cover me"),
    ("Karaoke", "karaoke"),
    ("Radio Edit", "radio edit"),
    ("Medley", "medley"),
    ("Diary - April 1978", "diary april 1978"),
    ("Kask - Disco 2000 - 1999", "kask disco 2000 1999"),
    ("6 Ft. Under", "6 feet under"),
    ("Six Ft Under", "six feet under"),
    ("Amazing Feat of Love", "amazing feat of love"),
    ("Song (Part of Me)", "song part of me"),
    ("Song (Part. A)", "song part a"),
    ("Song (You and Me Karaoke)", "song you and me karaoke"),
    ("Sometimes I Sped Up", "sometimes i sped up"),
    ("Chicken - N - Beer", "chicken and beer"),
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
    "Song (Japan Bonus Track)",
    "Song [iTunes Bonus Track]",
    "Song (Bonus Track for Japan)",
    "Song (Albumversion)",
    "Song (Альбомная версия)",
    "Song (24-Bit)",
    'Song (OST "Kask")',
    'Song (из фильма "Каск")',
    'Song (из к/ф "Каск")',
    'Song - From "Rocky IV" Soundtrack',
    'Song (From "Rocky IV")',
    "Song [From F1 The Movie]",
    "Song - From Spider-Man: Into the Spider-Verse",
    "Song [from 'Rocky IV']",
    "Song (From Breakfast at Tiffany's)",
    "Song (Theme from Jaws)",
    "Song - Season 2 Soundtrack",
    'Song - De "Frozen 2"',
    "Song (Official Sunburn Anthem 2015)",
    "Song [The Official 2010 FIFA World Cup (TM) Song]",
    "Song (Video Clip)",
    "Song (Pre-Order Exclusive)",
    'Song - 7" Single',
    "Song (From The Vault)",
    "Song - Digitally Remastered 2001",
    "Song (Remastered at Abbey Road)",
    "Song (2011 Remaster) [Bonus Track]",
    "Song Remastered",
    "Song (Verse)",
    "Song (Throwback)",
    "Song (HH Dirty Mixshow)",
    "Song (Dirty) (1)",
    "Song (Main)",
    "Song\u2122",
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
    ("Song (Live at Vienna Unplugged)", "unplugged:vienna"),
    ("Song (The Roxy Live)", "live:roxy"),
    ("Song (Live Acoustic Session)", "acoustic+live"),
    ("Song (Live 2nd Single Version)", "live"),
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
    ("Song - Live on MTV Unplugged", "unplugged:mtv"),
    ("Song (Live Acoustic)", "acoustic+live"),
    ("Song - Acoustic Live", "acoustic+live"),
    ("Song (Live (at Kask Hall))", "live:kaskhall"),
    ("Song (Remix (Radio Edit))", "radio+remix"),
    ("Song Remix", "remix"),
    ("Song Radio Edit", "radio"),
    ("Song (feat. Mira) DJ Kask Remix", "remix:djkask"),
    ("Song (Nautica (UK) Remix)", "remix:nautica"),
    ("Song (Kaytranada Edition (Live Set Version)", "live+version:kaytranada"),
    ("Song (Sell - Out Version)", "version:sellout"),
    ("Song (Diesel Mix - Radio Edit)", "radio+remix:diesel"),
    ("Song - Re-Mix", "remix"),
    ("Song (W&W Remix)", "remix:ww"),
    ("Song (7th Heaven Club Mix)", "club+remix:7thheaven"),
    ("Song (3rd Version)", "version:3rd"),
    ("Song (Mira Album Mix)", "remix:mira"),
    ("Song - Remix Los Hermanos Rosario", "remix:loshermanosrosario"),
    ("Song - Versión Salsa", "version:salsa"),
    ("Song - Versión Acústica", "acoustic"),
    ("Song - Wersja Akustyczna", "acoustic"),
    ("Song - Versão Editada", "edit"),
    ("Song (Versión Extendida)", "extended"),
    ("Song (Version Étendue)", "extended"),
    ("Song - Verlängerte Version", "extended"),
    ("Song (Maxiversion)", "extended"),
    ("Song - Edição de Rádio", "radio"),
    ("Song (Edición Radio)", "radio"),
    ("Song (En Concert)", "live"),
    ("Song (Digitally Remastered Remix)", "remix"),
    ("Song - 2015 Remastered Full Length Version", "extended"),
    ("Song [Live Montreal '87]", "live:montreal87"),
    ("Song - Live @ Kask Hall, 15.09.19", "live:kaskhall150919"),
    ("Song - Acoustic / Live at Abbey Road, 2005", "acoustic+live:abbeyroad2005"),
    ("Song (Lvie at Kask Hall)", "live:kaskhall"),
    ("Song (Spde Up)", "sped up"),
    ('Song - 12" Version', "extended"),
    ('Song - 12" Dub', "dub"),
    ('Song - 7" Radio', "radio"),
    ("Song (Extended Dance Mix)", "extended"),
    ("Song (Off Vocal Ver.)", "instrumental"),
    ("Song - With Rap", "version:rap"),
    ("Song - Stripped", "stripped"),
    ("Song (Take 2)", "alternate:2"),
    ("Song (Alt. Lyrics)", "alternate"),
    ("Song - Alternate Lyrics", "alternate"),
    ("Song (Alt. Take)", "demo"),
    ("Song - Live at Kask Hall, Tokyo, JPN - April 1978", "live:kaskhalltokyojpnapril1978"),
    ("Song (Live at Kask Hall, Tokyo, JPN - April 1978)", "live:kaskhalltokyojpnapril1978"),
    ("Song - Live - Tokyo, JPN, 28th April 1978 (2004 Remaster)", "live:tokyojpn28thapril1978"),
    ("Song - Live at Kask Hall - 15.09.19 - Remastered", "live:kaskhall150919"),
    ("Song - Remix - 2011", "remix:2011"),
    ("Song (Slowed & Chopped)", "slowed"),
    ("Song (8D Audio)", "8d"),
    ("Song (Neuaufnahme 2018)", "rerecorded"),
    ("Song (Medley)", "medley"),
    ("Song (As Made Famous by Somebody) [Karaoke]", "karaoke"),
    ("Song (A Tribute to Somebody)", "cover:somebody"),
    ("Song (Intro - Dirty)", "intro"),
    ("Song (Clean Intro)", "clean+intro"),
    ("Song (HH Clean Intro)", "clean+intro"),
    ("Song (Intro-Outro)", "intro+outro"),
    ("Song (Intro + Outro)", "intro+outro"),
    ("Song (Quick Hit Clean)", "clean+short"),
    ("Song (QH Dirty)", "short"),
    ("Song (Quick Hitter)", "short"),
    ("Song (CK Cut)", "short"),
    ("Song (Snip)", "short"),
    ("Song (Super Short)", "short"),
    ("Song (Hype Intro)", "intro"),
    ("Song (Slam Edit)", "intro"),
    ("Song (Party Starter)", "intro"),
    ("Song (Jump Off)", "intro"),
    ("Song (Clapapella)", "acap mix"),
    ("Song (Acap Loop)", "acap mix"),
    ("Song (In:Out)", "acap mix"),
    ("Song (Word Play)", "blend"),
    ("Song (Redrum)", "blend"),
    ("Song (Mash-Up)", "blend"),
    ("Song (Segway)", "blend"),
    ("Song (Perfect Version)", "blend"),
    ("Song (Transition 128-100)", "transition"),
    ("Song (128 - 100 Transition)", "transition"),
    ("Song (Trans 100-128)", "transition"),
    ("Song (Facetyme Remix) (132 Ebm)", "remix:facetyme"),
    ("Song (Drop Leaf Edit) (89 11b)", "edit:dropleaf"),
    ("Song (Acap Out) 136", "acap mix"),
    ("Song (Inst) 2.2", "instrumental"),
    ("Song (EXTENDED) [CLEAN]", "clean+extended"),
    ("Song【リミックス】", "remix"),
    ("Song（ライブ・バージョン）", "live"),
    ("Song (现场版)", "live"),
    ("Song（伴奏）", "karaoke"),
    ("Song (라이브)", "live"),
    ("Song (Мира Ремикс)", "remix:мира"),
    ("Song (концертная версия)", "live"),
    ("Song (Живой концерт)", "live"),
    ("Song (Инструментальная версия)", "instrumental"),
    ("Song (Enstrümantal)", "instrumental"),
    ("Song (Akustik Versiyon)", "acoustic"),
    ("Song (Liveversie)", "live"),
    ("Song (Clubmix)", "club"),
    ("Song (לייב)", "live"),
    ("Song (גרסה אקוסטית)", "acoustic"),
    ("Song (مباشر)", "live"),
    ("Song (Ζωντανή ηχογράφηση)", "live"),
    ("Song (BBC Radio 1 Live Lounge)", "live"),
    ("Song (Adele Karaoke)", "karaoke"),
    ("Song (Karaoke with Background Vocals)", "karaoke"),
    ("Song sped up", "sped up"),
    ("Song slowed + reverb", "slowed"),
    ("Song (12'' Extended Mix)", "extended"),
    ("Song (12\u2033 Extended Mix)", "extended"),
    ("Song (12'' Dub)", "dub"),
    ("Song (Live Japanese Bonus Track)", "live"),
]


@pytest.mark.parametrize(("title", "core"), FALSE_FRIENDS)
def test_words_that_only_look_like_version_notes_stay_in_the_title(title: str, core: str) -> None:
    keys = build_title_keys(title)
    assert keys.core == core
    assert keys.variant == ""
    assert keys.credits == ""


@pytest.mark.parametrize("title", COSMETIC)
def test_cosmetic_notes_make_no_variant(title: str) -> None:
    assert build_title_keys(title)[:3] == ("song", "song", "")


@pytest.mark.parametrize(("title", "variant"), VARIANTS)
def test_notes_that_name_another_recording_make_a_variant(title: str, variant: str) -> None:
    keys = build_title_keys(title)
    assert keys.core == "song"
    assert keys.variant == variant


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
    assert build_title_keys(title, version) == ("song", "song", "remix:tiesto", "", "")
    frame = pl.DataFrame({"t": [title], "v": [version]}, schema={"t": pl.String, "v": pl.String})
    shown = frame.select(compose_display_title_expr(pl.col("t"), pl.col("v"))).to_series()
    assert build_title_keys_frame(shown).row(0) == ("song", "song", "remix:tiesto", "", "")


@pytest.mark.parametrize(
    ("title", "notes"),
    [
        ("Song - 2011 Remaster", "remaster:2011"),
        ("Song (2011 2015 Remaster)", "remaster:2015"),
        ("Song - Live - Remastered", "remaster"),
        ("Song [Explicit]", "explicit"),
        ("Song (Dirty) [Bonus Track]", "bonus+explicit"),
        ('Song - From "Rocky IV"', "soundtrack:rocky iv"),
        ("Song (Deluxe Edition)", "edition"),
        ("Song - Mono / 2004 Remaster", "mono+remaster:2004"),
        ("Song (prod. Mira)", "produced"),
        ("Song (Album Version)", ""),
        ("Song", ""),
    ],
)
def test_cosmetic_remark_is_kept_as_a_note(title: str, notes: str) -> None:
    assert build_title_keys(title).notes == notes


@pytest.mark.parametrize(
    ("dashed", "bracketed", "core", "variant"),
    [
        ("Song - Nicktim - Original Mix", "Song (Nicktim - Original Mix)", "song nicktim", ""),
        ("Song - To Be a Wonder - 2003 Remaster", "Song (To Be a Wonder - 2003 Remaster)", "song to be a wonder", ""),
        ("Song - Remastered - 2011", "Song (Remastered - 2011)", "song", ""),
        ("Song - Live at Kask Hall - 2004 Remaster", "Song (Live at Kask Hall - 2004 Remaster)", "song", "live:kaskhall"),
        ("Song - Live - Summer of 1969", "Song (Live) - Summer of 1969", "song summer of 1969", "live"),
        ("Song - Live - 15 09 19", "Song (Live - 15 09 19)", "song", "live:150919"),
        ("Song - Live - 10 20 30 40", "Song (Live) - 10 20 30 40", "song 10 20 30 40", "live"),
    ],
)
def test_text_after_two_dashes_means_the_same_in_one_bracket(dashed: str, bracketed: str, core: str, variant: str) -> None:
    for keys in (build_title_keys(dashed), build_title_keys(bracketed)):
        assert (keys.core, keys.variant) == (core, variant)


def test_variants_agree_when_a_name_is_missing_or_part_of_the_other() -> None:
    assert are_variants_compatible("remix:tiesto", "remix")
    assert are_variants_compatible("extended+remix:tiesto", "extended+remix:djtiesto")
    assert not are_variants_compatible("remix:tiesto", "remix:feddelegrand")
    assert not are_variants_compatible("remix:tiesto", "extended+remix:tiesto")
    assert not are_variants_compatible("live", "")
    assert not are_variants_compatible("alternate:1", "alternate:12")
    assert are_variants_compatible("alternate:1", "alternate:take1")
    assert are_variants_compatible("unplugged:mtv", "live+unplugged:mtv")
    assert are_variants_compatible("acoustic+live", "unplugged:mtvnewyork")
    assert not are_variants_compatible("unplugged:mtv", "live:wembley")
    assert not are_variants_compatible("unplugged", "acoustic")
    assert list_variant_kinds("extended+remix:tiesto") == {"extended", "remix"}
