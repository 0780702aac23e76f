from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from catalog_store.cursors import LARGEST_PLACE, CursorCodec, Place
from catalog_store.errors import InvalidCursorError, InvalidQueryError
from catalog_store.layered_order import PLACE_BITS
from catalog_store.queries.entity_names import list_by_name
from catalog_store.queries.release_queries import Artist, find_artist, find_label, find_release, list_new_releases, list_releases
from tests.catalog_store.catalog_tables import MERGED_ID
from tests.catalog_store.plain_lists import listed, mixed_frames
from tests.catalog_store.queries.conftest import Served, served

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from catalog_store.queries.entity_names import Named
    from catalog_store.queries.pages import BodyPage

CURSORS = CursorCodec()
TODAY = date(2020, 1, 1)


def every(ask: Callable[[str | None], BodyPage | None], limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = ask(cursor)
        assert page is not None
        assert len(page.bodies) == limit or page.next_cursor is None
        found += map(json.loads, page.bodies)
        cursor = page.next_cursor
        if cursor is None:
            return found


def two_of(mixed: Served, kind: str, identifier: int, cursor: str | None) -> BodyPage | None:
    return list_releases(mixed.store, CURSORS, kind, identifier, limit=2, cursor=cursor)


def entry(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["release_id"],
        "title": row["title"],
        "artist": {"id": row["artist_id"], "name": row["artist_name"]},
        "label": None if row["label_id"] is None else {"id": row["label_id"], "name": row["label_name"]},
        "release_date": row["release_date"],
        "release_date_precision": row["release_date_precision"],
        "track_count": row["track_count"],
    }


@pytest.mark.parametrize("limit", [1, 3, 20, 100])
@pytest.mark.parametrize("today", [TODAY, date(2004, 5, 1), date(2004, 4, 30), date(2030, 1, 1), date(1998, 12, 31), date(9999, 12, 31)])
def test_new_releases_are_those_dated_until_today_newest_first_then_by_the_artists_popularity(
    mixed: Served, limit: int, today: date
) -> None:
    found = every(lambda cursor: list_new_releases(mixed.store, CURSORS, today=today, limit=limit, cursor=cursor), limit)
    wanted = listed(mixed.rows, lambda row: row["release_date"] is not None and row["release_date"] <= today.isoformat())
    assert [one["id"] for one in found] == wanted
    rows = {row["release_id"]: row for row in mixed.rows["release"]}
    assert found == [entry(rows[one]) for one in wanted]


def test_artists_and_labels_list_all_their_releases_undated_last_and_count_them(mixed: Served) -> None:
    for kind, find in (("artist", find_artist), ("label", find_label)):
        for row in mixed.rows[kind]:
            identifier = row[f"{kind}_id"]
            wanted = listed(mixed.rows, lambda one, kind=kind, identifier=identifier: one[f"{kind}_id"] == identifier)
            found_ids = [one["id"] for one in every(lambda cursor, k=kind, i=identifier: two_of(mixed, k, i, cursor), 2)]
            assert found_ids == wanted
            found = find(mixed.store, identifier)
            assert found is not None
            assert (found.id, found.name, found.release_count) == (identifier, row["name"], len(wanted))


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("kind", ["artist", "label"])
def test_entities_of_one_name_come_in_pages_with_most_tracks_first(tmp_path: Path, kind: str, limit: int) -> None:
    rows = mixed_frames(120, 5)
    for row in rows[kind]:
        row["name"] = ("Twin Peaks", "TWIN  PEAKS", "Twín Peaks")[row[f"{kind}_id"] % 3]
    alone = served(rows, tmp_path)
    found: list[Named] = []
    cursor = None
    while True:
        page = list_by_name(alone.store, CURSORS, kind, "twin peaks", limit=limit, cursor=cursor)
        assert len(page.entities) <= limit
        found += page.entities
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(one.id for one in found) == sorted(row[f"{kind}_id"] for row in rows[kind])
    assert found == sorted(found, key=lambda one: (-one.tracks, -one.releases, one.id))
    other = CURSORS.encode((f"{kind}_by_name", "twin peaks"), Place(1, 1, 1))
    with pytest.raises(InvalidCursorError):
        list_by_name(alone.store, CURSORS, kind, "another", limit=1, cursor=other)


def test_merged_ids_answer_with_the_survivor(mixed: Served) -> None:
    assert find_artist(mixed.store, MERGED_ID) == find_artist(mixed.store, 7) != None  # noqa: E711
    assert find_label(mixed.store, 77) == find_label(mixed.store, 3)
    assert find_release(mixed.store, 78) == find_release(mixed.store, 1)
    assert list_releases(mixed.store, CURSORS, "label", 77, limit=9, cursor=None) == list_releases(
        mixed.store, CURSORS, "label", 3, limit=9, cursor=None
    )


@pytest.mark.parametrize("unknown", [0, -1, 999, 2**63, 10**30])
def test_unknown_ids_find_nothing(mixed: Served, unknown: int) -> None:
    assert find_artist(mixed.store, unknown) is None
    assert find_label(mixed.store, unknown) is None
    assert find_release(mixed.store, unknown) is None
    assert list_releases(mixed.store, CURSORS, "artist", unknown, limit=5, cursor=None) is None


def test_an_artist_known_only_as_a_guest_has_no_releases(tmp_path: Path) -> None:
    rows = mixed_frames(20, 3)
    for row in rows["release"]:
        row["artist_id"], row["artist_name"] = 1, "The Velvet Foxes"
    alone = served(rows, tmp_path)
    assert find_artist(alone.store, 2) == Artist(2, "Björk Ólafsdóttir", 0)
    assert list_releases(alone.store, CURSORS, "artist", 2, limit=5, cursor=None) == ([], None)


def test_a_release_holds_its_tracks_in_their_order(mixed: Served) -> None:
    tracks = {row["recording_id"]: row for row in mixed.rows["track"]}
    for row in mixed.rows["release"]:
        found = find_release(mixed.store, row["release_id"])
        assert found is not None
        body = json.loads(found.body)
        assert {name: body[name] for name in entry(row)} == entry(row)
        assert [body[name] for name in ("release_type", "catalog_number", "gtin")] == [
            row["release_type"],
            row["catalog_number"],
            row["gtin"],
        ]
        on = [one for one in mixed.rows["recording_release"] if one["release_id"] == row["release_id"]]
        last = 10_000
        on.sort(key=lambda one: (one["disc_number"] or last, one["track_number"] or last, one["recording_id"]))
        assert [(one["id"], one["disc_number"], one["track_number"]) for one in body["tracks"]] == [
            (one["recording_id"], one["disc_number"], one["track_number"]) for one in on
        ]
        for one in body["tracks"]:
            track = tracks[one["id"]]
            assert (one["title"], one["isrc"], one["duration"]) == (track["title"], track["isrc"], track["duration_seconds"])
            assert (one["genre"], one["subgenre"]) == (track["genres"], track["subgenres"])
            assert [who["name"] for who in one["artists"]] == [who["name"] for who in track["artists"]]
            assert "releases" not in one


def test_tracks_numbered_from_one_on_one_disc_are_read_back(tmp_path: Path) -> None:
    rows = mixed_frames(20, 4)
    rows["recording_release"] = [
        {"recording_id": 20 - number, "release_id": 1, "disc_number": 1, "track_number": number} for number in range(1, 20)
    ] + [{"recording_id": 3, "release_id": 2, "disc_number": 1, "track_number": 2}]
    plain = served(rows, tmp_path)
    found = find_release(plain.store, 1)
    assert found is not None
    assert [(one["id"], one["disc_number"], one["track_number"]) for one in json.loads(found.body)["tracks"]] == [
        (20 - number, 1, number) for number in range(1, 20)
    ]
    second, none = find_release(plain.store, 2), find_release(plain.store, 3)
    assert second is not None
    assert [(one["id"], one["track_number"]) for one in json.loads(second.body)["tracks"]] == [(3, 2)]
    assert none is not None
    assert json.loads(none.body)["tracks"] == []


def test_cursors_are_bound_to_their_list(mixed: Served) -> None:
    cursor = list_new_releases(mixed.store, CURSORS, today=TODAY, limit=1, cursor=None).next_cursor
    assert cursor
    with pytest.raises(InvalidCursorError):
        list_releases(mixed.store, CURSORS, "artist", 2, limit=1, cursor=cursor)
    with pytest.raises(InvalidCursorError):
        list_new_releases(mixed.store, CURSORS, today=TODAY, limit=1, cursor="x")


def test_a_sealed_place_larger_than_any_release_counts_as_the_largest(mixed: Served) -> None:
    order = mixed.store.lists.releases
    newest = order.read_stamp(int(order.everything.read(1)[0]))
    above, inside = (
        list_new_releases(
            mixed.store,
            CURSORS,
            today=date(9999, 1, 1),
            limit=100,
            cursor=CURSORS.encode(("new_releases",), LARGEST_PLACE._replace(score=score)),
        )
        for score in (LARGEST_PLACE.score, newest)
    )
    first = list_new_releases(mixed.store, CURSORS, today=date(9999, 1, 1), limit=100, cursor=None)
    assert above.bodies == first.bodies
    assert inside.bodies[0] == first.bodies[order.find_before(newest) >> PLACE_BITS]


@pytest.mark.parametrize("limit", [0, 101])
def test_a_limit_out_of_range_is_refused(mixed: Served, limit: int) -> None:
    with pytest.raises(InvalidQueryError):
        list_new_releases(mixed.store, CURSORS, today=TODAY, limit=limit, cursor=None)
    with pytest.raises(InvalidQueryError):
        list_releases(mixed.store, CURSORS, "artist", 1, limit=limit, cursor=None)
