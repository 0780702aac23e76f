"""Tests of scripts of names: pairs without a common script, and names that sound alike."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.linkage.writing_systems import mark_alike_sounds, mark_unlike_scripts


@pytest.mark.parametrize(
    ("one", "other", "is_unlike"),
    [
        ("kino", "кино", True),
        ("k", "киноооооо", True),
        ("kinooooooooooooo", "к", True),
        ("kino", "kino", False),
        ("kino", "other", False),
        ("кино", "другое", False),
        ("kino кино", "кино", False),
        ("2000", "кино", False),
        ("кино", "2000", False),
        ("é1", "кино", False),  # folded text has no accents: a letter of no script that is known
        ("kino é", "кино", True),
        ("夜", "ヨル", False),
        ("夜", "밤", True),
        ("αβγ", "абв", True),
        ("", "кино", False),
    ],
)
def test_texts_are_unlike_when_both_have_letters_and_no_script_in_common(one: str, other: str, is_unlike: bool) -> None:  # noqa: FBT001
    assert mark_unlike_scripts(pl.Series([one]), pl.Series([other])).to_list() == [is_unlike]
    assert mark_unlike_scripts(pl.Series(["x", one]), pl.Series(["x", other])).to_list() == [False, is_unlike]


@pytest.mark.parametrize(
    ("one", "other", "is_alike"),
    [
        ("kino", "кино", True),
        ("kino", "мумиитролль", False),
        ("kino", "kino", False),
        ("kino", "kinos", False),
        ("кино", "кино", False),
        ("公园", "公元", False),
    ],
)
def test_only_texts_of_which_one_is_not_latin_can_sound_alike(one: str, other: str, is_alike: bool) -> None:  # noqa: FBT001 - a table
    assert mark_alike_sounds(pl.Series(["x", one]), pl.Series(["y", other]), pl.Series([False, False]), 0.6).to_list() == [
        False,
        is_alike,
    ]
