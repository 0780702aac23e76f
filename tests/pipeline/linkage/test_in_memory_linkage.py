"""Records that `link` joins and records that it keeps apart."""

from __future__ import annotations

from itertools import permutations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from pipeline.linkage import link
from pipeline.linkage.evaluation import evaluate
from tests.pipeline.linkage.worlds import Records, made_up_world, partition

CODE, OTHER = "GBABC1700001", "GBABC1700002"


def joined(*names: str) -> set[frozenset[str]]:
    """Turn `a b`, `c` into {{a, b}, {c}}."""
    return {frozenset(group.split()) for group in names}


def test_records_with_equal_artist_title_and_duration_are_one_recording_without_a_code() -> None:
    records = Records().add("a").add("b", "SONG", "ASTRID", platform="catalog_a", seconds=201.4).add("c", "Song", "Someone Else")
    assert records.linked() == joined("a b", "c")


def test_one_platform_may_list_a_recording_several_times() -> None:
    assert Records().add("a", isrcs=CODE).add("b", isrcs=CODE).add("c", isrcs=CODE, seconds=201).linked() == joined("a b c")


@pytest.mark.parametrize(
    ("title", "version"),
    [
        ("Song - Live", None),
        ("Song (Club Mix)", None),
        ("Song (Tiësto Remix)", None),
        ("Song", "Instrumental"),
        ("Song (Karaoke Version)", None),
    ],
)
def test_another_variant_under_the_same_code_stays_apart(title: str, version: str | None) -> None:
    assert Records().add("a", isrcs=CODE).add("b", title, version=version, isrcs=CODE, platform="store_a").linked() == joined("a", "b")


@pytest.mark.parametrize(("title", "version"), [("Song", "Radio Edit"), ("Song (Extended Mix)", None), ("Song - Short Version", None)])
def test_length_word_on_one_side_separates_only_records_of_different_length(title: str, version: str | None) -> None:
    records = Records().add("a", isrcs=CODE).add("b", title, version=version, isrcs=CODE, platform="store_a")
    assert records.linked() == joined("a b")
    records.rows[-1]["duration_ms"] = 205_000
    assert records.linked() == joined("a", "b")
    records.rows[-1] |= {"duration_ms": 200_000, "isrcs": []}
    assert records.linked() == joined("a b")


def test_names_in_another_script_join_by_code_and_length() -> None:
    records = Records().add("a", "Владивосток 2000", "Мумий Тролль", isrcs=CODE)
    records.add("b", "Vladivostok 2000", "Mumiy Troll", isrcs=CODE, platform="streamsvc_b")
    assert records.linked() == joined("a b")
    records.add("c", "Summer Rain", "Somebody Else", isrcs=CODE, platform="streamsvc_c")
    assert records.linked() == joined("a b", "c")


@pytest.mark.parametrize(
    "title", ["Song - Remastered 2011", "Song (Original Mix)", "Song - Album Version", "Song [Explicit]", "Song (feat. Guest)"]
)
def test_cosmetic_notes_separate_no_records(title: str) -> None:
    assert Records().add("a").add("b", title, platform="streamsvc_b").linked() == joined("a b")


def test_version_in_the_title_and_a_version_field_are_the_same() -> None:
    records = (
        Records()
        .add("a", "Song - Tiësto Remix", ["Astrid", "Tiësto"])
        .add("b", "Song", version="Tiësto Remix", platform="store_a", remixers=("Tiësto",))
    )
    assert records.linked() == joined("a b")


def test_bare_remix_takes_its_name_from_the_remixers() -> None:
    records = Records().add("a", "Song - Tiësto Remix").add("b", "Song", version="Remix", platform="store_a", remixers=("Tiësto",))
    records.add("c", "Song", version="Remix", platform="store_a", remixers=("Fedde le Grand",))
    assert records.linked() == joined("a b", "c")


def test_guests_in_the_title_and_guests_among_the_artists_do_not_split() -> None:
    records = (
        Records()
        .add("a", "Song (feat. Guest)", ["Astrid", "Guest"])
        .add("b", "Song", "Astrid", featured=("Guest",), platform="streamsvc_b")
    )
    records.add("c", "Song ft. Guest", "Astrid", platform="catalog_a")
    assert records.linked() == joined("a b c")


def test_swapped_artists_are_found_by_title_and_duration() -> None:
    assert Records().add("a", artists=["One", "Two"]).add("b", artists=["Two", "One"], platform="catalog_b").linked() == joined("a b")


def test_joined_name_is_split_only_at_known_artists() -> None:
    records = (
        Records().add("a", artists=["Drake", "21 Savage"]).add("b", artists="Drake & 21 Savage", platform="streamsvc_b", with_ids=False)
    )
    records.add("c", "Tune", "Earth, Wind & Fire").add("d", "Tune", "Earth, Wind & Fire", platform="streamsvc_b", with_ids=False)
    records.add("e", "Tune", "Earth")
    assert records.linked() == joined("a b", "c d", "e")


def test_numeric_suffixes_and_the_do_not_split_an_artist() -> None:
    assert Records().add("a", artists="The Doves").add("b", artists="Doves (2)", platform="catalog_a").linked() == joined("a b")


def test_lead_artist_has_the_platforms_own_name() -> None:
    records = Records().add("a", artists="Linda Marlin").add("b", artists="M. Marlin", platform="catalog_a")
    artists = pl.DataFrame({"platform": ["catalog_a"], "artist_id": ["id M. Marlin"], "name": ["Linda Marlin"]})
    assert partition(link(records.frame(), artists)) == joined("a b")
    assert records.linked() == joined("a", "b")


def test_symbol_names_and_scripts_stay_distinct() -> None:
    records = (
        Records()
        .add("a", artists="!!!")
        .add("b", artists="???")
        .add("c", "歌", "坂本")
        .add("d", "歌", "坂井")
        .add("e", "!!!", "X")
        .add("f", "???", "X")
    )
    assert records.linked() == joined("a", "b", "c", "d", "e", "f")


def test_records_without_a_known_artist_share_only_a_code() -> None:
    records = Records().add("a", artists="Various Artists", isrcs=CODE).add("b", artists="Various", platform="catalog_a", isrcs=CODE)
    records.add("c", artists="Various", platform="catalog_a").add("d", artists="Unknown Artist", platform="catalog_b")
    assert records.linked() == joined("a b", "c", "d")


def test_typing_error_in_title_or_artist_does_not_split() -> None:
    records = (
        Records().add("a", "Midnight Train", "Some Singer", isrcs=CODE).add("b", "Midnigth Train", "Some Singer", platform="catalog_a")
    )
    records.add("c", "Midnight Train", "Some Snger", platform="catalog_b")
    assert records.linked() == joined("a b c")


def test_misspelt_version_is_still_that_version() -> None:
    records = (
        Records()
        .add("a", "Song (Instrumentla)", seconds=180)
        .add("b", "Song", version="Instrumental", platform="store_a", seconds=180)
        .add("c", seconds=180)
    )
    assert records.linked() == joined("a b", "c")


@pytest.mark.parametrize(
    ("one", "other"), [("Night", "Light"), ("Theme Part II", "Theme Part III"), ("Song No. 2", "Song No. 3"), ("Song", "Song 2")]
)
def test_other_words_and_other_parts_are_no_typing_errors(one: str, other: str) -> None:
    records = Records().add("a", one, isrcs=CODE).add("b", other, isrcs=OTHER)
    assert records.linked() == joined("a", "b")
    assert Records().add("a", "Theme Part II").add("b", "Theme Part III", platform="catalog_a").linked() == joined("a", "b")


def test_typing_error_without_durations_needs_a_longer_name() -> None:
    records = Records().add("a", "Fever", isrcs=CODE).add("b", "Never", seconds=None, platform="catalog_a")
    records.add("c", "Midnight Garden", isrcs=OTHER).add("d", "Midnigt Garden", seconds=None, platform="catalog_a")
    assert records.linked() == joined("a", "b", "c d")


def test_neighbours_on_one_release_are_never_typing_errors_of_each_other() -> None:
    records = Records().add("a", "Morning Song", release="r").add("b", "Mourning Song", release="r")
    assert records.linked() == joined("a", "b")
    assert Records().add("a", "Morning Song", release="r").add("b", "Mourning Song", release="s").linked() == joined("a b")


def test_subtitle_left_out_by_one_platform_does_not_split() -> None:
    assert Records().add("a", "You Make Me Feel (Mighty Real)").add("b", "You Make Me Feel", platform="catalog_a").linked() == joined("a b")


def test_code_on_all_tracks_of_a_release_joins_nothing() -> None:
    records = Records()
    for number, title in enumerate(("First Things", "Another Matter", "Quite Different", "Last of All")):
        records.add(str(number), title, isrcs=CODE, release="r", seconds=180 + 20 * number)
    assert records.linked() == joined("0", "1", "2", "3")


def test_code_on_all_tracks_of_a_release_still_joins_its_own_recording() -> None:
    records = Records()
    for number, title in enumerate(("First Things", "Another Matter", "Quite Different")):
        records.add(str(number), title, isrcs=CODE, release="r")
    records.add("x", "Another Matter", "Astrid featuring Someone", isrcs=CODE, platform="streamsvc_b", with_ids=False)
    assert records.linked() == joined("0", "1 x", "2")


def test_swapped_codes_of_two_remixes_do_not_split_them() -> None:
    records = Records()
    for platform, tiesto, fedde in (("streamsvc_a", CODE, OTHER), ("streamsvc_b", CODE, OTHER), ("streamsvc_c", OTHER, CODE)):
        records.add(f"t-{platform}", "Paradise (Tiësto Remix)", platform=platform, isrcs=tiesto)
        records.add(f"f-{platform}", "Paradise (Fedde le Grand Remix)", platform=platform, isrcs=fedde)
    assert {frozenset(name[0] for name in group) for group in records.linked()} == {frozenset("t"), frozenset("f")}
    assert len(records.linked()) == 2


def test_live_at_two_places_are_two_recordings_and_a_bare_live_joins_by_its_code() -> None:
    records = (
        Records()
        .add("a", "Song - Live at Wembley", isrcs=CODE)
        .add("b", "Song - Live in Paris", isrcs=OTHER)
        .add("c", "Song (Live)", platform="streamsvc_b", isrcs=CODE)
    )
    assert records.linked() == joined("a c", "b")


def test_distant_duration_separates_unless_names_and_code_agree() -> None:
    assert Records().add("a").add("b", seconds=225, platform="catalog_a").linked() == joined("a", "b")
    assert Records().add("a", isrcs=CODE).add("b", seconds=212, isrcs=CODE, platform="catalog_a").linked() == joined("a b")
    assert Records().add("a", isrcs=CODE).add("b", seconds=320, isrcs=CODE, platform="catalog_a").linked() == joined("a", "b")


def test_record_without_duration_joins_when_there_is_no_choice() -> None:
    assert Records().add("a").add("b", seconds=None, platform="catalog_a").linked() == joined("a b")
    apart = Records().add("a").add("b", seconds=300).add("c", seconds=None, platform="catalog_a")
    assert apart.linked() == joined("a", "b", "c")
    coded = Records().add("a", isrcs=CODE).add("b", isrcs=OTHER, seconds=300).add("c", seconds=None, isrcs=OTHER, platform="catalog_a")
    assert coded.linked() == joined("a", "b c")


def test_chain_of_near_durations_does_not_join_its_ends() -> None:
    records = Records()
    for step in range(12):
        records.add(str(step), seconds=200 + 3.5 * step, platform="catalog_a")
    for group in records.linked():
        assert max(map(int, group)) - min(map(int, group)) < 4


def test_hidden_karaoke_flag_separates() -> None:
    assert Records().add("a", isrcs=CODE).add("b", platform="streamsvc_b", isrcs=CODE, traits=("karaoke",)).linked() == joined("a", "b")


def test_no_records_link_to_nothing() -> None:
    assert link(TABLES["source_recording"].build_empty()).equals(TABLES["recording_member"].build_empty())


def test_made_up_worlds_are_linked_with_few_errors() -> None:
    frame, truth = made_up_world(seed=1, songs=400)
    figures = evaluate(link(frame), truth)
    assert figures["precision"] >= 0.999  # type: ignore[operator]
    assert figures["recall"] >= 0.98  # type: ignore[operator]
    assert figures["truth_missing_in_member"] == figures["member_missing_in_truth"] == 0


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9))
def test_neither_the_order_of_records_nor_the_number_of_buckets_matters(seed: int, buckets: int) -> None:
    frame, _ = made_up_world(seed, songs=30)
    plain = link(frame)
    assert link(frame.sample(fraction=1, shuffle=True, seed=seed), buckets=buckets).equals(plain)
    assert plain.height == frame.height


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10_000))
def test_second_copy_of_a_platform_changes_no_recording(seed: int) -> None:
    frame, _ = made_up_world(seed, songs=20)
    twice = pl.concat([frame, frame.filter(pl.col("platform") == "streamsvc_a").with_columns(external_id="copy " + pl.col("external_id"))])
    before = partition(link(frame))
    after = {frozenset(name.removeprefix("copy ") for name in group) for group in partition(link(twice))}
    assert after == before


@pytest.mark.parametrize("ids", list(permutations("abc")))
def test_three_spellings_under_one_code_are_one_recording_for_all_ids(ids: tuple[str, str, str]) -> None:
    records = Records()
    spellings = zip(ids, ("Nova Sound", "Nova Sound Orchestra", "Sound Orchestra"), ("streamsvc_a", "store_a", "streamsvc_c"), strict=True)
    for name, artist, platform in spellings:
        records.add(name, artists=artist, platform=platform, isrcs="USAAA2000001")
    assert records.linked() == {frozenset("abc")}


@pytest.mark.parametrize(("seconds", "recordings"), [(202, 1), (204, 2)])
def test_words_of_length_may_be_missing_at_one_length_only(seconds: float, recordings: int) -> None:
    records = Records().add("a", "Blue (Radio Edit)", platform="store_a").add("b", "Blue", seconds=seconds)
    assert len(records.linked()) == recordings


def test_words_of_length_separate_records_with_codes_of_their_own() -> None:
    records = Records().add("a", "Blue (Radio Edit)", platform="store_a", isrcs="USAAA2000001").add("b", "Blue", isrcs="USAAA2000002")
    assert len(records.linked()) == 2


def test_other_variants_stay_apart_at_one_length() -> None:
    records = Records().add("a", "Blue (Live)", platform="store_a").add("b", "Blue").add("c", "Blue (Instrumental)")
    assert len(records.linked()) == 3
