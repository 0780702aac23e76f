"""Section B of the contract: resources and their fields."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from audio_recognition.chromaprint import fingerprint
from catalog_store.platforms import CATALOG_PLATFORMS, LINK_SOURCES
from pipeline.build.durations import AGREEING_MS
from tests.contract.awkward import FOXES, KINO, KLINE, MERGED, RETIRED, SPLIT, SPLIT_OFF, TRUNK, WORK, WORK_ALONE, isrc, song, uuid
from tests.contract.conftest import Api, problem, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import BuiltWorld

TRACK = ["id", "title", "releases", "artists", "isrc", "duration", "genre", "subgenre"]


@pytest.fixture(scope="module")
def built(built_world: BuiltWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Return a server over a catalog that was built from dumps, for rows about builds."""
    place = tmp_path_factory.mktemp("built")
    with serving(built_world.catalog, f"sqlite:///{place}/accounts.db", place) as api:
        yield api


def table(world: BuiltWorld, name: str) -> pl.DataFrame:
    return pl.read_parquet(world.catalog / "current" / "tables" / name / "*.parquet")


@pytest.fixture(scope="module")
def members(built_world: BuiltWorld) -> pl.DataFrame:
    """Return the staged records of every recording, as the dumps gave them."""
    work = built_world.catalog / "work" / "staging"
    staged = [
        pl.read_parquet(files[0].parent / "*.parquet").select("platform", "external_id", "isrcs", "duration_ms", "is_video")
        for platform in CATALOG_PLATFORMS
        if (files := sorted((work / platform / "source_recording").glob("*.parquet")))
    ]
    return pl.concat(staged).join(table(built_world, "recording_member"), on=["platform", "external_id"])


@pytest.mark.parametrize("number", [1, 6, 7, 18, 19])
def test_b1_a_track_has_all_its_fields_always(api: Api, number: int) -> None:
    track = api.ask(f"/v1/tracks/{number}")
    assert list(track) == TRACK
    assert isinstance(track["id"], int)
    assert all(isinstance(track[name], list) for name in ("releases", "artists", "genre", "subgenre"))


def test_b1_included_parts_are_added(api: Api) -> None:
    track = api.ask("/v1/tracks/1", include="isrcs,links,provenance")
    assert track["isrcs"] == [isrc(1), isrc(1, 1), isrc(1, 2)]
    assert [link["source"] for link in track["links"]] == list(LINK_SOURCES)
    assert {record["source"] for record in track["provenance"]["records"]} == set(CATALOG_PLATFORMS)
    links = {link["source"]: link["url"] for link in track["links"]}
    for record in track["provenance"]["records"]:
        assert record["url"] == links[record["source"]]
        told = record["values"]
        assert (told["title"], told["release_date"]) == (f"Midnight Running ({record['source']})", "2021")
        assert (told["isrcs"], told["genres"]) == (track["isrcs"], ["House", "Club"])
    assert list(api.ask("/v1/tracks/1", include="links")) == [*TRACK, "links"]
    assert api.ask("/v1/tracks/6", include="isrcs")["isrcs"] == []
    assert api.ask(f"/v1/tracks/isrc/{isrc(1, 2)}", include="isrcs")["isrcs"] == [isrc(1), isrc(1, 1), isrc(1, 2)]
    assert api.refused("/v1/tracks/1", include="lyrics") == (400, "invalid_parameter", ["include"])


def test_b2_the_representative_isrc_has_most_sources_then_the_earliest_year(
    built: Api, built_world: BuiltWorld, members: pl.DataFrame
) -> None:
    carried = table(built_world, "recording_isrc")
    several = carried.filter(pl.len().over("recording_id") > 1)["recording_id"].unique().sort().head(15)
    assert len(several) > 5
    delivered = members.explode("isrcs").group_by("recording_id", "isrcs").agg(pl.col("platform").n_unique().alias("platforms"))
    for number in several:
        codes = carried.filter(pl.col("recording_id") == number)["isrc"].to_list()
        platforms = dict(delivered.filter(pl.col("recording_id") == number).select("isrcs", "platforms").iter_rows())
        expected = min(codes, key=lambda code: (-platforms.get(code, 0), (int(code[5:7]) + 60) % 100, code))
        assert built.ask(f"/v1/tracks/{number}")["isrc"] == expected, (codes, platforms)


def test_b2_a_track_without_a_code_has_null(api: Api) -> None:
    assert api.ask("/v1/tracks/6")["isrc"] is None


def test_b3_a_duration_is_the_median_in_whole_seconds_half_up(built: Api, built_world: BuiltWorld, members: pl.DataFrame) -> None:
    timed = members.filter(~pl.col("is_video")).drop_nulls("duration_ms")
    delivered = timed.group_by("recording_id").agg(
        pl.col("duration_ms").median(),
        records=pl.len(),
        platforms=pl.col("platform").n_unique(),
        spread=pl.col("duration_ms").max() - pl.col("duration_ms").min(),
    )
    # The build first takes the median of a platform's several records, and leaves out platforms far from the others: docs/design/build.md.
    plain = delivered.filter(pl.col("records") == pl.col("platforms"), pl.col("spread") <= AGREEING_MS, pl.col("platforms") > 1)
    assert plain.height > 25
    for number, median in plain.sort("recording_id").select("recording_id", "duration_ms").head(25).iter_rows():
        assert built.ask(f"/v1/tracks/{number}")["duration"] == math.floor(median / 1000 + 0.5)
    assert table(built_world, "recording")["duration_seconds"].min() >= 1


def test_b3_an_unknown_duration_is_null_and_halves_go_up(api: Api) -> None:
    assert [api.ask(f"/v1/tracks/{number}")["duration"] for number in (7, 1, 6)] == [None, 179, 200]


def test_b4_genres_are_names_of_the_tree_or_absent(api: Api, built: Api, built_world: BuiltWorld) -> None:
    nodes = {node["name"]: node["type"] for node in api.ask("/v1/genres")["genres"]}
    track = api.ask("/v1/tracks/1")
    assert (track["genre"], track["subgenre"]) == (["House"], ["Deep House"])
    assert nodes["House"], nodes["Deep House"] == ("main", "subgenre")
    assert [api.ask("/v1/tracks/19")[name] for name in ("genre", "subgenre")] == [[], []]
    numbers = table(built_world, "track")["recording_id"].sort().head(60)
    delivered = [built.ask(f"/v1/tracks/{number}") for number in numbers]
    assert all(nodes[name] == "main" for track in delivered for name in track["genre"])
    assert all(nodes[name] == "subgenre" for track in delivered for name in track["subgenre"])
    assert any(track["genre"] for track in delivered)


def test_b5_a_release_names_artist_label_and_date(api: Api) -> None:
    assert api.ask("/v1/tracks/1")["releases"][0] == {
        "id": 1,
        "title": "Night Trains",
        "artist": {"id": FOXES, "name": "The Velvet Foxes"},
        "label": {"id": 1, "name": "Amber Records"},
        "release_date": "2021-03-05",
        "release_date_precision": "day",
    }
    assert api.ask("/v1/tracks/3")["releases"][0]["label"] is None
    assert api.ask("/v1/tracks/18")["releases"][0]["release_date"] is None


def test_b6_artists_have_roles_of_primary_and_remixer(api: Api) -> None:
    roles = {
        number: [(one["id"], one["is_primary"], one["is_remixer"]) for one in api.ask(f"/v1/tracks/{number}")["artists"]]
        for number in (2, 6, 13)
    }
    assert roles[2] == [(FOXES, True, False), (TRUNK, False, True)]
    assert roles[6] == [(KLINE, True, False), (FOXES, False, False)]
    assert roles[13] == [(KLINE, True, True)], "one artist may be both"


def test_b6_every_built_track_has_a_primary_artist_and_remixers_are_found(built: Api, built_world: BuiltWorld) -> None:
    tracks = table(built_world, "track").sort("recording_id")
    remixes = tracks.filter(pl.col("title").str.contains(r"\((\w+ )+Remix\)")).head(10)["recording_id"]
    assert len(remixes) > 3
    for number in [*tracks["recording_id"].head(30), *remixes]:
        artists = built.ask(f"/v1/tracks/{number}")["artists"]
        assert any(one["is_primary"] for one in artists)
        assert number not in set(remixes) or any(one["is_remixer"] for one in artists), number


def test_b6_artist_has_one_name_and_a_credit_by_another_is_beside_it(api: Api) -> None:
    track = api.ask("/v1/tracks/21")
    name = api.ask(f"/v1/artists/{KINO}")["name"]
    assert track["artists"] == [
        {"id": KINO, "name": name, "is_primary": True, "is_remixer": False, "credited_as": "Viktor & The Reels"},
    ]
    assert track["releases"][0]["artist"] == {"id": KINO, "name": name, "credited_as": "Viktor's Reels"}
    assert api.ask("/v1/releases/12")["artist"] == track["releases"][0]["artist"]
    assert api.ask("/v1/tracks/11")["artists"] == [{"id": KINO, "name": name, "is_primary": True, "is_remixer": False}]


def test_b6_every_id_of_a_built_catalog_is_shown_by_one_name(built: Api, built_world: BuiltWorld) -> None:
    names: dict[int, set[str]] = {}
    for number in table(built_world, "track").sort("recording_id")["recording_id"].head(200):
        track = built.ask(f"/v1/tracks/{number}")
        for artist in [*track["artists"], *(release["artist"] for release in track["releases"])]:
            names.setdefault(artist["id"], set()).add(artist["name"])
    assert {number: shown for number, shown in names.items() if len(shown) > 1} == {}
    for number, shown in sorted(names.items())[:20]:
        assert {built.ask(f"/v1/artists/{number}")["name"]} == shown


def test_b7_any_isrc_finds_the_track_in_any_spelling(api: Api) -> None:
    for code in (isrc(1), isrc(1, 1), isrc(1, 2)):
        dashed = f"{code[:2]}-{code[2:5]}-{code[5:7]}-{code[7:]}"
        for spelling in (code, code.lower(), dashed, dashed.replace("-", "%20").lower()):
            answer = api.ask(f"/v1/tracks/isrc/{spelling}")
            assert (answer["id"], answer["matched_isrc"]) == (1, code)
    for bad in ("GBAYE26001", "GBAYE260010011", "1BAYE2600100", "GB%C3%84YE2600100", "GBAYE26001OO"):
        assert api.refused(f"/v1/tracks/isrc/{bad}") == (400, "invalid_parameter", ["isrc"]), bad
    assert api.refused("/v1/tracks/isrc/GBAYE0000000") == (404, "not_found", []), "of the right shape, and nobody's"


def test_b7_no_two_tracks_share_a_code_and_conflicts_are_kept_aside(built: Api, built_world: BuiltWorld) -> None:
    codes = table(built_world, "recording_isrc")
    assert codes["isrc"].is_unique().all()
    assert {"isrc", "recording_id", "owner_recording_id", "reason"} <= set(table(built_world, "isrc_conflict").columns)
    for code, number in codes.select("isrc", "recording_id").head(10).iter_rows():
        assert built.ask(f"/v1/tracks/isrc/{code}")["id"] == number


def test_b7_codes_that_two_tracks_claim_are_listed_with_the_reason(api: Api) -> None:
    [conflict] = api.ask("/v1/conflicts/isrc", isrc=isrc(1).lower())["results"]
    assert {name: conflict[name] for name in ("isrc", "reason", "platforms", "record_count")} == {
        "isrc": isrc(1),
        "reason": "variant",
        "platforms": ["store_a"],
        "record_count": 1,
    }
    assert (conflict["kept_by"]["id"], conflict["claimed_by"]["id"]) == (1, 3)
    assert conflict["kept_by"]["isrc"] == isrc(1)
    assert api.ask("/v1/conflicts/isrc", isrc="GBAAA0000000")["results"] == []
    assert conflict in api.ask("/v1/conflicts/isrc")["results"]


def test_b8_commercial_variants_stay_two_tracks_although_search_absorbs_their_tags(api: Api) -> None:
    assert [api.ask(f"/v1/tracks/isrc/{isrc(number)}")["id"] for number in (4, 5)] == [4, 5]
    found = {track["id"] for track in api.ask("/v1/tracks/search", artist="Nova Kline", title="Silver Morning")["results"]}
    assert found == {4, 5}


def test_b9_an_iswc_is_read_in_its_spellings_and_works_are_n_to_m(api: Api) -> None:
    for spelling in ("T-034.524.680-1", "T0345246801", "t-034.524.680-1", "t0345246801"):
        answer = api.ask(f"/v1/tracks/iswc/{spelling}")
        assert (answer["iswc"], answer["total"]) == (WORK, 3)
    assert {work["iswc"] for work in api.ask("/v1/tracks/iswc", id=6)["iswcs"]} == {WORK, "T0000000010"}
    for bad in ("T034524680", "X0345246801", "T03452468012", "0345246801"):
        assert api.refused(f"/v1/tracks/iswc/{bad}") == (400, "invalid_parameter", ["iswc"]), bad
    for unknown in ("T0345246802", "T0000000020"):
        assert api.refused(f"/v1/tracks/iswc/{unknown}") == (404, "not_found", []), unknown
    assert not any("iswc" in name for name in api.ask("/v1/tracks/1"))
    assert api.ask(f"/v1/tracks/iswc/{WORK_ALONE}")["total"] == 0


def test_b10_a_slim_track_has_its_fields(api: Api) -> None:
    row = api.post("/v1/tracks/resolve", {"input_type": "isrc", "items": [isrc(1)]}).json()["results"][0]
    assert row["track"] == {
        "id": 1,
        "title": "Midnight Running",
        "isrc": isrc(1),
        "releases": [
            {"title": "Night Trains", "label": {"name": "Amber Records"}, "release_date": "2021-03-05"},
            {"title": "Night Trains and Harbours", "label": {"name": "Blue Door"}, "release_date": "2022-06-01"},
        ],
        "genre": ["House"],
    }


def recognised(api: Api, seed: int) -> list[dict[str, object]]:
    answer = api.post("/v1/tracks/identify", {"fingerprint": fingerprint(song(seed)).tolist(), "fingerprint_duration": 40})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, object]] = answer.json()["results"]
    return results


def test_b11_a_recognition_result_has_a_text_id_a_title_artists_and_its_confidence(api: Api) -> None:
    [result] = recognised(api, 2)
    track = api.ask("/v1/tracks/2")
    assert (result["id"], result["title"], result["artists"]) == ("2", track["title"], track["artists"])
    assert result["confidence"] == 1.0
    assert api.ask(f"/v1/tracks/links?id={result['id']}")["track_id"] == 2


def test_b11_results_are_best_first_with_each_track_once_under_its_present_id(api: Api) -> None:
    assert [result["id"] for result in recognised(api, 4)] == ["4", "5"]  # the same sound
    assert [result["id"] for result in recognised(api, 1)] == ["1"]  # 41 sounds like it, too, and was merged into it
    assert [result["id"] for result in recognised(api, MERGED)] == ["1"]


def test_b11_a_recording_that_left_the_catalog_is_left_out(api: Api) -> None:
    assert recognised(api, RETIRED) == []


def test_b11_none_is_below_a_confidence_of_a_half(api: Api) -> None:
    items, random = fingerprint(song(2)), np.random.default_rng(3)
    seen = []
    for share in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4):
        flips = (random.random((len(items), 32)) < share) @ (1 << np.arange(32, dtype=np.uint64))
        answer = api.post("/v1/tracks/identify", {"fingerprint": (items ^ flips.astype(np.uint32)).tolist()}).json()
        seen += [result["confidence"] for result in answer["results"]]
    assert seen == sorted(seen, reverse=True)
    assert 2 <= len(seen) < 7
    assert all(0.5 <= one <= 1 for one in seen)


def test_b12_links_have_a_fixed_order_and_absolute_urls(api: Api) -> None:
    links = api.ask("/v1/tracks/links", id=1)["links"]
    assert [link["source"] for link in links] == list(LINK_SOURCES)
    assert all(set(link) == {"source", "external_id", "url"} for link in links)
    assert all(link["url"].startswith("https://") and link["external_id"] in link["url"] and "{" not in link["url"] for link in links)


def test_b12_templates_are_the_operators(awkward_catalog: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[url_templates]\nstore_a = "https://shop.example/t/{id}-{slug}"\n')
    with serving(awkward_catalog, f"sqlite:///{tmp_path}/accounts.db", tmp_path, "--settings", str(settings)) as own:
        links = {link["source"]: link["url"] for link in own.ask("/v1/tracks/links", id=2)["links"]}
        assert links["store_a"] == "https://shop.example/t/5000002-track-2"
        assert own.ask("/v1/tracks/links", url="https://shop.example/t/5000002-track-2")["track_id"] == 2


def test_b13_the_id_of_a_work_entry_is_an_integer(api: Api) -> None:
    assert api.ask("/v1/tracks/iswc", id=1)["sonovault_id"] == 1
    assert all(isinstance(entry["sonovault_id"], int) for entry in api.ask(f"/v1/tracks/iswc/{WORK}")["recordings"])


def test_b14_the_genre_tree_has_25_mains_and_names_each_nodes_main(api: Api) -> None:
    nodes = api.ask("/v1/genres")["genres"]
    mains = {node["name"] for node in nodes if node["type"] == "main"}
    assert len(mains) == 25
    assert {"House", "Techno", "Trance", "DnB", "Dubstep", "Breakbeat", "Garage", "Hardstyle", "Hardcore"} <= mains
    assert {node["type"] for node in nodes} == {"main", "subgenre"}
    assert all(node["parent"] is None if node["type"] == "main" else node["parent"] in mains for node in nodes)
    assert all(set(node) >= {"id", "name", "type", "parent"} for node in nodes)
    assert len({node["id"] for node in nodes}) == len(nodes)


def test_b15_a_new_release_has_its_fields(api: Api) -> None:
    entries = api.ask("/v1/releases/new")["results"]
    for entry in entries:
        assert set(entry) >= {"id", "title", "artist", "label", "release_date", "track_count"}
        assert set(entry["artist"]) - {"credited_as"} == {"id", "name"}
        assert entry["track_count"] >= 1
    assert {entry["id"]: entry["label"] for entry in entries}[3] is None


def test_b16_merged_ids_answer_with_the_survivor_and_split_ids_live_on(api: Api) -> None:
    merged = api.get(f"/v1/tracks/{MERGED}")
    assert (merged.status_code, merged.json()["id"], merged.headers["content-location"]) == (200, 1, "/v1/tracks/1")
    assert "content-location" not in api.get("/v1/tracks/1").headers
    for path, member in (("/v1/tracks/links", "track_id"), ("/v1/tracks/iswc", "sonovault_id")):
        answer = api.get(path, id=MERGED)
        assert (answer.json()[member], answer.headers["content-location"]) == (1, f"{path}?id=1")
        assert "content-location" not in api.get(path, id=1).headers
    assert api.ask(f"/v1/tracks/{SPLIT}")["id"] == SPLIT
    assert api.refused(f"/v1/tracks/{RETIRED}") == (404, "not_found", [])
    assert api.ask("/v1/tracks/links", catalog_b_id=uuid(1))["track_id"] == 1


def test_b17_lookups_answer_from_a_kept_build(api: Api) -> None:
    now, then = (api.get("/v1/tracks/41", **query) for query in ({}, {"as_of": "first"}))
    assert (now.json()["id"], now.headers["content-location"], now.headers["x-catalog-build"]) == (1, "/v1/tracks/1", "second")
    assert (then.json()["id"], then.headers.get("content-location"), then.headers["x-catalog-build"]) == (41, None, "first")
    assert api.ask("/v1/tracks/search", artist="The Velvet Foxes", title="Midnight Running", as_of="first")["results"]
    gone = api.get("/v1/tracks/1", as_of="2020-01-01")
    assert problem(gone) == (410, "build_not_kept", [])
    assert [build["id"] for build in gone.json()["builds"]] == ["first", "second"]
    assert api.refused("/v1/tracks/1", as_of="a b") == (400, "invalid_parameter", ["as_of"])
    assert api.ask("/v1/changes", since="first", until="first") == {"since": "first", "build": "first", "results": [], "next_cursor": None}
    assert api.refused("/v1/changes", until="first") == (400, "invalid_parameter", ["until"])
    assert api.refused("/v1/changes", since="second", until="first")[:2] == (400, "invalid_parameter")


def test_b16_changes_list_merges_splits_and_removals_since_a_build(api: Api) -> None:
    delivered = api.ask("/v1/changes", since="first")
    found = {(one["kind"], one["change"], one["id"], one["new_id"]) for one in delivered["results"]}
    assert ("track", "merged", MERGED, 1) in found
    assert ("track", "removed", RETIRED, None) in found
    assert ("track", "split", SPLIT, SPLIT_OFF) in found
    assert (delivered["since"], delivered["build"], delivered["next_cursor"]) == ("first", "second", None)
    assert api.ask("/v1/changes", since="second")["results"] == []
    assert api.ask("/v1/changes")["build"] == "second"
    page = api.ask("/v1/changes", since="first", limit=1)
    assert len(page["results"]) == 1
    rest = api.ask("/v1/changes", since="first", cursor=page["next_cursor"])
    assert [*page["results"], *rest["results"]] == delivered["results"]
    assert problem(api.get("/v1/changes", since="never")) == (404, "not_found", [])
