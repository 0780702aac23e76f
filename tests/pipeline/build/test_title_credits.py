from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.remembered_texts import TextMemory
from pipeline.build.title_credits import find_names_in_titles

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = pl.DataFrame(
    {
        "key": ["mira", "kask", "moor", "moorandmore", "sunset", "ax", "summervibes"],
        "name": ["Mira", "Kask", "Moor", "Moor & More", "Sunset", "A-X", "Summer Vibes"],
    }
)


def select_known(keys: pl.Series, known: pl.DataFrame = KNOWN) -> pl.DataFrame:
    return known.filter(pl.col("key").is_in(keys.implode()))


def named(title: str, version: str | None = None) -> list[tuple[str, str, bool]]:
    titles = pl.DataFrame({"title": [title], "version": [version]}, schema={"title": pl.String, "version": pl.String})
    return find_names_in_titles(titles, select_known).select("name", "role", "is_sure").rows()


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
    assert find_names_in_titles(titles, select_known)["place"].to_list() == [0, 1, 0]
    assert find_names_in_titles(titles.clear(), select_known).is_empty()


def test_remembered_names_follow_the_artists_who_are_known(tmp_path: Path) -> None:
    memory = TextMemory.open(tmp_path, "program", anew=False)
    titles = pl.DataFrame({"title": ["Song (feat. Mira, Kask & Moor)", "Song (Kask Summer Remix)", "Song (Sunset Mix)", "Song"]})
    titles = titles.with_columns(version=pl.lit(None, pl.String))
    chance, found = Random(7), set()  # noqa: S311 - test data
    for _ in range(12):
        known = KNOWN.sample(chance.randrange(KNOWN.height + 1), seed=chance.randrange(99), shuffle=True)
        # An artist is shown under another name than yesterday.
        known = known.with_columns(
            pl.when(pl.Series([chance.random() < 0.2 for _ in known["key"]], dtype=pl.Boolean))
            .then(pl.col("name").str.to_uppercase())
            .otherwise("name")
            .alias("name")
        )
        find_known = partial(select_known, known=known)
        names = find_names_in_titles(titles, find_known, partial(memory.recall, "titles"))
        assert names.equals(find_names_in_titles(titles, find_known))
        found.add(tuple(names["name"]))
    assert len(found) > 5
