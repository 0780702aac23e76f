"""Scripts of names: pairs without a common script, and the sounds of Cyrillic and Greek letters."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.linkage.writing_systems import mark_unlike_scripts, transliterate


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


def test_letters_are_written_as_they_sound() -> None:
    texts = pl.DataFrame({"text": ["кино", "щука", "νικος", "plain", "夜"]})
    assert texts.select(transliterate(pl.col("text"))).to_series().to_list() == ["kino", "shchuka", "nikoς", "plain", "夜"]
