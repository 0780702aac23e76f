"""Section F of the contract: views of the catalog, and suggestions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.conftest import run_module
from tests.contract.awkward import FOXES, GLASS_REMIXES, KINO, MERGED, OLD_ARTIST, OLD_LABEL, OLD_RELEASE, SALT, SPECS, TRUNK
from tests.contract.conftest import Api, problem

BROWSE = "/v1/tracks/browse"
NEW = "/v1/releases/new"


def ids(api: Api, path: str, **query: object) -> list[int]:
    return [one["id"] for one in api.ask(path, **{"limit": 100, **query})["results"]]


def names_of(artists: list[dict[str, str]]) -> set[str]:
    """Return every displayed name of these artists."""
    return {artist[member] for artist in artists for member in ("name", "credited_as") if member in artist}


def test_f1_the_genre_tree_is_whole_and_flat(api: Api) -> None:
    nodes = api.ask("/v1/genres")["genres"]
    assert len(nodes) > 200
    assert {node["parent"] for node in nodes if node["name"] == "Deep House"} == {"House"}


def test_f1_genre_is_answered_with_its_rule(api: Api) -> None:
    found = api.ask("/v1/tracks/1", include="provenance")["provenance"]["genres"]
    assert [genre["name"] for genre in found] == ["House", "Deep House"]
    assert found[0] == {"name": "House", "source": "store_a", "entity_kind": "recording", "said": "House", "rule": "test"}
    assert api.ask("/v1/tracks/19", include="provenance")["provenance"]["genres"] == []


def test_f2_filters_narrow_and_hold_together(api: Api) -> None:
    genres = {node["name"]: node["id"] for node in api.ask("/v1/genres")["genres"]}
    everything = ids(api, BROWSE)
    assert set(everything) >= {spec.id for spec in SPECS if spec.id != 17}
    assert set(ids(api, BROWSE, genreId=genres["House"])) == {1, 6}
    assert ids(api, BROWSE, genreId=genres["Deep House"]) == [1]
    assert set(ids(api, BROWSE, genre="house")) == {1, 6}
    assert set(ids(api, BROWSE, genre="House Music")) == {1, 6}, "as users write it"
    assert ids(api, BROWSE, genreId=genres["Deep House"], genre="techno") == [1], "the id wins"
    assert set(ids(api, BROWSE, genre="trance", year=2021)) == {50, *GLASS_REMIXES}
    assert ids(api, BROWSE, genre="trance", year=1999) == []
    assert set(ids(api, BROWSE, artistId=FOXES)) == {1, 2, 3, 6}
    assert set(ids(api, BROWSE, artist="velvet foxes")) == {1, 2, 3, 6}
    assert set(ids(api, BROWSE, labelId=2, artistId=SALT)) == set(ids(api, BROWSE, label="Blue Door", artistId=SALT))
    assert set(ids(api, BROWSE, label="blue door", genre="House")) == {1, 6}
    assert ids(api, BROWSE, artist="nobody at all") == []
    assert api.refused(BROWSE, genre="Wobblecore?") == (400, "invalid_parameter", ["genre"])
    assert api.refused(BROWSE, genreId=999_999) == (400, "invalid_parameter", ["genreId"])
    assert len(api.ask(BROWSE)["results"]) == 20


def test_f2_every_name_that_a_track_shows_can_be_browsed(api: Api) -> None:
    for number in ids(api, BROWSE):
        track = api.ask(f"/v1/tracks/{number}")
        for name in names_of(track["artists"]):
            assert number in ids(api, BROWSE, artist=name), name
        for name in names_of([release["artist"] for release in track["releases"]]):
            assert ids(api, BROWSE, artist=name), name
        for label in {release["label"]["name"] for release in track["releases"] if release["label"]}:
            assert number in ids(api, BROWSE, label=label), label
    assert ids(api, BROWSE, artist="viktor and the reels") == ids(api, BROWSE, artist="VIKTOR'S REELS") == ids(api, BROWSE, artistId=KINO)


def test_f5_artists_and_labels_are_found_by_every_name_that_is_shown(api: Api) -> None:
    assert api.ask("/v1/labels", name="blue door")["results"] == [api.ask("/v1/labels/2")]
    assert api.ask("/v1/artists", name="VIKTOR'S REELS") == api.ask("/v1/artists", name="viktor and the reels")
    for number in ids(api, BROWSE):
        for artist in api.ask(f"/v1/tracks/{number}")["artists"]:
            for name in names_of([artist]):
                assert artist["id"] in ids(api, "/v1/artists", name=name), name


def test_f5_an_unknown_name_is_an_empty_page_and_a_missing_one_is_refused(api: Api) -> None:
    assert api.ask("/v1/artists", name="nobody at all") == {"results": [], "next_cursor": None}
    assert api.ask("/v1/labels", name="\u266b") == {"results": [], "next_cursor": None}
    assert api.refused("/v1/artists") == (400, "invalid_parameter", ["name"])
    assert api.refused("/v1/labels", name=" ", limit=101) == (400, "invalid_parameter", ["name", "limit"])


def test_f2_newest_first_undated_last_in_pages_that_fit_together(api: Api) -> None:
    whole = ids(api, BROWSE)
    dates = {spec: api.ask(f"/v1/tracks/{spec}")["releases"][0]["release_date"] for spec in (3, 6, 1, 20, 16, 15, 14, 18)}
    assert [number for number in whole if number in dates] == [3, 6, 1, 20, 15, 16, 14, 18]
    assert whole[-1] == 18
    turned: list[int] = []
    cursor = None
    while True:
        page = api.ask(BROWSE, limit=9, **({"cursor": cursor} if cursor else {}))
        turned += [one["id"] for one in page["results"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert turned == whole


def test_f2_random_order_is_kept_over_its_pages_and_differs_between_first_pages(api: Api) -> None:
    orders = set()
    for _ in range(4):
        turned: list[int] = []
        cursor = None
        while True:
            page = api.ask(BROWSE, limit=13, randomize="true", **({"cursor": cursor} if cursor else {}))
            turned += [one["id"] for one in page["results"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert sorted(turned) == sorted(ids(api, BROWSE))
        orders.add(tuple(turned))
    assert len(orders) > 1
    assert ids(api, BROWSE, randomize="false") == ids(api, BROWSE, randomize="False") == ids(api, BROWSE, randomize="0") == ids(api, BROWSE)
    assert sorted(ids(api, BROWSE, limit=100, randomize="True")) == sorted(ids(api, BROWSE, limit=100))


def test_f3_year_and_order_follow_the_earliest_release(api: Api) -> None:
    assert [one["id"] for one in api.ask("/v1/tracks/20")["releases"]] == [10, 9]
    assert 20 in ids(api, BROWSE, year=2003)
    assert 20 not in ids(api, BROWSE, year=2015)


def test_f4_new_releases_newest_first_then_by_the_artists_popularity_without_the_future(api: Api) -> None:
    entries = api.ask(NEW, limit=100)["results"]
    listed = [entry["id"] for entry in entries]
    assert 7 not in listed, "not out yet"
    assert 8 not in listed, "of no known date"
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    dates = [entry["release_date"] for entry in entries]
    assert all(date <= today for date in dates)
    assert listed[:4] == [3, 2, 11, 1], "11 and 1 of one day: the artist of 11 is more popular"
    assert listed[-3:] == [5, 6, 4]
    assert len(set(listed)) == len(listed)
    page = api.ask(NEW, limit=3)
    assert [one["id"] for one in api.ask(NEW, limit=97, cursor=page["next_cursor"])["results"]] == listed[3:]
    assert problem(api.get(NEW, cursor="x"))[:2] == (400, "invalid_cursor")


def test_f5_artists_labels_and_their_releases(api: Api) -> None:
    assert api.ask(f"/v1/artists/{FOXES}") == {"id": FOXES, "name": "The Velvet Foxes", "release_count": 3}
    assert ids(api, f"/v1/artists/{FOXES}/releases") == [3, 2, 1]
    label = api.ask("/v1/labels/2")
    assert (label["id"], label["name"]) == (2, "Blue Door")
    assert ids(api, "/v1/labels/2/releases") == [2, 11, 9, 10]
    page = api.ask("/v1/labels/2/releases", limit=1)
    assert ids(api, "/v1/labels/2/releases", cursor=page["next_cursor"]) == [11, 9, 10]
    for old, path, survivor in ((OLD_ARTIST, "artists", FOXES), (OLD_LABEL, "labels", 1), (OLD_RELEASE, "releases", 1)):
        answer = api.get(f"/v1/{path}/{old}")
        assert (answer.json()["id"], answer.headers["content-location"]) == (survivor, f"/v1/{path}/{survivor}")
    assert ids(api, f"/v1/artists/{OLD_ARTIST}/releases") == [3, 2, 1]


def test_f5_a_release_has_its_tracks(api: Api) -> None:
    release = api.ask("/v1/releases/11")
    assert (release["id"], release["title"], release["artist"]) == (11, "Glass", {"id": TRUNK, "name": "Daft Trunk"})
    assert {track["id"] for track in release["tracks"]} == {50, *GLASS_REMIXES}
    assert release["track_count"] == len(release["tracks"])
    assert set(release["tracks"][0]) == {
        "id", "title", "artists", "isrc", "duration", "genre", "subgenre", "disc_number", "track_number",
    }  # fmt: skip


def test_f6_a_suggestion_is_taken_listed_and_decided_by_an_operator(server: Api) -> None:
    caller = server.as_caller("starter")
    sent = {"field": "genre", "value": "Acid House", "note": "the squelch", "source_url": "https://example.org/1"}
    made = caller.post("/v1/tracks/1/suggestions", sent)
    assert made.status_code == 200
    body = made.json()
    assert set(body) >= {"id", "status", "track_id", "field", "value", "created_at"}
    assert (body["status"], body["track_id"], body["field"], body["value"]) == ("pending", 1, "genre", "Acid House")
    second = caller.post("/v1/tracks/6/suggestions", {"field": "title", "value": "Harbor Lights"}).json()
    assert [one["id"] for one in caller.ask("/v1/suggestions")["results"]] == [body["id"], second["id"]]
    assert [one["id"] for one in caller.ask("/v1/tracks/6/suggestions")["results"]] == [second["id"]]
    page = caller.ask("/v1/suggestions", limit=1)
    assert caller.ask("/v1/suggestions", cursor=page["next_cursor"])["results"][0]["id"] == second["id"]
    assert server.as_caller().ask("/v1/suggestions")["results"] == [], "another account's are its own"
    assert problem(caller.get("/v1/tracks/9223372036854775807/suggestions")) == (404, "not_found", [])
    assert caller.ask("/v1/tracks/7/suggestions")["results"] == []
    of_merged = caller.post(f"/v1/tracks/{MERGED}/suggestions", {"field": "genre", "value": "House"}).json()
    assert of_merged["track_id"] == 1
    for track_id in (1, MERGED):
        assert [one["id"] for one in caller.ask(f"/v1/tracks/{track_id}/suggestions")["results"]] == [body["id"], of_merged["id"]]
    server.accounts.suggestions.decide(body["id"], "approved")
    assert caller.ask("/v1/suggestions")["results"][0]["status"] == "approved"
    assert f"{body['id']},recording,1,Acid House" in server.accounts.suggestions.export()


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, ["field", "value"]),
        ({"field": "mood", "value": "x"}, ["field"]),
        ({"field": "genre", "value": ""}, ["value"]),
        ({"field": "genre", "value": "x" * 501, "note": 5, "source_url": "javascript:alert(1)"}, ["value", "note", "source_url"]),
        ({"field": "genre", "value": "Ho\0use"}, ["value"]),
        ([], ["body"]),
    ],
)
def test_f6_invalid_suggestions_are_400(api: Api, body: object, names: list[str]) -> None:
    assert problem(api.post("/v1/tracks/1/suggestions", body)) == (400, "invalid_parameter", names)


def test_f6_an_operator_decides_from_the_command_line(server: Api) -> None:
    made = server.as_caller().post("/v1/tracks/2/suggestions", {"field": "genre", "value": "Techno"}).json()
    url = server.accounts.engine.url.render_as_string(hide_password=False)
    run_module("account_store", "--accounts", url, "reject-suggestion", str(made["id"]))
    assert server.accounts.suggestions.get(made["id"]).status == "rejected"
