from __future__ import annotations

import re

import pytest

from catalog_store.name_keys import fold
from catalog_store.name_keys.artist_separators import ACCOMPANIMENT, NAME_GUEST_SEPARATOR, NAME_SEPARATOR, split_artist_field


@pytest.mark.parametrize(
    ("field", "names", "guests"),
    [
        ("Mira", ("mira",), ()),
        ("Mira & Kask feat. Moor", ("mira", "kask"), ("moor",)),
        ("Mira, Kask x Moor", ("mira", "kask", "moor"), ()),
        ("Mira (ft. Kask & Moor)", ("mira",), ("kask", "moor")),
        ("Mira w/ Kask", ("mira",), ("kask",)),
        ("Mira vs. Kask", ("mira", "kask"), ()),
        ("Mira \u00d7 Kask", ("mira", "kask"), ()),
        ("Mira\u3001Kask", ("mira", "kask"), ()),
        (" feat. Mira", ("feat. mira",), ()),
    ],
)
def test_a_field_of_several_artists_is_taken_apart(field: str, names: tuple[str, ...], guests: tuple[str, ...]) -> None:
    joined = split_artist_field(fold(field))
    assert (joined.names, joined.guests) == (names, guests)


@pytest.mark.parametrize("name", ["AC/DC", "W&W", "10,000 Maniacs", "R.E.M.", "Malcolm X", "Sheila E."])
def test_signs_inside_words_separate_no_artists(name: str) -> None:
    assert not re.search(f"{NAME_GUEST_SEPARATOR}|{NAME_SEPARATOR}", fold(name))


@pytest.mark.parametrize(
    ("key", "is_nobody"), [("hisorchestra", True), ("friends", True), ("herhotband", True), ("history", False), ("theband", False)]
)
def test_accompaniment_is_distinguished_from_artists(key: str, is_nobody: bool) -> None:  # noqa: FBT001 - a table
    assert bool(re.search(ACCOMPANIMENT, key)) == is_nobody
