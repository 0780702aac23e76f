from __future__ import annotations

import pytest

from catalog_store.search.query_names import read_query, remove_connectives


@pytest.mark.parametrize(
    ("artist", "artists", "guests"),
    [
        ("The Velvet Foxes", ("velvet foxes",), ()),
        ("Velvet Foxes (2)", ("velvet foxes",), ()),
        ("A$AP Roddy feat. Sade", ("asap roddy",), ("sade",)),
        ("Sade (ft. MØ & Кино)", ("sade",), ("mo", "кино")),
        ("Sade featuring MØ", ("sade",), ("mo",)),
        ("Sade x MØ", ("sade", "mo"), ()),
        ("Sade, MØ and Кино", ("sade", "mo", "кино"), ()),
        ("Feat. Me", ("feat me",), ()),
        ("東京事変", ("东京事变",), ()),
        ("!!!", ("!!!",), ()),
        ("&", ("and",), ()),
    ],
)
def test_artist_field_is_split_into_names_and_guests(artist: str, artists: tuple[str, ...], guests: tuple[str, ...]) -> None:
    asked = read_query(artist, "Intro")
    assert asked.artists == artists
    assert asked.guests == guests
    assert asked.artist_words


def test_a_name_with_and_in_it_is_kept_whole_beside_its_parts() -> None:
    asked = read_query("Earth, Wind & Water", "Intro")
    assert asked.everyone == "earth wind water" == remove_connectives("earth wind and water")
    assert {"earth", "wind", "water"} <= set(asked.artist_words)


def test_guests_of_the_title_are_with_everyone_but_alone_no_artist() -> None:
    asked = read_query("Sade", "No Ordinary Love (feat. MØ) [Live at Wembley]")
    assert (asked.alone, asked.everyone, asked.guests) == ("sade", "sade mo", ())
    assert "mo" in asked.artist_words
    assert (asked.title, asked.variant) == ("no ordinary love", "live:wembley")


@pytest.mark.parametrize(("names", "key"), [("the the", "the the"), ("and one", "one"), ("x", "x"), ("", "")])
def test_a_name_never_becomes_empty(names: str, key: str) -> None:
    assert remove_connectives(names) == key


@pytest.mark.parametrize(
    ("title", "core", "stem"),
    [
        ("Sade - Intro", "intro", "intro"),
        ("Intro 128 BPM ", "intro", "intro"),
        ("Smooth Operator official video HD", "smooth operator official video hd", "smooth operator"),
        ("Come Clean", "come clean", "come"),
        ("Video", "video", "video"),
        ("128 BPM", "128 bpm", "128 bpm"),
        ("Sade -", "sade", "sade"),
    ],
)
def test_text_copied_into_the_title_is_ignored(title: str, core: str, stem: str) -> None:
    asked = read_query("Sade", title)
    assert (asked.title, asked.stem) == (core, stem)


def test_all_words_of_a_long_name_are_kept() -> None:
    asked = read_query(" ".join(f"name{n}" for n in range(60)), " ".join(f"word{n}" for n in range(60)))
    assert (len(asked.artist_words), len(asked.title_words)) == (60, 60)
