from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.search.calibration import KNOTS, calibrate
from catalog_store.search.credits import Artists
from catalog_store.search.query_names import read_query
from catalog_store.search.reranker import FLOOR, ArtistFit, Match, TitleFit, compare_artists, compare_title, score_names
from catalog_store.search.titles import Title

LEAST = calibrate(FLOOR)


def matched(artist: str, title: str, document: tuple[tuple[str, ...], tuple[str, ...], str, str]) -> Match | None:
    asked = read_query(artist, title)
    fit = compare_title(asked, Title(*document[2:]))
    return score_names(fit, compare_artists(asked, Artists(*document[:2]))) if fit else None


def score(artist: str, title: str, document: tuple[tuple[str, ...], tuple[str, ...], str, str]) -> float:
    """0 when below the floor."""
    found = matched(artist, title, document)
    assert found is None or found.score >= LEAST
    return found.score if found else 0.0


PLAIN = (("velvet foxes",), (), "midnight running", "")
LIVE = (("velvet foxes",), (), "midnight running", "live")
REMIX = (("velvet foxes",), (), "midnight running", "remix:dafttrunk")
EDIT = (("velvet foxes",), (), "midnight running", "radio")
DUET = (("velvet foxes", "sade"), ("mo",), "midnight running", "")


@pytest.mark.parametrize(
    ("artist", "title"),
    [
        ("The Velvet Foxes", "Midnight Running"),
        ("VELVET FOXES (2)", "midnight running!"),
        ("Velvet Foxes", "Midnight Running - 2011 Remaster"),
        ("Velvet Foxes", "Midnight Running (Original Mix) (feat. )"),
    ],
)
def test_cosmetic_noise_costs_no_score(artist: str, title: str) -> None:
    found = matched(artist, title, PLAIN)
    assert found == (1.0, "exact", ("artist_equal", "title_equal", "variant_equal"))


def test_edits_match_the_plain_recording_and_a_named_edit_ranks_first() -> None:
    assert score("Velvet Foxes", "Midnight Running", PLAIN) > score("Velvet Foxes", "Midnight Running", EDIT) > 0.99
    assert (
        score("Velvet Foxes", "Midnight Running (Radio Edit)", EDIT) > score("Velvet Foxes", "Midnight Running (Radio Edit)", PLAIN) > 0.99
    )


def test_variants_rank_first_when_named_and_below_the_original_when_not() -> None:
    for asked, first in (("Midnight Running (Live)", LIVE), ("Midnight Running (Daft Trunk Remix)", REMIX), ("Midnight Running", PLAIN)):
        scores = {document: score("Velvet Foxes", asked, document) for document in (PLAIN, LIVE, REMIX)}
        assert max(scores, key=lambda document: scores[document]) == first
        assert min(scores.values()) >= LEAST


def test_one_of_several_artists_swapped_order_and_guests_are_found() -> None:
    for artist in ("Sade & Velvet Foxes", "Velvet Foxes, Sade", "Velvet Foxes x Sade feat. MØ", "Sade", "Velvet Foxes", "MØ"):
        assert score(artist, "Midnight Running", DUET) > 0.94, artist


def test_one_of_several_artists_whose_name_looks_like_two_is_found() -> None:
    document = (("mira and the marabys", "sade"), (), "midnight running", "")
    assert score("Mira & The Marabys", "Midnight Running", document) > 0.94


def test_one_word_of_any_length_may_be_missing_two_long_ones_may_not() -> None:
    assert score("Velvet Foxes", "Running", PLAIN) > 0.85
    assert score("Foxes", "Midnight Running", PLAIN) > 0.85
    assert score("Velvet Foxes", "Run", (("velvet foxes",), (), "run electric nightingale", "")) == 0


def test_typos_cost_little_and_other_names_are_below_the_floor() -> None:
    assert score("Velvit Foxes", "Midnight Runing", PLAIN) > 0.9
    assert score("Velvet Foxes", "Paper Planes", PLAIN) == 0
    assert score("Daft Trunk", "Midnight Running", PLAIN) == 0
    assert score("Nobody", "Nothing", PLAIN) == 0


def test_a_guest_alone_makes_no_artist_right() -> None:
    document = (("velvet foxes",), ("sade",), "midnight running", "")
    assert score("Daft Trunk", "Midnight Running (feat. Sade)", document) == 0
    assert score("Velvet Foxes", "Midnight Running (feat. Sade)", document) == 1
    assert score("Velvet Foxes", "Midnight Running (feat. MØ)", document) > 0.9


@pytest.mark.parametrize(
    ("title", "first"),
    [
        ("midnight running live", LIVE),
        ("Midnight Running (Lvie)", LIVE),
        ("Midnight Running (Daft TrunkR emix)", REMIX),
        ("midnight running daft trunk remx", REMIX),
        ("Midnight Running (Rdaio Edit)", EDIT),
        ("Midnight Running (RadioEdit)", EDIT),
        ("midnight running official video", PLAIN),
    ],
)
def test_versions_are_read_without_brackets_and_through_typos(title: str, first: tuple[tuple[str, ...], tuple[str, ...], str, str]) -> None:
    scores = {document: score("Velvet Foxes", title, document) for document in (PLAIN, LIVE, REMIX, EDIT)}
    assert max(scores, key=lambda document: scores[document]) == first


def test_another_title_of_the_same_letters_is_below_the_floor() -> None:
    assert score("The Beatles", "All Of Me", (("beatles",), (), "sea of time", "")) == 0


def test_words_left_out_on_both_sides_count_more_than_on_one() -> None:
    document = (("velvet foxes",), (), "midnight running", "")
    assert score("Foxes", "Running", document) < min(
        score("Foxes", "Midnight Running", document), score("Velvet Foxes", "Running", document)
    )


@given(st.floats(KNOTS[0][0], 1.0), st.floats(KNOTS[0][0], 1.0))
def test_calibration_changes_no_order(one: float, other: float) -> None:
    assert calibrate(min(one, other)) <= calibrate(max(one, other))
    assert (calibrate(KNOTS[0][0]), calibrate(1.0)) == (KNOTS[0][1], 1.0)


def test_one_word_of_the_artist_may_be_all_there_is_and_misspelt() -> None:
    document = (("electric nightingale",), (), "midnight running", "")
    assert score("Nightingele", "Midnight Running", document) > 0.5
    assert score("Nightshade", "Midnight Running", document) == 0


def test_words_left_out_of_artist_and_title_both_cost_more_than_of_either() -> None:
    def found(artist_reason: str, title_reason: str) -> Match:
        result = score_names(TitleFit(0.9, title_reason, 1.0, "variant_equal"), ArtistFit(0.9, artist_reason, 0.0))
        assert result is not None
        return result

    either = found("artist_partial", "title_similar")
    assert (either.score, either.match_class) == (calibrate(0.9), "strong")
    for artist in ("artist_equal", "artist_similar", "featured_artist", "one_of_artists"):
        assert found(artist, "title_partial").score == calibrate(0.9)
    assert found("artist_partial", "title_equal").score == calibrate(0.9)
    both = found("artist_partial", "title_partial")
    assert (both.score, both.match_class) == (calibrate(0.9 * 0.95), "fuzzy")


@pytest.mark.parametrize(
    ("asked", "credited"),
    [
        ("Velvet Foxes", ("velvet foxes", "sade")),
        ("Velvet Foxes & Sade", ("sade",)),
        ("Velvet Foxes, Sade", ("sade", "mo")),
    ],
)
def test_one_of_several_artists_on_either_side_is_worth_a_little_less_than_all(asked: str, credited: tuple[str, ...]) -> None:
    fit = compare_artists(read_query(asked, "Midnight Running"), Artists(credited, ()))
    assert (fit.likeness, fit.reason) == (0.97, "one_of_artists")


def test_misspelt_one_of_several_artists_is_worth_its_likeness() -> None:
    fit = compare_artists(read_query("Velvet Foxess", "Midnight Running"), Artists(("velvet foxes", "sade"), ()))
    assert fit.reason == "one_of_artists"
    assert fit.likeness == pytest.approx(0.97 * 12 / 13)


@pytest.mark.parametrize(
    ("asked", "document", "likeness", "reason"),
    [
        ("Velvet Foxs feat. Sade", Artists(("velvet foxes",), ()), 0.985 * 11 / 12, "artist_similar"),  # a guest whom the document lacks
        ("Daft Trunk feat. Sade", Artists(("sade",), ()), 0.85, "featured_artist"),  # the guest beside another artist
        ("Daft Trunk feat. Sadee", Artists(("sade",), ()), 0.85 * 4 / 5, "featured_artist"),
        ("Daft Trunk feat. Sade", Artists(("velvet foxes",), ("sade",)), 0.85, "featured_artist"),
    ],
)
def test_guest_counts_less_than_the_artist(asked: str, document: Artists, likeness: float, reason: str) -> None:
    fit = compare_artists(read_query(asked, "Midnight Running"), document)
    assert (fit.likeness, fit.reason) == (pytest.approx(likeness), reason)


@pytest.mark.parametrize(("title", "is_found"), [(1.0, True), (0.9, True), (0.89, False)])
def test_artist_is_read_loosely_only_beside_a_sure_title(title: float, is_found: bool) -> None:  # noqa: FBT001
    found = score_names(TitleFit(title, "title_similar", 1.0, "variant_equal"), ArtistFit(0.5, "artist_similar", 0.8))
    assert (found is not None) is is_found
    assert found is None or found.reasons[0] == "artist_partial"


def test_single_artist_is_never_one_of_several() -> None:
    fit = compare_artists(read_query("Vlvet Foxs", "Midnight Running"), Artists(("velvet foxes",), ()))
    assert fit.reason == "artist_similar"


@pytest.mark.parametrize(
    ("asked", "found", "likeness", "reason"),
    [
        ("Midnight Running", "midnight running again", 0.90, "artist_partial"),  # nearly as long: words left out, not misspelt
        ("Midnight Runing", "midnight running", 0.9375, "artist_similar"),
        ("Running Midnight", "midnight running", 0.985, "artist_similar"),
        ("Running", "midnight running", 0.80, "artist_partial"),  # one word, the longer
        ("Go On", "go on extraordinarily", 0.80, "artist_partial"),
        ("Sonic Vision", "sonic vision original mix extended", 0.70, "artist_partial"),  # what the other begins with
        ("Sonic Vision Original Mix Extended", "sonic vision", 0.70, "artist_partial"),
        ("Go In", "go in extraordinarily long songs", 0.70, "artist_partial"),  # five letters are enough
        ("Nightingale Songs Of A Long Winter", "nightingale", 0.70, "artist_partial"),
        ("Nightingale", "nightingale songs of a long winter", 0.0, "artist_similar"),  # one word asked for says too little
        ("Ab C", "ab c songs of winter", 0.0, "artist_similar"),
        ("Ab C Songs Of Winter", "ab c", 0.0, "artist_similar"),
    ],
)
def test_name_with_words_left_out_is_worth_less_the_more_are_missing(asked: str, found: str, likeness: float, reason: str) -> None:
    fit = compare_artists(read_query(asked, "Midnight Running"), Artists((found,), ()))
    assert (fit.likeness, fit.reason) == (pytest.approx(likeness), reason)


def test_title_misspelt_before_a_note_without_brackets_is_read_with_the_note() -> None:
    fit = compare_title(read_query("Velvet Foxes", "Midnight Runing Live"), Title("midnight running", "live"))
    assert fit is not None
    assert (fit.likeness, fit.variant, fit.variant_reason) == (pytest.approx(36 / 37), 0.995, "variant_similar")
    assert compare_title(read_query("Velvet Foxes", "Midnight Ruling Dove"), Title("midnight running", "live")) is None


def test_title_without_its_subtitle_is_worth_nearly_all() -> None:
    fit = compare_title(read_query("Velvet Foxes", "Midnight Running (Part of Me)"), Title("midnight running", ""))
    assert fit == TitleFit(0.97, "title_similar", 1.0, "variant_equal")


@pytest.mark.parametrize(
    ("likeness", "match_class"),
    [(1.0, "exact"), (0.995, "exact"), (0.994, "strong"), (0.90, "strong"), (0.899, "fuzzy"), (FLOOR, "fuzzy"), (FLOOR - 0.001, None)],
)
def test_class_of_a_match_begins_at_its_likeness(likeness: float, match_class: str | None) -> None:
    found = score_names(TitleFit(1.0, "title_equal", likeness, "variant_similar"), ArtistFit(1.0, "artist_equal", 0.0))
    assert (found.match_class if found else None) == match_class
