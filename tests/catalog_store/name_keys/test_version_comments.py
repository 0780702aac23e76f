"""Comments beside titles: words of a version count, free text does not."""

from __future__ import annotations

import polars as pl
import pytest

from catalog_store.name_keys import are_variants_compatible, build_title_keys, select_version_comments


def select(comment: str | None, title: str = "Song") -> str | None:
    found: str | None = select_version_comments(pl.Series([title]), pl.Series([comment], dtype=pl.String)).item()
    return found


@pytest.mark.parametrize(
    ("comment", "variant"),
    [
        ("live", "live"),
        ("live, 1999-05-01: Budokan, Tokyo, Japan", "live:0501budokantokyojapan1999"),
        ("live, 1985", "live:1985"),
        ("Live at Budokan", "live:budokan"),
        ("live, second night", "live"),
        ("live, acoustic", "acoustic+live"),
        ("demo", "demo"),
        ("demo, found on a tape in 1994", "demo"),
        ("acoustic", "acoustic"),
        ("radio edit", "radio"),
        ("single edit; remastered", "radio"),
        ("clean", "clean"),
        ("5.1 mix", "surround"),
        ("take 3", "alternate:3"),
        ("take 3, mono", "alternate:3"),
        ("instrumental", "instrumental"),
        ("karaoke", "karaoke"),
        ("Japanese version", "version:japanese"),
        ("2012 re-recording", "rerecorded"),
        ("Kask remix", "remix:kask"),
        ("extended version, long fade", "extended"),
        ("mono", ""),
        ("stereo mix", ""),
    ],
)
def test_version_in_a_comment_makes_the_variant_of_the_title(comment: str, variant: str) -> None:
    assert select(comment) is not None
    keys = build_title_keys("Song", select(comment))
    assert keys == build_title_keys("Song")._replace(variant=variant, notes=keys.notes)


@pytest.mark.parametrize(
    "comment",
    [
        *("the one with strings", "explicit", "", " ", "original", "album version", "cover", "bootleg", "early fade"),
        *("from the film", "different lyrics", "feat. Mira", "edited for a film", "wrong title", "as sung by the child", "(live"),
        *("not the song by Mira", "English lyrics", "recorded in 1994", "B-side", None),
    ],
)
def test_comment_without_a_version_leaves_the_title_alone(comment: str | None) -> None:
    assert select(comment) is None


@pytest.mark.parametrize(
    ("title", "version"),
    [("Song (live)", "live, 1999: Budokan"), ("Song (Live at Budokan)", None), ("Song (Kask remix)", "live, 1999: Budokan")],
)
def test_title_that_names_the_place_needs_no_comment(title: str, version: str | None) -> None:
    assert select("live, 1999: Budokan", title) == version


def test_columns_without_a_version_stay_null() -> None:
    assert select_version_comments(pl.Series(["a", "b"]), pl.Series([None, None], dtype=pl.String)).to_list() == [None, None]
    assert select_version_comments(pl.Series([], dtype=pl.String), pl.Series([], dtype=pl.Null)).is_empty()


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("live:0501budokantokyo1999", "live:budokan1999", True),
        ("live:0501budokantokyo1999", "live:budokan", True),
        ("live:0501budokantokyo1999", "live", True),
        ("live:0501budokantokyo1999", "live:budokan1978", False),
        ("live:0501budokantokyo1999", "live:0502budokantokyo1999", False),
        ("live:0501budokantokyo1999", "", False),
        ("remix:a1b2", "remix:b2a1", False),
    ],
)
def test_place_and_date_count_in_any_order(one: str, other: str, is_one: bool) -> None:  # noqa: FBT001 - a table
    assert are_variants_compatible(one, other) == are_variants_compatible(other, one) == is_one
