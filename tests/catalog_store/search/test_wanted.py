from __future__ import annotations

import pytest

from catalog_store.search.wanted import comparable, wanted


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
        ("東京事変", ("東京事変",), ()),
        ("!!!", ("!!!",), ()),
        ("&", ("and",), ()),
    ],
)
def test_artist_field(artist: str, artists: tuple[str, ...], guests: tuple[str, ...]) -> None:
    asked = wanted(artist, "Intro")
    assert asked.artists == artists
    assert asked.guests == guests
    assert asked.artist_words


def test_a_name_with_and_in_it_is_kept_whole_beside_its_parts() -> None:
    asked = wanted("Earth, Wind & Water", "Intro")
    assert asked.everyone == "earth wind water" == comparable("earth wind and water")
    assert {"earth", "wind", "water"} <= set(asked.artist_words)


def test_guests_of_the_title_are_guests() -> None:
    asked = wanted("Sade", "No Ordinary Love (feat. MØ) [Live at Wembley]")
    assert asked.guests == ("mo",)
    assert (asked.title, asked.variant) == ("no ordinary love", "live:wembley")


@pytest.mark.parametrize(("names", "key"), [("the the", "the the"), ("and one", "one"), ("x", "x"), ("", "")])
def test_a_name_never_becomes_empty(names: str, key: str) -> None:
    assert comparable(names) == key
