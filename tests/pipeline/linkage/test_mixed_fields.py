"""Tests of titles that hold an artist, a track number, a length or words of a shop."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.mixed_fields import _list_cuts
from pipeline.linkage.normal_forms import collect_names, normalise
from tests.pipeline.linkage.worlds import Records

ARTISTS = TABLES["source_artist"].build_empty().select("platform", "artist_id", "name")


def read(title: str, artist: str = "", *, seconds: float | None = None, track: int | None = None) -> dict[str, object]:
    """Return the normal form of one record; no artist: the record credits nobody."""
    records = Records().add("a", title, artist or [], seconds=seconds, track=track).frame()
    return normalise(records, build_name_table(collect_names(records)), ARTISTS).row(0, named=True)


@pytest.mark.parametrize(
    ("title", "artist_key", "title_key"),
    [
        ("Edith Piaf - La vie en rose", "edithpiaf", "lavieenrose"),
        ("Кино – Группа крови", "кино", "группакрови"),  # noqa: RUF001 - a dash of another length
        ("Bob Marley & The Wailers - Jamming (Live)", "bobmarleyandthewailers", "jamming"),
        ("07 - Muse - Time Is Running Out", "muse", "timeisrunningout"),
    ],
)
def test_artist_is_read_from_the_title_of_a_record_without_credits(title: str, artist_key: str, title_key: str) -> None:
    found = read(title)
    assert (found["artist_key"], found["title_key"]) == (artist_key, title_key)


@pytest.mark.parametrize("title", ["Song - Live", "Song - Remastered 2011", "Song - Radio Edit", "Song – Extended Mix"])  # noqa: RUF001
def test_version_after_a_dash_is_not_a_title_of_an_artist(title: str) -> None:
    found = read(title)
    assert (found["artist_key"], found["title_key"]) == ("", "song")


def test_credited_artist_outranks_the_title() -> None:
    assert read("Simon - Garfunkel", "Someone Else")["artist_key"] == "someoneelse"


def test_placeholder_is_not_an_artist() -> None:
    assert read("Daft Punk - One More Time", "Various Artists")["artist_key"] == "daftpunk"


@pytest.mark.parametrize(
    ("title", "artist", "title_key"),
    [
        ("Adele - Hello", "Adele", "hello"),
        ("Under the Milky Way - The Church", "The Church", "underthemilkyway"),
        ("Pulp - Common People - Pulp", "Pulp", "commonpeople"),
        ("Pulp: Babies", "Pulp", "babies"),
        ("Iron Maiden", "Iron Maiden", "ironmaiden"),
        ("The Age Of Love - Radio Edit", "Age Of Love", "theageoflove"),
        ("Black Sabbath - 2009 Remaster", "Black Sabbath", "blacksabbath"),
        ("Black Sabbath - Black Sabbath", "Black Sabbath", "blacksabbath"),
        ("Bad Company Man", "Bad Company", "badcompanyman"),
        ("U2 - One", "U2", "u2one"),
    ],
)
def test_own_artist_is_cut_off_the_title_after_a_separator(title: str, artist: str, title_key: str) -> None:
    assert read(title, artist)["title_key"] == title_key


@pytest.mark.parametrize(
    ("title", "title_key"),
    [
        ("03. Halo", "halo"),
        ("007-Aguacero", "aguacero"),
        ("128-Aguacero", "aguacero"),
        ("A1. Blue Monday", "bluemonday"),
        ("B2 - Blue Monday", "bluemonday"),
        ("Track 7: Blue Monday", "bluemonday"),
        ("2-05 While My Guitar Gently Weeps", "whilemyguitargentlyweeps"),
        ("Disco 2000 (320kbps).mp3", "disco2000"),
        ("01-one_more_time", "onemoretime"),
        ("14_paranoid_android.flac", "paranoidandroid"),
        ("21-Gun", "21gun"),
        ("C4 Dynamite", "c4dynamite"),
        ("99 Luftballons", "99luftballons"),
        ("7 Rings", "7rings"),
        ("1-800-273-8255", "18002738255"),
        ("24K Magic", "24kmagic"),
        ("50 Ways to Leave Your Lover", "50waystoleaveyourlover"),
        ("03 Bonnie & Clyde", "03bonnieandclyde"),
        ("4 - 3 - 2 - 1", "4321"),
        ("1979", "1979"),
    ],
)
def test_only_track_numbers_are_cut_off(title: str, title_key: str) -> None:
    assert read(title, "Artist")["title_key"] == title_key


def test_bare_number_is_cut_off_where_the_record_has_it_as_its_track_number() -> None:
    assert read("12. Karma Police", "Radiohead", track=12)["title_key"] == "karmapolice"
    assert read("12. Karma Police", "Radiohead", track=6)["title_key"] == "12karmapolice"


@pytest.mark.parametrize(
    ("title", "seconds", "title_key", "duration_ms"),
    [
        ("Silver And Gold $ 1.29 (C) 2014 Some Label 3:31", None, "silverandgold", 211_000),
        ("Gone 8:07", None, "gone", 487_000),
        ("Gone (8:07)", None, "gone", 487_000),
        ("Gone 8:07", 487.4, "gone", 487_400),
        ("Gone 8:07", 200, "gone807", 200_000),
        ("4:20", None, "420", None),
        ("Fly Solo 28-Mar-11", 200, "flysolo", 200_000),
        ("Clean ℗ 2015 Pax Recording", 200, "clean", 200_000),
        ("Remark March 8 , 2011", 200, "remark", 200_000),
        ("March of the Pigs", 200, "marchofthepigs", 200_000),
        ("December, 1963 (Oh, What a Night)", 200, "december1963ohwhatanight", 200_000),
        ("In the Year 2525", 200, "intheyear2525", 200_000),
    ],
)
def test_words_of_a_shop_and_lengths_are_no_title(title: str, seconds: float | None, title_key: str, duration_ms: int | None) -> None:
    found = read(title, "Artist", seconds=seconds)
    assert (found["title_key"], found["duration_ms"]) == (title_key, duration_ms)


@pytest.mark.parametrize(
    ("mixed", "title", "artist"),
    [
        ("Starboy The Weeknd Starboy", "Starboy", "The Weeknd"),
        ("We Run Sugarland Love On the Inside", "We Run", "Sugarland"),
        ("Turn Around [Some Remix] Flo Rida", "Turn Around [Some Remix]", "Flo Rida"),
        ("Chopin Nocturne in E Flat", "Nocturne in E Flat", "Chopin"),
        ("Dos Gardenias by Buena Vista Social Club", "Dos Gardenias", "Buena Vista Social Club"),
        ("月亮 / 鄧麗君", "月亮", "鄧麗君"),
    ],
)
def test_text_without_an_artist_is_found_under_its_title_and_artist(mixed: str, title: str, artist: str) -> None:
    records = (
        Records().add("a", mixed, []).add("b", title, artist, platform="store_a").add("c", title, "Somebody Else", platform="catalog_a")
    )
    assert frozenset("ab") in records.linked()


def test_text_that_names_a_remix_is_not_found_under_the_original() -> None:
    records = Records().add("a", "Turn Around [Some Remix] Flo Rida", []).add("b", "Turn Around", "Flo Rida", platform="store_a")
    assert len(records.linked()) == 2


@pytest.mark.parametrize(
    ("both", "half", "is_one"),
    [
        ("アイドル = Idol", "Idol", True),
        ("アイドル = Idol", "アイドル", True),
        ("Группа крови (Gruppa Krovi)", "Gruppa Krovi", True),
        ("좋은 날 (Good Day)", "Good Day", True),
        # The other half is a version, or of the same script.
        ("夜に駆ける (Live)", "Live", False),
        ("Good Day (Bad Night)", "Bad Night", False),
    ],
)
def test_title_in_two_scripts_is_found_under_either_half(both: str, half: str, *, is_one: bool) -> None:
    records = Records().add("a", both, "YOASOBI").add("b", half, "YOASOBI", platform="store_a", seconds=200.5)
    assert (len(records.linked()) == 1) == is_one


def test_half_of_another_artist_is_another_song() -> None:
    records = Records().add("a", "좋은 날 (Good Day)", "IU").add("b", "Good Day", "Nappy Roots", platform="store_a")
    assert len(records.linked()) == 2


@given(st.lists(st.text(st.sampled_from("ab([)]-"), min_size=1, max_size=4), max_size=8))
def test_title_never_ends_inside_a_bracket_or_before_one(words: list[str]) -> None:
    for cut in _list_cuts(words):
        front = "".join(words[:cut])
        assert 0 < cut < len(words)
        assert words[cut][0] not in "([-"
        # A closing bracket without an opening one closes nothing.
        depth = 0
        for sign in front:
            depth += (sign in "([") - (sign in ")]")
        assert depth <= 0 or ")" in front or "]" in front


@settings(max_examples=40)
@given(st.lists(st.text(st.sampled_from("ab -–—|/.:$()0123©℗ 京"), min_size=1, max_size=24), min_size=1, max_size=4))  # noqa: RUF001
def test_any_title_has_a_key_and_the_rows_keep_their_order(titles: list[str]) -> None:
    records = Records()
    for number, title in enumerate(titles):
        records.add(str(number), title.strip() or "x", [] if number % 2 else "Artist", seconds=None)
    frame = records.frame()
    found = normalise(frame, build_name_table(collect_names(frame)), ARTISTS)
    assert found["external_id"].to_list() == frame["external_id"].to_list()
    assert (found.select(pl.col("title_key").str.len_chars() > 0).to_series()).all()
