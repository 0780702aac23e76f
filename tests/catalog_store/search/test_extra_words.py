"""Initials, sounds and composers: the column form of the build and the plain form of a query agree."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.name_keys import build_name_key, build_title_keys
from catalog_store.search.extra_words import (
    build_composers,
    build_initials,
    build_sound,
    build_sounds,
    list_composers,
    list_initials,
)

TEXTS = st.text(st.sampled_from("abcdeor 12жизньアイ"), min_size=1, max_size=30)


def column(build: object, key: str) -> set[str]:
    return set(build(pl.DataFrame({"document": [1], "key": [key]}), "key")["word"])  # type: ignore[operator]


@given(TEXTS)
def test_sounds_of_a_column_and_of_one_text_agree(text: str) -> None:
    key = build_name_key(text)
    assert column(build_sounds, key) <= {build_sound(key)}


@given(TEXTS)
def test_initials_of_a_column_and_of_one_name_agree(text: str) -> None:
    key = build_name_key(text)
    if key.isascii():
        assert column(build_initials, key) == list_initials(tuple(key.split(" ")))


@pytest.mark.parametrize(
    ("title", "composers"),
    [
        ("Mozart : Requiem K. 626 - Tuba mirum", {"mozart"}),
        ("Symphony No.38 in D, K.504", {"mozart"}),
        ("Lobet den Herrn, BWV 230", {"bach"}),
        ("Israel In Egypt, HWV 54 : 1. Prelude", {"handel"}),
        ("Piano Concerto No. 1", set()),
        ("Bach to the Future", set()),
        ("Wagner", set()),
    ],
)
def test_classical_title_names_its_composers(title: str, composers: set[str]) -> None:
    core = build_title_keys(title).core
    assert list_composers(core) == composers
    assert column(build_composers, core) == composers


@pytest.mark.parametrize(
    ("name", "initials"),
    [
        ("red hot chili peppers", {"rhcp"}),
        ("orchestral manoeuvres in the dark", {"omitd", "omd"}),
        ("velvet foxes", set()),
        ("a b c d e f g", set()),
    ],
)
def test_initials_are_those_of_names_of_three_to_six_words(name: str, initials: set[str]) -> None:
    assert list_initials(tuple(name.split(" "))) == initials
