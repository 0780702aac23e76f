"""Tests of weak signals: they join records without strong evidence only if enough of them agree."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from pipeline.linkage import link
from tests.pipeline.linkage.worlds import Records, partition

CODE, OTHER_CODE = "GBABC2000001", "GBABC2000002"
TITLE, ARTIST = "Nothing Else Matters", "Apocalyptica Quartet"


def pair(title: str = TITLE, artist: str | list[str] = ARTIST, seconds: float | None = 200, **more: Any) -> Records:  # noqa: ANN401 - as `Records.add`
    """Return a plain record, and one that differs from it."""
    return Records().add("a", TITLE, ARTIST).add("b", title, artist, platform="store_a", seconds=seconds, **more)


def is_one(records: Records, **more: Any) -> bool:  # noqa: ANN401 - as `link`
    return frozenset("ab") in partition(link(records.frame(), **more))


def albums(**titles: str) -> dict[str, pl.DataFrame]:
    """Return releases and tracks for `link`: record `a` is on release `ra`, `b` on `rb`, both as track 3."""
    platforms = {"a": "streamsvc_a", "b": "store_a", "c": "catalog_a"}
    made = [
        {"platform": platforms[name], "release_id": f"r{name}", "title": title, "artists": [], "is_compilation": False, "is_official": True}
        for name, title in titles.items()
    ]
    placed = [
        {"platform": platforms[name], "release_id": f"r{name}", "external_id": name, "disc_number": 1, "track_number": 3} for name in titles
    ]
    return {
        name: TABLES[f"source_{kind}"].conform(pl.DataFrame(rows))
        for name, kind, rows in (("releases", "release", made), ("tracks", "release_track", placed))
    }


@pytest.mark.parametrize(
    ("title", "artist"),
    [
        ("Nothng Else Mattres", "Apocaliptica Quartet"),
        ("Notheng Els Matters", "Apocalyptika Quartett"),
        ("Matters Nothing Else", ARTIST),
        (TITLE, "Quartet Apocalyptica"),
        (ARTIST, TITLE),
        ("Nothing Else Matters S", "Apocalyptica"),
    ],
)
def test_errors_in_two_fields_leave_enough_evidence(title: str, artist: str) -> None:
    assert is_one(pair(title, artist))


@pytest.mark.parametrize(
    ("title", "artist", "seconds"),
    [
        ("Everything Else Matters", ARTIST, 200),
        ("Something Else Matters", ARTIST, 200),
        (TITLE, "Some Other Band", 200),
        ("Nothng Else Mattres", "Apocaliptica Quartet", 230),
        ("Nothing Else Matters Part 2", ARTIST, 200),
        ("Nothing Else Matters - Live", "Apocaliptica Quartet", 200),
        ("Nothing Else Matters Live from Somewhere", ARTIST, 200),
    ],
)
def test_other_song_version_artist_or_length_stays_apart(title: str, artist: str, seconds: float) -> None:
    assert not is_one(pair(title, artist, seconds))


def test_missing_artist_needs_an_album_or_one_length() -> None:
    records = pair(artist=[], seconds=201.5)
    assert not is_one(records)
    assert is_one(records, **albums(a="Cult", b="Cult (Special Edition)"))
    assert is_one(pair(artist=[], seconds=200.4))
    assert not is_one(pair(artist=[], seconds=200.4), **albums(a="Cult", b="Reflections"))


def test_album_with_a_typing_error_is_the_same_album() -> None:
    records = pair(artist=[], seconds=201.5)
    assert is_one(records, **albums(a="Plays Metallica", b="Plays Metalica"))
    assert is_one(records, **albums(a="Plays Metallica", b="Pays Metallica"))
    assert not is_one(records, **albums(a="Plays Metallica", b="Pays Metalica"))


def test_missing_artist_stands_in_front_of_the_album() -> None:
    records = Records().add("a", "Holiday", [], seconds=232).add("b", "Holiday", "Green Day", platform="store_a", seconds=232)
    assert is_one(records, **albums(a="Green Day - American Idiot", b="American Idiot"))
    assert not is_one(records, **albums(a="Madonna - American Idiot", b="American Idiot"))
    assert not is_one(records, **albums(a="Green Day - Dookie", b="American Idiot"))


@pytest.mark.parametrize(
    ("plain", "marked", "seconds", "joined"),
    [
        # The album of the track without the word is a concert, and the other's album is that or unknown.
        ("Unplugged In New York", "MTV Unplugged In New York", 200, True),
        ("Live Rust", "Live Rust", 201.5, True),
        ("Live Rust", "", 201.5, True),
        ("Live Rust", "", 203, False),
        ("Live Rust", "Weld", 200, False),
        ("Rust Never Sleeps", "", 200, False),
        ("", "Live Rust", 200, False),
        # Track 3 of one album is one track.
        ("Rust", "Rust", 200, True),
    ],
)
@pytest.mark.parametrize("note", ["Live", "Live at the Cow Palace"])
def test_track_of_a_concert_album_may_lack_the_word(plain: str, marked: str, seconds: float, note: str, *, joined: bool) -> None:
    records = Records().add("a", "Powderfinger", "Neil Young", seconds=200)
    records.add("b", f"Powderfinger - {note}", "Neil Young", platform="store_a", seconds=seconds)
    titles = {side: title for side, title in (("a", plain), ("b", marked)) if title}
    assert is_one(records, **albums(**titles)) == joined


def test_track_of_a_concert_album_leaves_the_studio_take() -> None:
    records = Records().add("a", "Powderfinger", "Neil Young", seconds=200)
    records.add("b", "Powderfinger (Live)", "Neil Young", platform="store_a", isrcs="USAAA7900001")
    records.add("c", "Powderfinger", "Neil Young", platform="store_a", seconds=206, isrcs="USAAA7900002")
    found = partition(link(records.frame(), **albums(a="Live Rust")))
    assert found == {frozenset("ab"), frozenset("c")}


def test_single_of_the_same_name_gives_no_evidence() -> None:
    assert not is_one(pair(artist=[], seconds=201.5), **albums(a=TITLE, b=TITLE))


def test_wrong_length_of_a_single_record_needs_album_place_and_year() -> None:
    wrong = pair(seconds=90).add("c", TITLE, ARTIST, platform="catalog_b")
    assert len(wrong.linked()) == 2
    dated = albums(a="Cult", b="Cult")
    assert len(partition(link(wrong.frame(), **dated))) == 2
    dated["releases"] = dated["releases"].with_columns(release_date=pl.lit("2000-10-23"), release_date_precision=pl.lit("day"))
    assert len(partition(link(wrong.frame(), **dated))) == 1


def test_album_after_the_title_makes_no_other_song() -> None:
    records = pair("Nothing Else Matters Plays Cult", seconds=203)
    assert not is_one(records)
    assert is_one(records, **albums(a="Plays Cult"))


@pytest.mark.parametrize(
    "title", ["Notheng Else Matters Plays Cult", "Plays Cult: Nothing Else Matters", "Nothing Else Matters Plays Cvlt"]
)
def test_album_around_the_title_is_read_beside_a_typing_error(title: str) -> None:
    assert is_one(pair(title, seconds=201), **albums(a="Plays Cult"))


@pytest.mark.parametrize("title", ["Nothing Else Matters by Apocalyptica Quartet", "Nothing Else Matters Apocalyptica Quartet"])
def test_own_artist_after_the_title_makes_no_other_song(title: str) -> None:
    assert is_one(pair(title, seconds=203))
    assert is_one(pair(title, seconds=None))
    assert not is_one(pair("Nothing Else Matters Wembley", seconds=None))


@pytest.mark.parametrize("title", ["Nothing Else Really Matters", "Nothing Matters", "Really Nothing Else Matters"])
def test_missing_word_joins_at_one_length_only(title: str) -> None:
    assert is_one(pair(title, seconds=201))
    assert not is_one(pair(title, seconds=203.5))
    assert not is_one(pair(title, seconds=None))
    assert not is_one(pair(f"{title} 2", seconds=201))


@pytest.mark.parametrize("title", ["Else Matters", "Suddenly Now Nothing Else Matters"])
def test_title_that_lacks_more_than_a_quarter_in_front_is_another_song(title: str) -> None:
    assert not is_one(pair(title))


def test_title_cut_by_a_few_letters_counts_as_one_error() -> None:
    records = Records().add("a", "Midsummer", "Apocalyptica").add("b", "Midsumm", "Apocaliptica", platform="store_a")
    assert is_one(records)


def test_two_records_without_an_artist_join_by_a_long_title_and_length() -> None:
    records = Records().add("a", TITLE, []).add("b", TITLE, [], platform="store_a", seconds=200.4)
    assert is_one(records)
    assert not is_one(Records().add("a", "Matters", []).add("b", "Matters", [], platform="store_a", seconds=200.4))


def test_album_after_a_song_of_the_same_name_makes_no_other_song() -> None:
    records = Records().add("a", "Nothing", ARTIST).add("b", "Nothing - Nothing", ARTIST, platform="store_a", seconds=203)
    assert is_one(records)
    assert not is_one(Records().add("a", "Nothing", ARTIST).add("b", "Nothing - Everything", ARTIST, platform="store_a", seconds=203))


@pytest.mark.parametrize("title", ["Nothing Else Matters Plays Cultt", "Pays Cult - Nothing Else Matters"])
def test_damaged_album_around_the_title_is_read_from_the_album_of_the_other_side(title: str) -> None:
    assert is_one(pair(title, seconds=203), **albums(a="Plays Cult"))
    assert not is_one(pair(title, seconds=203), **albums(b="Plays Cult"))
    assert not is_one(pair(title, seconds=203), **albums(a="Reflections"))


def test_single_of_a_longer_title_does_not_explain_it() -> None:
    title = "Nothing Else Matters Suddenly"
    assert not is_one(pair(title, seconds=203), **albums(b=title))


@pytest.mark.parametrize("title", ["21 Nothing Else Matters", "B3 Nothing Else Matters", "Track 7 Nothing Else Matters"])
def test_track_number_in_front_is_not_a_word_of_an_untimed_title(title: str) -> None:
    assert is_one(pair(title, "Apocaliptica Quartet", seconds=None))
    assert not is_one(pair("Nothing Else Matters 21", "Apocaliptica Quartet", seconds=None))


@pytest.mark.parametrize("name", ["Artist", "Performer"])
def test_label_of_the_artist_field_counts_as_a_missing_artist(name: str) -> None:
    assert is_one(pair(artist=name, seconds=200.4))
    assert not is_one(pair(artist=name, seconds=203))
    assert not is_one(pair(artist="Artistry", seconds=200.4))


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [("Philip Collins", "P. Collins", True), ("Philip Collins", "J. Collins", False), ("Michael Jackson", "Janet Jackson", False)],
)
def test_initial_stands_for_the_name_that_it_begins(one: str, other: str, joined: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_one(Records().add("a", TITLE, one).add("b", TITLE, other, platform="store_a")) is joined


def test_initial_stands_for_a_word_of_a_title_at_one_length() -> None:
    assert is_one(pair("N. Else Matters", seconds=201))
    assert not is_one(pair("N. Else Matters", seconds=203.5))
    assert not is_one(pair("E. Else Matters", seconds=201))


def test_artist_of_few_letters_is_not_a_guest() -> None:
    records = Records().add("a", TITLE, "T. Rex").add("b", "Nothing Else Matters Plays Cult", "T. Rex", platform="store_a")
    assert is_one(records)


def test_year_after_the_title_marks_a_later_recording() -> None:
    dated = albums(a="Cult", b="Again")
    dated["releases"] = dated["releases"].with_columns(
        release_date=pl.Series(["2004-05-11", "2018-12-21"]), release_date_precision=pl.lit("day")
    )
    assert not is_one(pair("Nothing Else Matters 2018"), **dated)


def test_record_without_length_joins_the_only_recording_of_its_song() -> None:
    untimed = ("Nothing Else Mattters", "Apocaliptica Quartet", None)
    assert is_one(pair(*untimed))
    two = pair(*untimed).add("c", TITLE, ARTIST, platform="catalog_a", seconds=400)
    assert not is_one(two)


def test_typing_error_without_a_length_joins_no_recording_where_several_could_be_meant() -> None:
    for ids in ("abc", "cab", "bca"):
        records = Records().add(ids[0], "Nothng Else Mattres", ARTIST, seconds=None)
        records.add(ids[1], TITLE, ARTIST, platform="catalog_a", seconds=300).add(ids[2], TITLE, ARTIST, platform="catalog_b", seconds=200)
        assert records.linked() == {frozenset(name) for name in ids}


@pytest.mark.parametrize(
    ("one", "other"),
    [("Bob Marley & The Wailers", "The Wailers"), ("Toots & The Maytals", "The Maytals"), ("Klaus Nomi Ensemble", "Nomi Ensemble")],
)
def test_group_is_the_group_with_its_leader(one: str, other: str) -> None:
    assert is_one(Records().add("a", TITLE, one).add("b", TITLE, other, platform="store_a"))


@pytest.mark.parametrize("ensemble", ["A Tribute to The Wailers", "The Songs of The Wailers", "Vitamin Quartet Performs The Wailers"])
def test_ensemble_that_covers_an_artist_is_not_the_artist(ensemble: str) -> None:
    assert not is_one(Records().add("a", TITLE, ensemble).add("b", TITLE, "The Wailers", platform="store_a"))


@pytest.mark.parametrize("title", ["Intro", "Untitled", "Allegro ma non troppo", "Interlude 2"])
def test_generic_title_is_never_joined_by_weak_signals(title: str) -> None:
    assert not is_one(Records().add("a", title, ARTIST).add("b", title, "Quartet Apocalyptica", platform="store_a"))


def test_two_codes_are_never_joined_through_a_record_without_one() -> None:
    records = Records().add("a", TITLE, ARTIST, isrcs=CODE).add("b", "Nothng Else Mattres", "Apocaliptica Quartet", platform="store_a")
    records.add("c", TITLE, "Apocalyptica Quartett", platform="catalog_b", isrcs=OTHER_CODE, seconds=203.5)
    assert frozenset("abc") not in records.linked()


def test_coded_record_takes_in_one_without_a_code() -> None:
    records = Records().add("a", TITLE, ARTIST, isrcs=CODE).add("b", "Nothng Else Mattres", "Apocaliptica Quartet", platform="store_a")
    assert is_one(records)


def test_two_tracks_of_one_release_stay_two() -> None:
    records = (
        Records()
        .add("a", TITLE, ARTIST, release="r", track=1)
        .add("b", "Nothng Else Mattres", "Apocaliptica Quartet", release="r", track=2)
    )
    assert not is_one(records)


@pytest.mark.parametrize(("one", "other"), [("Overture Side A", "Overture Side B"), ("Prelude in C Major", "Prelude in D Major")])
def test_letter_that_numbers_a_piece_is_not_a_typing_error(one: str, other: str) -> None:
    assert not is_one(Records().add("a", one, ARTIST).add("b", other, ARTIST, platform="store_a"))


LETTERS = "abcdefghijklmnopqrstuvwxyz"
SONGS = st.tuples(
    st.sampled_from(["Nothing Else Matters", "Nothng Else Mattres", "Matters Nothing Else", "Apocalyptica Quartet - Nothing Else Matters"]),
    st.sampled_from([[], "Apocalyptica Quartet", "Apocaliptica Quartett", "Quartet Apocalyptica"]),
    st.sampled_from([None, 200, 201, 204, 212, 300]),
    st.sampled_from(["", "", "", CODE, OTHER_CODE]),
)


@pytest.mark.slow
@settings(max_examples=15)  # each example links twice, half a CPU second
@given(songs=st.lists(SONGS, min_size=2, max_size=7), order=st.permutations(range(7)), buckets=st.integers(1, 4))
def test_recordings_depend_on_no_id_order_or_bucket(songs: list[Any], order: list[int], buckets: int) -> None:
    def build(names: list[str]) -> Records:
        records = Records()
        for number, (name, (title, artist, seconds, code)) in enumerate(zip(names, songs, strict=True)):
            platform = ("streamsvc_a", "store_a", "catalog_a", "catalog_b")[number % 4]
            records.add(name, title, artist, platform=platform, seconds=seconds, isrcs=code)
        return records

    names = list(LETTERS[: len(songs)])
    plain = build(names).linked()
    rank = [place for place in order if place < len(songs)]
    # Ids in another order, rows in another order, and another number of buckets.
    renamed = {LETTERS[25 - rank[number]]: name for number, name in enumerate(names)}
    frame = build(list(renamed)).frame()
    frame = frame[rank]
    found = partition(link(frame, buckets=buckets))
    assert {frozenset(renamed[name] for name in group) for group in found} == plain


@pytest.mark.parametrize(
    ("title", "artist", "version"),
    [
        ("A2 Nothing Else Matters", ARTIST, None),
        ("03 Nothing Else Matters", ARTIST, None),
        ("Apocalyptica Quartet: Nothing Else Matters", "N/A", None),
        ("Nothing Else Matters by Apocalyptica Quartet", "Unknown Artist", None),
        ("Nothing Else Matters / Apocalyptica Quartet", "<unknown>", "Original Mix"),
        ("03-apocalyptica_quartet-nothing_else_matters", ARTIST, None),
    ],
)
def test_number_and_artist_in_the_title_are_read(title: str, artist: str, version: str | None) -> None:
    records = Records().add("a", TITLE, ARTIST).add("b", title, artist, platform="store_a", version=version, with_ids=False)
    assert is_one(records)


@pytest.mark.parametrize(
    ("seconds", "joined"),
    [(205, True), (240, True), (204, True), (225, False), (300, False)],
)
def test_rounded_length_speaks_against_no_other_within_its_step(seconds: float, joined: bool) -> None:  # noqa: FBT001
    """Ten seconds (200, 210) or minutes (240): 225 s and 300 s are no rounding of 204.8 s, and 204 s is near."""
    records = Records().add("a", TITLE, ARTIST, seconds=seconds if seconds == 240 else 204.8 if seconds in (204, 225, 300) else 200)
    records.add("b", TITLE, ARTIST, platform="store_a", seconds=218 if seconds == 240 else seconds)
    assert is_one(records, **albums(a="Worlds Collide Tour", b="Worlds Collide Tour")) is joined


def test_movement_without_its_work_joins_by_length_and_artist() -> None:
    work = "Requiem in F Major, K. 225: III. Finale"
    records = (
        Records()
        .add("a", work, "Silvia Moreno Quartet", seconds=323)
        .add("b", "III. Finale", "Silvia Moreno Quartet", platform="store_a", seconds=323.8)
    )
    assert is_one(records, **albums(a="Requiems", b="Requiems"))
    records.rows[1]["duration_ms"] = None
    records.rows[1]["title"] = "II. Finale"
    assert not is_one(records, **albums(a="Requiems", b="Requiems"))


def test_movement_joins_the_only_work_of_its_artist_with_it_at_its_length() -> None:
    movement, work = "III. Allegro con brio", "Piano Trio No. 7 in G Major, Op. 100: III. Allegro con brio"
    records = Records().add("a", work, ARTIST).add("b", movement, ARTIST, platform="store_a", seconds=200.6)
    assert is_one(records)
    records.add("c", "Mass No. 9 in D Major, Op. 83: III. Allegro con brio", ARTIST, platform="catalog_a", seconds=202.5)
    assert not is_one(records)


@pytest.mark.parametrize(
    ("title", "artist", "seconds"),
    [
        ("II. Allegro con brio", ARTIST, 200),
        ("III. Allegro con brio", "Another Ensemble", 200),
        ("III. Allegro con brio", ARTIST, 206),
        ("III. Allegro con brio", ARTIST, None),
    ],
)
def test_movement_alone_joins_no_other_work(title: str, artist: str, seconds: float | None) -> None:
    records = Records().add("a", "Piano Trio No. 7 in G Major, Op. 100: III. Allegro con brio", ARTIST)
    assert not is_one(records.add("b", title, artist, platform="store_a", seconds=seconds))


def test_work_without_an_artist_says_less_than_a_song_without_one() -> None:
    work = "Violin Concerto No. 8 in G Major, Op. 78: II. Adagio sostenuto"
    assert not is_one(Records().add("a", work, []).add("b", work, [], platform="store_a", seconds=200.6))


def test_sound_distinguishes_artists_of_two_scripts() -> None:
    title = "Unforgettable Midnight Conversation"
    assert is_one(Records().add("a", title, "Танцующие Медведи").add("b", title, "Tantsuyushchie Medvedi", platform="store_a"))
    assert not is_one(Records().add("a", title, "Танцующие Медведи").add("b", title, "Apocalyptica Quartet", platform="store_a"))
