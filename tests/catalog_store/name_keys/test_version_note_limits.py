"""Tests of the tags of a version note at the limits of each rule: name, place, date or sentence, set off or bare."""

from __future__ import annotations

import pytest

from catalog_store.name_keys.version_notes import Tags, build_tags, read_version


@pytest.mark.parametrize(
    ("note", "tags"),
    [
        # phrases that words must follow
        ("live at the roxy", ("live:roxy",)),
        ("mira live at roxy", ("live:roxy",)),
        ("live in a tent", ("live:atent",)),
        ("live in the moment", None),
        ("the live at roxy", None),
        ("live at", None),
        ("mira remix by kask", ("remix:kask",)),
        ("club remix by kask", ("club", "remix:kask")),
        ("remix by the kask and mira", ("remix:kaskmira",)),
        ("remix by", None),
        ("live at mtv unplugged", ("unplugged:mtv",)),
        ("live on unplugged", ("unplugged",)),
        ("unplugged live at mtv", ("live:mtv", "unplugged:mtv")),
        # karaoke and DJ-pool cuts
        ("tiesto extended karaoke", ("extended", "karaoke")),
        ("karaoke with vocals", ("karaoke",)),
        ("karaoke of love", None),
        ("in out", ("acap mix",)),
        ("in out x", None),
        # remasters keep what surely is another recording
        ("remastered live at abbey road", ("=remaster", "live:abbeyroad")),
        ("remastered spanish version", ("=remaster",)),
        ("remastered mira live words", ("=remaster", "live")),
        ("2011 2015 remaster", ("=remaster:2015",)),
        # ordinals before a cosmetic phrase
        ("40th anniversary version", ("=edition",)),
        ("3rd version", ("version:3rd",)),
        ("40th club", ("club", "remix:40th")),
        # years name what nothing else names
        ("1985 version", ("version:1985",)),
        ("remix 2011", ("remix:2011",)),
        ("live 1985", ("live:1985",)),
        ("radio 1985", ("radio",)),
        ("mira remix 2011", ("remix:mira",)),
        ("1985", None),
        # kinds that need a name
        ("mix", None),
        ("version", None),
        ("session", None),
        ("spanish mix", ("remix:spanish",)),
        ("mira session", ("session:mira",)),
        ("club mix mix", ("club",)),
        ("mix session", ("remix",)),
        ("extended mix session", ("extended",)),
        # words that are no name
        ("the mix", None),
        ("your version", None),
        ("mira in the mix", None),
        ("in the mira mix", ("remix:inmira",)),
        ("the roxy club", None),
        ("mira club", ("club", "remix:mira")),
        ("you live", None),
        ("the you live", None),
        ("the roxy live", ("live:roxy",)),
        ("mira clean", None),
        ("mira dirty", None),
        ("mira explicit mix", ("=explicit", "remix:mira")),
        ("mira original version", ("version:mira",)),
        # words behind the kind
        ("version salsa", ("version:salsa",)),
        ("remix k l m n", ("remix:klmn",)),
        ("remix k l m n o", None),
        ("mira remix kask", None),
        ("remix in paris", None),
        ("acoustic montreal 87", None),
        ("live montreal", None),
        ("live montreal 87", ("live:montreal87",)),
        ("live montreal 1987", ("live:montreal1987",)),
        ("live montreal may", ("live:montrealmay",)),
        ("live montreal 871", None),
        ("live me 1987", None),
        ("live 15 09 19", ("live:150919",)),
        ("numberedtake 2", ("alternate:2",)),
        ("vocal 2", ("vocal:2",)),
        # sizes of a dub or an instrumental
        ("extended dub", ("dub",)),
        ("dub extended", ("dub", "extended")),
        ("extended instrumental", ("instrumental",)),
        ("mira extended dub", ("dub", "extended", "remix:mira")),
        # two kinds, two names
        ("mira edit remix", ("remix:mira",)),
        ("mira vs the kask remix", ("remix:mirakask",)),
        ("mira vip", ("remix:mira", "vip")),
    ],
)
def test_note_that_is_set_off_is_read_by_the_place_of_its_words(note: str, tags: Tags | None) -> None:
    assert read_version(note.split(), is_set_off=True) == tags


@pytest.mark.parametrize(
    ("note", "tags"),
    [
        ("mira remix", ("remix:mira",)),
        ("mira x kask remix", ("remix:mirakask",)),
        ("mira edit remix", ("remix:mira",)),
        ("extended dub", ("dub",)),
        ("radio 1985", ("radio",)),
        ("live 1985", ("live:1985",)),
        ("dirty version", ("=explicit",)),
        ("2011 remaster", ("=remaster:2011",)),
        # too little to tell it from a title
        ("mira edit", None),
        ("love remix", None),
        ("mira remix kask", None),
        ("live at roxy", None),
        ("remastered live", None),
        ("you and me karaoke", None),
        ("live", None),
        ("edit", None),
    ],
)
def test_note_without_bracket_or_dash_must_be_plainer(note: str, tags: Tags | None) -> None:
    assert read_version(note.split(), is_set_off=False) == tags


def test_text_of_many_words_is_not_a_note() -> None:
    assert read_version(["remix", *(f"word{number}" for number in range(400))], is_set_off=True) is None


@pytest.mark.parametrize(
    ("kinds", "name", "tags"),
    [
        ([], [], ()),
        (["="], [], ()),
        (["=explicit", "="], ["mira"], ("=explicit",)),
        (["remix", "live"], ["mira"], ("live:mira",)),
        (["live", "remix"], [], ("live", "remix")),
        (["edit", "mix"], ["mira"], ("remix:mira",)),
        (["mix", "edit"], ["mira"], ("edit:mira",)),
        (["mix"], [], ("remix",)),
        (["version", "session"], [], ()),
        (["clean", "vocal"], ["2"], ("clean", "vocal:2")),
        (["clean", "vocal"], ["mira"], ("clean", "remix:mira", "vocal")),
        (["clean"], ["mira"], ("clean",)),
        (["extended", "dub"], [], ("dub",)),
        (["extended", "dub"], ["mira"], ("dub", "extended", "remix:mira")),
        (["extended"], [], ("extended",)),
        (["extended", "club"], [], ("club", "extended")),
    ],
)
def test_tags_put_the_name_on_the_place_or_on_the_last_named_kind(kinds: list[str], name: list[str], tags: Tags) -> None:
    assert build_tags(kinds, name) == tags
