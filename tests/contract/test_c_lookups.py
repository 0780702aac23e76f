"""Section C of the contract: search and lookups."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from catalog_store.publisher import publish, rollback
from tests.contract.awkward import (
    GLASS_REMIXES,
    OLD_RECORDING_UUID,
    SHARED_RELEASE,
    WORK,
    WORK_OF_MANY,
    isrc,
    make_frames,
    streamsvc_a_id,
    uuid,
)
from tests.contract.conftest import Api, problem, serving
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

SEARCH = "/v1/tracks/search"


def found(api: Api, artist: str, title: str, **query: object) -> list[int]:
    return [track["id"] for track in api.ask(SEARCH, artist=artist, title=title, **query)["results"]]


def pages(api: Api, path: str, size: int, **query: object) -> list[int]:
    """Return the ids of all pages, one after the other."""
    ids: list[int] = []
    cursor: str | None = None
    for _ in range(100):
        body = api.ask(path, limit=size, **query, **({"cursor": cursor} if cursor else {}))
        ids += [one["id"] for one in body["results"]]
        cursor = body["next_cursor"]
        if cursor is None:
            return ids
        assert len(body["results"]) == size
    pytest.fail("the pages do not end")


def test_c1_artist_and_title_are_required_and_bounded(api: Api) -> None:
    assert api.refused(SEARCH) == (400, "invalid_parameter", ["artist", "title"])
    assert api.refused(SEARCH, artist="a") == (400, "invalid_parameter", ["title"])
    assert api.refused(SEARCH, artist=" \t", title="b") == (400, "invalid_parameter", ["artist"])
    assert api.refused(SEARCH, artist="a", title="b" * 501) == (400, "invalid_parameter", ["title"])
    assert api.refused(SEARCH, q="daft punk") == (400, "invalid_parameter", ["artist", "title"])
    assert api.ask(SEARCH, artist="a" * 500, title="é" * 500)["results"] == []
    assert len(found(api, "Daft Trunk", "Glass City")) == 20, "the default page"


def test_c2_cursors_are_bound_to_their_query_and_guard_against_change(api: Api) -> None:
    query = {"artist": "Daft Trunk", "title": "Glass City"}
    cursor = api.ask(SEARCH, limit=5, **query)["next_cursor"]
    assert api.get(SEARCH, params=None, limit=5, cursor=cursor, **query).status_code == 200
    changed = ("A" if cursor[0] != "A" else "B") + cursor[1:]
    for bad in (changed, cursor[:-1], cursor + "=", cursor.swapcase(), "x", "", "é", "." * 2000):
        assert problem(api.get(SEARCH, cursor=bad, **query))[:2] == (400, "invalid_cursor"), bad
    assert problem(api.get(SEARCH, cursor=cursor, artist="Daft Trunk", title="Glass Town"))[:2] == (400, "invalid_cursor")
    assert problem(api.get("/v1/tracks/browse", cursor=cursor))[:2] == (400, "invalid_cursor")


@pytest.mark.parametrize("size", [1, 7, 20, 31])
def test_c2_pages_neither_overlap_nor_skip_and_end_with_null(api: Api, size: int) -> None:
    whole = api.ask(SEARCH, artist="Daft Trunk", title="Glass City", limit=100)
    assert whole["next_cursor"] is None
    expected = [track["id"] for track in whole["results"]]
    assert set(expected) == {50, *GLASS_REMIXES}
    assert pages(api, SEARCH, size, artist="Daft Trunk", title="Glass City") == expected


def test_c2_pages_go_on_where_they_were_when_a_new_build_is_published(awkward_catalog: Path, tmp_path: Path) -> None:
    root = tmp_path / "catalog"
    shutil.copytree(awkward_catalog, root, symlinks=True)
    rollback(root, "first")
    with serving(root, f"sqlite:///{tmp_path}/accounts.db", tmp_path) as hot:
        query = {"artist": "Daft Trunk", "title": "Glass City", "limit": 10}
        first = hot.ask(SEARCH, **query)
        listed = hot.ask("/v1/tracks/browse", limit=10)
        tags = {number: hot.get(f"/v1/tracks/{number}").headers["etag"] for number in (1, 50)}
        folders = make_frames(is_second=True).write(tmp_path / "tables")
        publish(folders, root, snapshot_id="third", next_ids={})
        until(lambda: hot.ask("/v1/changes")["build"] == "third", "the new build")
        second = hot.ask(SEARCH, cursor=first["next_cursor"], **query)
        third = hot.ask(SEARCH, cursor=second["next_cursor"], **query)
        ids = [track["id"] for page in (first, second, third) for track in page["results"]]
        assert len(ids) == len(set(ids)) == 30
        assert tags == {number: hot.get(f"/v1/tracks/{number}").headers["etag"] for number in tags}, "these records did not change (A16)"
        going_on = hot.ask("/v1/tracks/browse", limit=10, cursor=listed["next_cursor"])
        assert not {one["id"] for one in listed["results"]} & {one["id"] for one in going_on["results"]}


def test_c3_nothing_found_is_an_empty_page(api: Api) -> None:
    for artist, title in (("zzyzx qqfhtw", "xkcd wvutsr qpon"), ("Nova Kline", "Midnight Running Away From It All"), ("漢字", "Ελλάς")):
        assert api.ask(SEARCH, artist=artist, title=title) == {"results": [], "next_cursor": None}


def test_c3_half_a_name_and_fields_of_a_video_title_are_possible_and_a_caller_can_cut_them(api: Api) -> None:
    for artist, title in (
        ("Velvet Foxes", "Running"),
        ("Midnight Running", "Velvet Foxes"),
        ("x", "The Velvet Foxes - Midnight Running [HD]"),
    ):
        results = api.ask(SEARCH, artist=artist, title=title)["results"]
        assert results, (artist, title)
        strong = api.ask(SEARCH, artist=artist, title=title, min_class="strong")["results"]
        assert [one["id"] for one in strong] == [one["id"] for one in results if one["match"]["class"] in {"exact", "strong"}]
    swapped = api.ask(SEARCH, artist="Midnight Running", title="Velvet Foxes")["results"]
    assert swapped[0]["id"] == 1
    assert {one["match"]["class"] for one in swapped} == {"possible"}
    assert api.refused(SEARCH, artist="a", title="b", min_class="good") == (400, "invalid_parameter", ["min_class"])


def test_c4_the_order_is_score_then_popularity_then_id(api: Api) -> None:
    results = api.ask(SEARCH, artist="Daft Trunk", title="Glass City", limit=100)["results"]
    assert results[0]["match"]["class"] == "exact"
    assert all(set(track["match"]) == {"score", "class", "reasons"} and 0 <= track["match"]["score"] <= 1 for track in results)
    scores = [track["match"]["score"] for track in results]
    assert scores == sorted(scores, reverse=True)
    tied = [track["id"] for track in results if track["match"]["score"] == scores[1]]
    assert tied == sorted(tied), "more popular first: the awkward catalog makes the smaller ids more popular"


@pytest.mark.parametrize(
    ("artist", "title"),
    [
        ("the velvet foxes", "MIDNIGHT RUNNING"),
        ("The Velvet Foxes", "Midnight Running (Radio Edit)"),
        ("The Velvet Foxes", "Midnight Running - Extended Mix"),
        ("The Velvet Foxes", "Midnight Running (Original Mix)"),
        ("The Velvet Foxes", "Midnight Running (Remastered 2011)"),
        ("The Velvet Foxes", "Midnight Running (Dirty)"),
        ("The Velvet Foxes", "Midnight Running (Intro)"),
        ("The Velvet Foxes", "Midnight Running (Quick Hit Clean)"),
        ("The Velvet Foxes", "Midnight Running (Transition 100-128)"),
        ("The Velvet Foxes (2)", "Midnight Running"),
        ("The Velvet Foxes feat. Somebody Else", "Midnight Running"),
        ("The Velvet Foxes", "Midnight Running (feat. Somebody Else)"),
        ("The Velvet Foxes", "Midnight Running ft. Somebody"),
        ("Thé Vélvet Föxes", "Mídnight; Running!"),
    ],
)
def test_c5_cosmetic_differences_are_absorbed(api: Api, artist: str, title: str) -> None:
    assert found(api, artist, title)[:1] == [1]


@pytest.mark.parametrize(
    ("artist", "title", "number"),
    [
        ("Meridian", "Intro", 8),
        ("Meridian", "Remix", 9),
        ("東京電灯", "群青の空", 10),
        ("Кинолента", "Полночь", 11),
        ("кинолента", "полночь", 11),
        ("!?!", "÷", 12),
    ],
)
def test_c5_a_title_of_cosmetic_words_only_is_kept(api: Api, artist: str, title: str, number: int) -> None:
    assert found(api, artist, title)[:1] == [number]


def test_c6_variants_come_below_the_original_and_first_when_asked_for_by_name(api: Api) -> None:
    assert found(api, "The Velvet Foxes", "Midnight Running")[0] == 1
    assert {2, 3} <= set(found(api, "The Velvet Foxes", "Midnight Running"))
    assert found(api, "The Velvet Foxes", "Midnight Running (Daft Trunk Remix)")[0] == 2
    assert found(api, "The Velvet Foxes", "Midnight Running (Live)")[0] == 3
    assert found(api, "Nova Kline", "Harbour Lights")[0] == 6
    assert found(api, "Nova Kline", "Harbour Lights (Acoustic)")[0] == 7


@pytest.mark.parametrize(
    ("artist", "title"),
    [
        ("The Velvit Foxes", "Midnight Running"),
        ("The Velvet Foxes", "Midnite Running"),
        ("The Velvet Foxs", "Midnihgt Runing"),
        ("Velvet Foxes", "Midnight Running"),
        ("Foxes Velvet The", "Midnight Running"),
    ],
)
def test_c7_slips_and_another_order_still_find_it(api: Api, artist: str, title: str) -> None:
    assert found(api, artist, title)[:1] == [1]


def test_c7_one_of_several_artists_in_either_order_finds_it(api: Api) -> None:
    for artist in ("Nova Kline", "The Velvet Foxes", "Nova Kline & The Velvet Foxes", "The Velvet Foxes, Nova Kline"):
        assert 6 in found(api, artist, "Harbour Lights"), artist


def test_c8_track_by_isrc_needs_no_query_and_names_the_matched_code(api: Api) -> None:
    answer = api.ask(f"/v1/tracks/isrc/{isrc(1, 2)}")
    assert (answer["id"], answer["isrc"], answer["matched_isrc"]) == (1, isrc(1), isrc(1, 2))


def test_c9_ids_are_whole_numbers_and_literal_paths_are_never_ids(api: Api) -> None:
    assert api.ask("/v1/tracks/1")["id"] == 1
    assert api.refused("/v1/tracks/one") == (400, "invalid_parameter", ["id"])
    assert api.refused("/v1/tracks/77777") == (404, "not_found", [])
    for literal, names in (("search", ["artist", "title"]), ("iswc", ["id", "isrc"])):
        assert api.refused(f"/v1/tracks/{literal}") == (400, "invalid_parameter", names)
    assert len(api.refused("/v1/tracks/links")[2]) == 9
    assert api.get("/v1/tracks/browse").status_code == 200
    assert api.get("/v1/releases/new").status_code == 200
    assert api.get("/v1/tracks/resolve").status_code == 405


def test_c10_works_of_a_track_by_exactly_one_of_isrc_and_id(api: Api) -> None:
    assert api.ask("/v1/tracks/iswc", id=1) == {"sonovault_id": 1, "isrc": isrc(1), "iswcs": [{"iswc": WORK, "title": "Work 801"}]}
    assert api.ask("/v1/tracks/iswc", isrc=isrc(1, 1))["sonovault_id"] == 1
    assert api.ask("/v1/tracks/iswc", id=19)["iswcs"] == []
    assert api.refused("/v1/tracks/iswc", id=1, isrc=isrc(1)) == (400, "invalid_parameter", ["id", "isrc"])
    assert api.refused("/v1/tracks/iswc", id=77777) == (404, "not_found", [])


def test_c11_tracks_of_a_work_most_popular_first_with_the_full_count(api: Api) -> None:
    whole = api.ask(f"/v1/tracks/iswc/{WORK_OF_MANY}")
    assert whole["total"] == len(whole["recordings"]) == 31
    assert [entry["sonovault_id"] for entry in whole["recordings"]] == [*GLASS_REMIXES, 6]
    assert whole["recordings"][-1] == {
        "sonovault_id": 6,
        "isrc": None,
        "title": "Harbour Lights",
        "artist": whole["recordings"][-1]["artist"],
    }
    page = api.ask(f"/v1/tracks/iswc/{WORK_OF_MANY}", limit=2)
    assert (page["total"], len(page["recordings"])) == (31, 2)
    following = api.ask(f"/v1/tracks/iswc/{WORK_OF_MANY}", limit=2, cursor=page["next_cursor"])
    assert [*page["recordings"], *following["recordings"]] == whole["recordings"][:4]
    assert whole["next_cursor"] is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "1"),
        ("isrc", isrc(1, 1)),
        ("streamsvc_a_id", streamsvc_a_id(1)),
        ("streamsvc_b_id", "1440000001"),
        ("streamsvc_c_id", "990001"),
        ("store_a_id", "5000001"),
        ("catalog_a_id", "7001"),
        ("catalog_b_id", uuid(1)),
        ("url", f"https://open.spotify.com/intl-de/track/{streamsvc_a_id(1)}?si=abc"),
        ("url", f"spotify:track:{streamsvc_a_id(1)}"),
        ("url", "https://music.apple.com/gb/album/night-trains/1440000900?i=1440000001&l=en"),
        ("url", "https://www.beatport.com/track/any-name/5000001"),
        ("url", "http://discogs.com/release/7001-The-Velvet-Foxes-Night-Trains"),
        ("url", f"https://musicbrainz.org/recording/{uuid(1)}?utm_source=mail"),
        ("url", f"https://musicbrainz.org/recording/{uuid(1).upper()}"),
        ("url", "https://m.youtube.com/watch?v=vid_0000001&t=3"),
    ],
)
def test_c12_links_are_found_by_every_kind_of_id_and_by_address(api: Api, name: str, value: str) -> None:
    answer = api.ask("/v1/tracks/links", **{name: value})
    assert (answer["track_id"], answer["title"], answer["isrc"]) == (1, "Midnight Running", isrc(1))
    assert ("catalog_a", "7001") in [(link["source"], link["external_id"]) for link in answer["links"]]


def test_c12_exactly_one_parameter_names_the_track(api: Api) -> None:
    assert api.refused("/v1/tracks/links", id=1, store_a_id=5_000_001) == (400, "invalid_parameter", ["id", "store_a_id"])
    assert api.refused("/v1/tracks/links", id="", isrc=isrc(1))[0] == 400
    assert api.ask("/v1/tracks/links", id=19)["links"] == []
    assert api.refused("/v1/tracks/links", url="https://example.org/track/1") == (404, "not_found", [])
    assert api.refused("/v1/tracks/links", url="https://musicbrainz.org/recording/1-name") == (404, "not_found", [])
    assert "short link" in api.get("/v1/tracks/links", url="https://spotify.link/auVCkcbzoyb").json()["detail"]
    assert api.refused("/v1/tracks/links", url="ftp://example.org/track/1") == (400, "invalid_parameter", ["url"])


def test_c13_a_release_with_many_tracks_answers_the_most_popular_and_names_the_others(api: Api) -> None:
    answer = api.ask("/v1/tracks/links", catalog_a_id=SHARED_RELEASE)
    assert (answer["track_id"], answer["alternatives"]) == (32, [33, 31])


def test_c13_ids_have_the_shape_and_the_meaning_of_their_platform(api: Api) -> None:
    assert api.ask("/v1/tracks/links", catalog_b_id=OLD_RECORDING_UUID)["track_id"] == 1
    assert api.ask("/v1/tracks/links", catalog_b_id=uuid(1).upper())["track_id"] == 1
    assert api.refused("/v1/tracks/links", catalog_b_id="not-a-uuid") == (400, "invalid_parameter", ["catalog_b_id"])
    assert api.refused("/v1/tracks/links", streamsvc_a_id=streamsvc_a_id(1).swapcase()) == (404, "not_found", [])
    assert api.refused("/v1/tracks/links", streamsvc_a_id="short") == (400, "invalid_parameter", ["streamsvc_a_id"])
