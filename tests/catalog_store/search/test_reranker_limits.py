"""Tests of the reranker at its limits: weights and shares against a plain formula, and each length at which another rule decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.search import reranker
from catalog_store.search.calibration import calibrate
from catalog_store.search.credits import Artists
from catalog_store.search.query_names import read_query
from catalog_store.search.reranker import ArtistFit, Comparison, Match, TitleFit, compare_artists, compare_title, score_names
from catalog_store.search.titles import Title

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST = (0.79 - 0.35) / 0.65
likenesses = st.sampled_from([0.0, 0.5, 0.67, LEAST, 0.7, 0.8, 0.89, 0.9, 0.95, 0.97, 1.0])


def expected(title: TitleFit, artists: ArtistFit) -> Match | None:
    artist, reason = artists.likeness, artists.reason
    if artist < LEAST and title.likeness >= 0.9 and (artists.loosely, "artist_partial") > (artist, reason):
        artist, reason = artists.loosely, "artist_partial"
    worse, better = sorted((artist, title.likeness))
    likeness = (0.65 * worse + (1 - 0.65) * better) * (title.variant * 0.95 if (reason, title.reason) == PARTIAL else title.variant)
    if likeness < 0.79:
        return None
    name = "exact" if likeness >= 0.995 else "strong" if likeness >= 0.9 else "fuzzy"
    return Match(calibrate(likeness), name, (reason, title.reason, title.variant_reason))


PARTIAL = ("artist_partial", "title_partial")


@settings(max_examples=300, deadline=None)
@given(
    likenesses,
    st.sampled_from(["title_equal", "title_partial"]),
    st.sampled_from([0.9, 0.99, 1.0]),
    likenesses,
    st.sampled_from(["artist_similar", "artist_partial"]),
    likenesses,
)
def test_score_is_the_weighed_sum_with_its_factors(
    title: float, title_reason: str, variant: float, artist: float, artist_reason: str, loosely: float
) -> None:
    fits = TitleFit(title, title_reason, variant, "variant_equal"), ArtistFit(artist, artist_reason, loosely)
    assert score_names(*fits) == expected(*fits)


@pytest.mark.parametrize(
    ("asked", "found", "likeness", "is_whole"),
    [
        ("midnight", "midnight", 1.0, True),
        ("midnihgt", "midnight", 0.875, True),
        ("running midnight", "midnight running", 0.985, True),
        ("abcdefghij", "abcdefghi", 0.9, True),
        ("ab cd", "ab cd efgh", 0.9, False),  # twice as long: words left out
        ("ab cd", "ab cd efghi", 0.8, False),  # one word missing, whatever its length
        ("abcde", "abcde fg hij", 0.0, True),  # begins so, but one word asked for says too little
        ("abc d", "abc d ef ghi", 0.7, False),
    ],
)
def test_names_are_compared_whole_or_with_words_left_out(asked: str, found: str, likeness: float, is_whole: bool) -> None:  # noqa: FBT001
    value, whole = reranker._measure_likeness(asked, found)
    assert value == pytest.approx(likeness)
    assert whole is is_whole


@pytest.mark.parametrize(
    ("shorter", "longer", "is_asked", "likeness"),
    [
        ("abcde", "abcde fghi", False, 0.9),
        ("abcde", "xbcde fghij", False, 0.0),
        ("abcde", "abcde fg hij", True, 0.7),  # five letters that the longer, asked for, begins with
        ("abcde", "abcde fg hij", False, 0.0),  # one word asked for says too little
        ("abc d", "abc d ef ghi", False, 0.7),
        ("abcd", "abcd fg hij", True, 0.0),  # four letters
        ("abcde", "abcdefg hi j", True, 0.0),  # a beginning ends at a space
    ],
)
def test_words_left_out_are_worth_less_the_longer_the_other_text(shorter: str, longer: str, is_asked: bool, likeness: float) -> None:  # noqa: FBT001
    asked = longer if is_asked else shorter
    assert reranker._measure_partial_likeness(shorter, longer, asked) == pytest.approx(likeness)


@pytest.mark.parametrize(
    ("asked", "found", "likeness"),
    [
        ("velvet", "velvet foxes", 0.8),
        ("velvet foxes", "velvet", 0.8),
        ("velvet foxes", "velvet boxes", 0.0),  # no word is left out
        ("abcd", "abcx efgh", 0.8 * 0.75),
        ("abcdefg", "abcdexx efgh", 0.0),
        ("abcdefgh ab", "abcdefgh xy zz", 0.8 * 0.85),  # by letters: 8, and a quarter of 2, of 10
    ],
)
def test_loose_likeness_counts_the_letters_of_words_that_both_have(asked: str, found: str, likeness: float) -> None:
    assert reranker._measure_loose_likeness(asked, found) == pytest.approx(likeness)


@pytest.mark.parametrize(
    ("title", "core", "variant", "fit"),
    [
        ("Midnight Running", "midnight running", "live", None),  # nothing behind the song
        ("Midnight", "midnight running", "live", None),
        ("Midnight Running Xyzzy", "midnight running", "live", None),  # no note
    ],
)
def test_end_of_a_title_is_a_note_only_when_there_is_one(title: str, core: str, variant: str, fit: object) -> None:
    asked = read_query("Velvet Foxes", title)
    assert reranker._compare_with_note(asked, Title(core, variant), 0.5) == (0.5, fit)


def test_title_that_no_artist_can_lift_to_the_floor_is_left_out() -> None:
    asked = read_query("Velvet Foxes", "abcdefghijklmnopqrst")
    for errors, is_kept in ((6, True), (7, False)):
        fit = compare_title(asked, Title("0123456789"[:errors] + "abcdefghijklmnopqrst"[errors:], ""))
        assert (fit is not None) is is_kept, "13 of 20 letters are less than 0.677"
        assert fit is None or fit.likeness == pytest.approx(1 - errors / 20)


@pytest.mark.parametrize(
    ("asked", "primary", "featured", "fit"),
    [
        ("Velvet Foxes", ("velvet foxes",), (), ArtistFit(1.0, "artist_equal", 0.0)),
        ("Sade & Velvet Foxes", ("velvet foxes", "sade"), (), ArtistFit(1.0, "artist_equal", 0.0)),
        ("Velvet Foxes & Sade", ("velvet foxes",), ("sade",), ArtistFit(1.0, "artist_equal", 0.0)),
        ("Sade", ("velvet foxes",), ("sade",), ArtistFit(0.96, "featured_artist", 0.0)),
        ("Velvet Foxes feat. Sade", ("velvet foxes",), (), ArtistFit(1.0, "artist_equal", 0.0)),
    ],
)
def test_artists_fit_by_the_best_of_several_readings(
    asked: str, primary: tuple[str, ...], featured: tuple[str, ...], fit: ArtistFit
) -> None:
    assert compare_artists(read_query(asked, "Midnight Running"), Artists(primary, featured)) == fit


def test_artist_below_the_floor_is_read_loosely_and_one_above_is_not() -> None:
    loose = compare_artists(read_query("Velvit", "Midnight Running"), Artists(("velvet electric nightingales",), ()))
    assert loose.likeness < LEAST
    assert loose.loosely == pytest.approx(0.8 * 5 / 6)
    assert compare_artists(read_query("Velvet Foxes", "x"), Artists(("velvet foxes band",), ())).loosely == 0.0


def test_each_title_and_each_list_of_artists_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    titles, artists = reranker.compare_title, reranker.compare_artists

    def title(asked: Any, found: Title) -> TitleFit | None:  # noqa: ANN401
        compared.append(found.core)
        return titles(asked, found)

    def names(asked: Any, found: Artists) -> ArtistFit:  # noqa: ANN401
        compared.append(found.primary[0])
        return artists(asked, found)

    monkeypatch.setattr(reranker, "compare_title", title)
    monkeypatch.setattr(reranker, "compare_artists", names)
    held = [Title("midnight running", ""), Title("other thing", ""), Title("midnight runing", "")]
    of = [held[place] for place in (0, 1, 0, 2, 0)]

    def look_up(documents: Sequence[int]) -> list[Title]:
        return [of[document] for document in documents]

    index: Any = SimpleNamespace(
        titles=SimpleNamespace(of=look_up),
        credit_of=[0, 1, 0, 1, 2],
        credits=[Artists(("velvet foxes",), ()), Artists(("velvet foxe",), ()), Artists(("somebody else",), ())],
    )
    found = Comparison(index, read_query("Velvet Foxes", "Midnight Running")).find_matches([0, 1, 2, 3, 4])
    assert list(found) == [0, 2, 3]
    assert found[0] == found[2] == Match(1.0, "exact", ("artist_equal", "title_equal", "variant_equal"))
    assert sorted(compared) == sorted(
        ["midnight running", "other thing", "midnight runing", "velvet foxes", "velvet foxe", "somebody else"]
    )
