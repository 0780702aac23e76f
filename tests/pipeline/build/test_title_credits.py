from __future__ import annotations

import polars as pl
import pytest

from pipeline.build.title_credits import find_names_in_titles

KNOWN = pl.DataFrame(
    {
        "key": ["mira", "kask", "moor", "moorandmore", "sunset", "ax", "summervibes"],
        "name": ["Mira", "Kask", "Moor", "Moor & More", "Sunset", "A-X", "Summer Vibes"],
    }
)


def named(title: str, version: str | None = None) -> list[tuple[str, str, bool]]:
    titles = pl.DataFrame({"title": [title], "version": [version]}, schema={"title": pl.String, "version": pl.String})
    return find_names_in_titles(titles, KNOWN).select("name", "role", "is_sure").rows()


def sure(role: str, *names: str) -> list[tuple[str, str, bool]]:
    return [(name, role, True) for name in names]


def listed(role: str, *names: str) -> list[tuple[str, str, bool]]:
    return [(name, role, False) for name in names]


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Song (feat. MIRA)", sure("featured", "Mira")),
        ("Song featuring Mira, Kask & Moor", sure("featured", "Mira", "Kask", "Moor")),
        ("Song ft. Moor & More", sure("featured", "Moor & More")),
        ("Song [Feat. Mira and Moor & More]", sure("featured", "Mira", "Moor & More")),
        ("Song (feat. Mira & Nobody)", listed("featured", "Mira")),
        ("Song (with Sunset)", listed("featured", "Sunset")),
        ("Song (with You)", []),
        ("Song with Mira", []),
        ("Song (feat. Nobody)", []),
        ("Feat", []),
    ],
)
def test_title_names_guests(title: str, expected: list[tuple[str, str, bool]]) -> None:
    assert named(title) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Song - Nobody Remix", sure("remixer", "Nobody")),
        ("Song \u2014 Kask Extended Remix", sure("remixer", "Kask")),
        ("Song [Kask\u2019s Rework]", sure("remixer", "Kask")),
        ("Song (The Nobodies Club Remix)", sure("remixer", "The Nobodies")),
        ("Song (Remix by Kask)", sure("remixer", "Kask")),
        ("Song (Kask x Mira Bootleg)", sure("remixer", "Kask", "Mira")),
        ("Song (Kask & Nobody Remix)", [*listed("remixer", "Kask"), *sure("remixer", "Kask & Nobody")]),
        ("Song (Kask Summer Remix)", sure("remixer", "Kask")),
        ("Song (Summer Vibes Remix)", sure("remixer", "Summer Vibes")),
        ("Song (Kask Edit)", listed("remixer", "Kask")),
        ("Song (Kask VIP Mix)", listed("remixer", "Kask")),
        ("Song - Mira Dub", listed("remixer", "Mira")),
        ("Song (Sunset Mix)", listed("remixer", "Sunset")),
        ("Song (Sunset Remix)", listed("remixer", "Sunset")),
        ("Song (Late Night Remix)", []),
        ("Song (Nobody Edit)", []),
        ("Song (Radio Edit)", []),
        ("Song (Remix)", []),
        ("Song (Club Mix) [2011 Remaster]", []),
        ("Song (Live at Kask)", []),
    ],
)
def test_title_names_makers_of_a_version(title: str, expected: list[tuple[str, str, bool]]) -> None:
    assert named(title) == expected


def test_separate_version_reads_like_one_in_brackets() -> None:
    assert named("Song (feat. A-X)", "Kask Remix") == [*sure("featured", "A-X"), *sure("remixer", "Kask")]


def test_titles_may_be_none_and_places_count_from_zero_in_each() -> None:
    titles = pl.DataFrame(
        {"title": ["One (feat. Mira & Kask)", "Two (feat. Mira)"], "version": [None, None]},
        schema={"title": pl.String, "version": pl.String},
    )
    assert find_names_in_titles(titles, KNOWN)["place"].to_list() == [0, 1, 0]
    assert find_names_in_titles(titles.clear(), KNOWN).is_empty()
