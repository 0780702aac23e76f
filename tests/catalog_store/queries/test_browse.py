from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog_store.cursors import LARGEST_PLACE, CursorCodec, Place
from catalog_store.errors import InvalidCursorError, InvalidQueryError, UnknownGenreError
from catalog_store.queries import browse as browsing
from catalog_store.queries.browse import BrowseFilters, browse
from catalog_store.queries.entity_names import find_ids_by_name
from tests.catalog_store.catalog_tables import MERGED_ID
from tests.catalog_store.plain_lists import browsed, dated, mixed_frames
from tests.catalog_store.queries.conftest import Served, served

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.queries.pages import BodyPage

CURSORS = CursorCodec()
FILTERS = st.builds(
    BrowseFilters,
    genre_id=st.sampled_from([None, None, 1, 2, 3, 4, 5]),
    genre=st.sampled_from([None, "house", "DEEP HOUSE"]),
    year=st.sampled_from([None, None, 1999, 2004, 2030, 1850]),
    label_id=st.sampled_from([None, None, 1, 3, 77, 999]),
    label=st.sampled_from([None, "LABEL 1", "ночь", "!!!", "Nobody"]),
    artist_id=st.sampled_from([None, None, None, 1, 7, MERGED_ID, 999]),
    artist=st.sampled_from([None, None, None, "velvet foxes", "кино", "!!!", ""]),
)


def page(mixed: Served, filters: BrowseFilters, limit: int = 5, cursor: str | None = None, *, randomize: bool = False) -> BodyPage:
    return browse(mixed.store, CURSORS, filters, limit=limit, cursor=cursor, randomize=randomize)


def ids_of(found: BodyPage) -> list[int]:
    return [json.loads(body)["id"] for body in found.bodies]


def every(mixed: Served, filters: BrowseFilters, limit: int, *, randomize: bool = False) -> list[int]:
    found, cursor = [], None
    while True:
        one = page(mixed, filters, limit, cursor, randomize=randomize)
        assert len(one.bodies) == limit or one.next_cursor is None
        found += ids_of(one)
        cursor = one.next_cursor
        if cursor is None:
            return found
        assert one.bodies


def test_other_name_finds_an_artist_if_no_artist_has_it_as_main_name(tmp_path: Path) -> None:
    rows = mixed_frames(40, 1)
    (one, other) = (row["artist_id"] for row in rows["artist"][:2])
    rows["artist"][1]["recording_count"] = 1
    names = [("Zorro", "alias"), ("Dorn, Ada", "sort_name"), ("Ada Maria Dorn", "legal_name"), ("Printed", "credit")]
    names.append((rows["artist"][1]["name"].upper(), "alias"))
    rows["artist_alias"] += [{"artist_id": one, "alias": name, "kind": kind, "platform": "catalog_b"} for name, kind in names]
    opened = served(rows, tmp_path)
    asked = ("ZORRO", "Dorn Ada", "Ada Maria Dorn", "Printed", rows["artist"][1]["name"])
    assert [find_ids_by_name(opened.store, "artist", name) for name in asked] == [[one], [one], [one], [], [other]]
    opened.store.close()


def test_artist_without_tracks_does_not_hide_another_of_that_other_name(tmp_path: Path) -> None:
    rows = mixed_frames(40, 1)
    one, empty, full = rows["artist"][:3]
    empty |= {"name": "Johann Sebastian Bach", "recording_count": 0, "release_count": 0}
    full |= {"name": "Wagner", "recording_count": 3}
    names = [
        {"artist_id": one["artist_id"], "alias": name, "kind": "alias", "platform": "catalog_b"} for name in (empty["name"], full["name"])
    ]
    rows["artist_alias"] += names
    opened = served(rows, tmp_path)
    found = [find_ids_by_name(opened.store, "artist", name) for name in (empty["name"], full["name"])]
    assert found == [sorted([one["artist_id"], empty["artist_id"]]), [full["artist_id"]]]
    opened.store.close()


@given(filters=FILTERS, limit=st.integers(1, 60))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_pages_together_equal_the_sorted_tables(mixed: Served, filters: BrowseFilters, limit: int) -> None:
    assert every(mixed, filters, limit) == browsed(mixed.rows, filters)


@pytest.mark.parametrize("walk_cost", [0, 15, 10**12])
@given(filters=FILTERS, limit=st.integers(1, 60))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_random_pages_hold_everything_exactly_once(
    mixed: Served, monkeypatch: pytest.MonkeyPatch, walk_cost: int, filters: BrowseFilters, limit: int
) -> None:
    monkeypatch.setattr(browsing, "_WALK_COST", walk_cost)
    assert sorted(every(mixed, filters, limit, randomize=True)) == sorted(browsed(mixed.rows, filters))


def test_walking_and_sorting_give_the_same_random_order(mixed: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    first = page(mixed, BrowseFilters(genre_id=1), 3, randomize=True)
    rest = []
    for walk_cost in (0, 10**12):
        monkeypatch.setattr(browsing, "_WALK_COST", walk_cost)
        rest.append(ids_of(page(mixed, BrowseFilters(genre_id=1), 4, first.next_cursor, randomize=True)))
    assert rest[0] == rest[1] != []


def test_each_first_page_gets_another_random_order(mixed: Served) -> None:
    drawn = {tuple(ids_of(page(mixed, BrowseFilters(), 10, randomize=True))) for _ in range(5)}
    assert len(drawn) == 5


def test_whole_catalog_is_newest_first_with_partial_dates_after_their_period_and_undated_last(mixed: Served) -> None:
    dates = {row["recording_id"]: (row["release_date"], row["release_date_precision"]) for row in dated(mixed.rows)}
    seen = list(dict.fromkeys(dates[one] for one in every(mixed, BrowseFilters(), 20)))
    order = [("2030-06-01", "month"), ("2030-01-01", "year"), ("2004-05-31", "day"), ("2004-05-01", "day"), ("2004-05-01", "month"),
             ("2004-04-30", "day"), ("2004-01-01", "year"), ("1999-12-31", "day"), ("1999-01-01", "day"), ("1999-01-01", "year"),
             (None, None)]  # fmt: skip
    assert seen == [date for date in order if date in seen]
    assert len(seen) > 5


def test_an_id_wins_over_the_text_beside_it(mixed: Served) -> None:
    assert every(mixed, BrowseFilters(genre_id=3, genre="house"), 50) == browsed(mixed.rows, BrowseFilters(genre_id=3))
    assert every(mixed, BrowseFilters(label_id=3, label="nobody"), 50) == browsed(mixed.rows, BrowseFilters(label_id=3))


@pytest.mark.parametrize(
    "filters", [{"genre_id": 999}, {"genre": "no such"}, {"genre": ""}, {"genre": "\ud83d"}, {"genre_id": 0}, {"genre_id": 10**30}]
)
def test_an_unknown_genre_is_a_mistake_of_the_caller(mixed: Served, filters: dict[str, int | str]) -> None:
    with pytest.raises(UnknownGenreError):
        page(mixed, msgspec.convert(filters, BrowseFilters) if "\ud83d" not in filters.values() else BrowseFilters(genre="\ud83d"))


@pytest.mark.parametrize(
    "filters",
    [
        BrowseFilters(label_id=10**30), BrowseFilters(artist_id=-1), BrowseFilters(artist="  "), BrowseFilters(label="\ud83d\ude00"),
        BrowseFilters(year=0), BrowseFilters(year=-5), BrowseFilters(year=10_000), BrowseFilters(year=10**30),
    ],
)  # fmt: skip
@pytest.mark.parametrize("randomize", [False, True])
def test_filter_without_tracks_gives_an_empty_page(mixed: Served, filters: BrowseFilters, randomize: bool) -> None:  # noqa: FBT001 - a parameter
    assert page(mixed, filters, randomize=randomize) == ([], None)


def test_a_genre_without_tracks_is_an_empty_page(tmp_path: Path) -> None:
    rows = mixed_frames(20, 3)
    rows["recording_genre"] = [row for row in rows["recording_genre"] if row["genre_id"] == 2]
    lonely = served(rows, tmp_path)
    assert page(lonely, BrowseFilters(genre="house")) == ([], None)
    assert page(lonely, BrowseFilters(genre="house"), randomize=True) == ([], None)


@pytest.mark.parametrize("limit", [0, -1, 101])
def test_a_limit_out_of_range_is_refused(mixed: Served, limit: int) -> None:
    with pytest.raises(InvalidQueryError, match=f"limit is {limit}"):
        page(mixed, BrowseFilters(), limit)


def test_a_cursor_belongs_to_its_filters_and_its_order(mixed: Served) -> None:
    cursor = page(mixed, BrowseFilters(genre_id=1)).next_cursor
    assert cursor
    for filters, randomize in (
        (BrowseFilters(genre_id=4), False),
        (BrowseFilters(genre="house"), False),
        (BrowseFilters(genre_id=1), True),
    ):
        with pytest.raises(InvalidCursorError):
            page(mixed, filters, 5, cursor, randomize=randomize)


def sealed(order: str, place: Place) -> str:
    """Return a sealed cursor over the whole catalog that the catalog never issued."""
    return CURSORS.encode(("browse", order, *map(repr, msgspec.structs.astuple(BrowseFilters()))), place)


def test_sealed_place_after_the_last_track_is_an_empty_page(mixed: Served) -> None:
    behind = Place(0, LARGEST_PLACE.popularity, LARGEST_PLACE.id)
    assert page(mixed, BrowseFilters(), 5, sealed("newest", behind)) == ([], None)


def test_a_sealed_place_before_the_first_track_is_the_first_page(mixed: Served) -> None:
    assert page(mixed, BrowseFilters(), 5, sealed("newest", LARGEST_PLACE)) == page(mixed, BrowseFilters())


@pytest.mark.parametrize("bits", [0, 1, 63])
def test_a_random_order_of_any_number_of_bits_is_answered(mixed: Served, bits: int) -> None:
    found = page(mixed, BrowseFilters(), 100, sealed("random", Place(LARGEST_PLACE.score, bits, 0)), randomize=True)
    assert set(ids_of(found)) <= set(browsed(mixed.rows, BrowseFilters()))


def test_a_random_order_of_more_bits_than_an_id_has_is_refused(mixed: Served) -> None:
    with pytest.raises(InvalidCursorError):
        page(mixed, BrowseFilters(), 5, sealed("random", Place(1, 64, 0)), randomize=True)


@pytest.mark.parametrize("randomize", [False, True])
def test_pages_go_on_in_a_new_build_without_overlap_or_gap(tmp_path: Path, randomize: bool) -> None:  # noqa: FBT001 - a parameter
    rows = mixed_frames(80, 5)
    before = served(rows, tmp_path / "before")
    later = mixed_frames(80, 5)
    gone = {1, 2, 3, 30, 31, 60}
    for name in (
        "recording",
        "recording_artist",
        "recording_release",
        "recording_genre",
        "recording_isrc",
        "track",
        "platform_link",
        "work_recording",
    ):
        later[name] = [row for row in later[name] if row["recording_id"] not in gone]
    fresh = [row | {"recording_id": row["recording_id"] + 500} for row in later["recording"][::7]]
    later["recording"] += fresh
    later["track"] += [row | {"recording_id": row["recording_id"] + 500} for row in later["track"][::7]]
    after = served(later, tmp_path / "after")
    first = page(before, BrowseFilters(), 25, randomize=randomize)
    seen, cursor = ids_of(first), first.next_cursor
    while cursor:
        one = page(after, BrowseFilters(), 7, cursor, randomize=randomize)
        seen, cursor = seen + ids_of(one), one.next_cursor
    assert len(seen) == len(set(seen))
    in_both = {row["recording_id"] for row in rows["recording"]} - gone
    assert in_both <= set(seen)
    if not randomize:
        everything = browsed(later, BrowseFilters())
        assert seen[25:] == [one for one in everything if one in seen[25:]]
