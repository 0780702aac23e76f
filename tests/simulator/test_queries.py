from __future__ import annotations

from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from catalog_store.name_keys import build_name_key, build_title_keys, fold
from catalog_store.search.query_names import read_query
from simulator.loose_queries import LOOSE_CLASSES, LOOSE_MAKERS
from simulator.queries import ABSENT, CLASSES, Song, draw_queries, find_answer_names
from simulator.typed_names import add_noise, add_typo

PER_CLASS = 12
SELDOM = {"initials", "romanised"}
"""Classes that the names of `world` hardly allow."""
WORDS = ("amber", "river", "stone", "cloud", "violet", "winter", "golden", "silent", "broken", "electric", "mirror", "ocean", "ghost")


def chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - test data


def world() -> pl.DataFrame:
    """Return recordings of thirteen artists, some with a second artist, a guest, a remixer or a version."""
    rows = []
    for number in range(1, 261):
        first, second, third = (WORDS[(number * step + number // 13) % 13] for step in (1, 5, 7))
        artists = [(f"{first.title()} {second.title()}s", True, False)]
        artists += [(f"DJ {third.title()}", True, False)] if number % 5 == 0 else []
        artists += [(f"MC {second.title()}", False, False)] if number % 3 == 0 else []
        artists += [(f"{third.title()} Sound", False, True)] if number % 7 == 0 else []
        title = f"{third.title()} {second} {number}" + (" (Live)" if number % 4 == 0 else "")
        names = [{"name": name, "is_primary": is_primary, "is_remixer": is_remixer} for name, is_primary, is_remixer in artists]
        rows.append({"recording_id": number, "title": title, "artists": names})
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def made() -> pl.DataFrame:
    return draw_queries(world(), PER_CLASS, 1)


def test_every_class_is_drawn_in_full(made: pl.DataFrame) -> None:
    assert made.group_by("class", maintain_order=True).len().rows() == [(kind, PER_CLASS) for kind in CLASSES]


def test_queries_depend_only_on_names_number_and_seed(made: pl.DataFrame) -> None:
    assert draw_queries(world().sample(fraction=1, shuffle=True, seed=5).lazy(), PER_CLASS, 1).equals(made)
    assert not draw_queries(world(), PER_CLASS, 2).equals(made)


def test_each_class_changes_names_as_described(made: pl.DataFrame) -> None:
    truth = {row["recording_id"]: row for row in world().iter_rows(named=True)}
    for kind, artist, title, recording_id in made.iter_rows():
        if kind == ABSENT:
            assert recording_id is None
            continue
        row = truth[recording_id]
        shown = " ".join((*(one["name"] for one in row["artists"] if one["is_primary"]), row["title"]))
        words, asked = sorted(fold(shown).replace(",", "").split()), sorted(fold(f"{artist} {title}").replace(",", "").split())
        if kind == "exact":
            assert title == row["title"]
        elif kind == "cosmetic":
            assert build_title_keys(title).core == build_title_keys(row["title"]).core
        elif kind == "swapped":
            assert [word for word in asked if word not in {"and", "&", "x"}] == [word for word in words if word not in {"and", "&", "x"}]
        elif kind == "missing":
            assert len(asked) <= len(words)
        elif kind == "featured":
            assert any(one["name"] in artist for one in row["artists"] if not (one["is_primary"] or one["is_remixer"]))


def test_absent_queries_name_no_recording(made: pl.DataFrame) -> None:
    known = {
        (build_name_key(one["name"]), build_title_keys(row["title"]).core)
        for row in world().iter_rows(named=True)
        for one in row["artists"]
    }
    absent = made.filter(pl.col("class") == ABSENT)
    assert not [row for row in absent.iter_rows() if (build_name_key(row[1]), build_title_keys(row[2]).core) in known]
    assert any(build_name_key(artist) in {name for name, _ in known} for artist in absent["artist"])


@given(text=st.text("abcdefgh ij'éß東京", min_size=1, max_size=20), seed=st.integers(0, 999))
def test_typo_is_one_edit_or_nothing(text: str, seed: int) -> None:
    assert OSA.distance(text, add_typo(chance(seed), text)) <= 1


@given(seed=st.integers(0, 2_000))
def test_noise_leaves_the_names_the_same(seed: int) -> None:
    artist, title = add_noise(chance(seed), "The Øresund's Brothers & Sons", "Don't Stop, Élan", may_tag=True)
    asked = read_query(artist, title)
    assert (asked.whole, asked.title) == ("oresunds brothers and sons", "dont stop elan")


def test_recordings_that_share_all_names_are_one_answer() -> None:
    one = find_answer_names(["B", "The A"], "Song (Live)", absorbs_edits=False)
    assert one == find_answer_names(["a", "b"], "SONG - live", absorbs_edits=False)
    assert one != find_answer_names(["a", "b"], "Song", absorbs_edits=True)
    assert find_answer_names(["a"], "Song (Radio Edit)", absorbs_edits=True) == find_answer_names(["a"], "Song", absorbs_edits=True)


@pytest.mark.parametrize("kind", LOOSE_CLASSES)
def test_loose_class_is_drawn_and_leaves_the_nine_as_they_are(kind: str, made: pl.DataFrame) -> None:
    drawn = draw_queries(world(), PER_CLASS, 1, loose=True)
    assert drawn.head(made.height).equals(made)
    queries = drawn.filter(pl.col("class") == kind)
    assert kind in SELDOM or queries.height == PER_CLASS
    assert queries["recording_id"].null_count() == 0


@pytest.mark.parametrize(
    ("kind", "artist", "title", "made"),
    [
        ("initials", "The Red Hot Chili Peppers", "Give", ("rhcp", "Give")),
        ("joined", "Daft Punk", "Give", ("daftpunk", "Give")),
        ("fields_swapped", "Daft Punk", "Give", ("Give", "Daft Punk")),
        ("bare_version", "Daft Punk", "Give (Live)", ("Daft Punk", "give live")),
        ("bare_version", "Daft Punk", "Give", None),
        ("number_words", "Maroon 5", "Give 99", ("Maroon fünf", "Give neunundneunzig")),
        ("romanised", "Кино", "Кукушка", ("Кино", "kukushka")),
        ("romanised", "Кино", "Kukushka", None),
        ("partial_title", "Daft Punk", "Give", None),
    ],
)
def test_loose_query_changes_names_as_described(kind: str, artist: str, title: str, made: tuple[str, str] | None) -> None:
    assert LOOSE_MAKERS[kind](chance(1), Song(1, title, (artist,), ())) == made
