"""Section D of the contract: bulk resolve of artists and releases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.awkward import BARCODE, FOXES, MERIDIAN, NAMESAKE_ARTIST, OLD_ARTIST, OLD_RELEASE, SHARED_BARCODE, TOKYO, isrc
from tests.contract.conftest import Api, problem

ARTISTS, RELEASES = "/v1/artists/resolve", "/v1/releases/resolve"
NIGHT_TRAINS = {"artist": "The Velvet Foxes", "title": "Night Trains"}


def resolve(api: Api, path: str, input_type: str, items: list[Any]) -> list[dict[str, Any]]:
    answer = api.post(path, {"input_type": input_type, "items": items})
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["results"]
    assert [row["input"] for row in rows] == items
    return rows


@pytest.mark.parametrize(
    ("path", "input_type", "item", "expected"),
    [
        (ARTISTS, "id", FOXES, [FOXES]),
        (ARTISTS, "id", OLD_ARTIST, [FOXES]),
        (ARTISTS, "artist_name", "velvet foxes, the", [FOXES]),
        (ARTISTS, "artist_name", "THE VELVÉT  FOXES", [FOXES]),
        (ARTISTS, "artist_name", "東京電灯", [TOKYO]),
        (ARTISTS, "artist_name", "velvet", []),
        (ARTISTS, "artist_name", "meridian", [MERIDIAN, NAMESAKE_ARTIST]),
        (ARTISTS, "streamsvc_a_id", f"artist{FOXES:016d}", [FOXES]),
        (ARTISTS, "streamsvc_a_id", f"ARTIST{FOXES:016d}", []),
        (ARTISTS, "store_a_id", "1", []),
        (RELEASES, "id", 1, [1]),
        (RELEASES, "id", OLD_RELEASE, [1]),
        (RELEASES, "barcode", BARCODE, [2]),
        (RELEASES, "barcode", f" {BARCODE[1:7]}-{BARCODE[7:]} ", [2]),
        (RELEASES, "barcode", SHARED_BARCODE.lstrip("0"), [10, 9]),
        (RELEASES, "barcode", "5099902894226", []),
        (RELEASES, "catalog_a_id", "7003", [3]),
        (RELEASES, "catalog_b_id", "7003", []),
        (RELEASES, "release_name", NIGHT_TRAINS, [1]),
        (RELEASES, "release_name", {"artist": "КИНОЛЕНТА", "title": "reel to reel"}, [12]),
        (RELEASES, "release_name", {"artist": "Viktor's Reels", "title": "Reel to Reel"}, [12]),
        (RELEASES, "release_name", {"artist": "DJ Salt", "title": "Night Trains"}, []),
        (RELEASES, "release_name", {"artist": "The Velvet Foxes", "title": "Night"}, []),
    ],
)
def test_d1_artists_and_releases_are_resolved_by_ids_barcodes_and_names(
    api: Api, path: str, input_type: str, item: object, expected: list[int]
) -> None:
    [row] = resolve(api, path, input_type, [item])
    kind = "artist" if path == ARTISTS else "release"
    if not expected:
        assert row == {"input": item, "status": "not_found"}
        return
    assert row["status"] == "matched"
    assert [row[kind]["id"], *row.get("alternatives", [])] == expected
    alone = api.ask(f"/v1/{kind}s/{expected[0]}")
    assert row[kind] == {name: alone[name] for name in row[kind]}
    assert set(row[kind]) >= ({"id", "name", "release_count"} if kind == "artist" else {"id", "title", "artist", "track_count"})


@pytest.mark.parametrize(
    ("path", "body", "code", "names"),
    [
        (ARTISTS, {"input_type": "isrc", "items": [isrc(1)]}, "invalid_parameter", ["input_type"]),
        (ARTISTS, {"input_type": "id", "items": ["1", 0, True, 2**63, 1.5, 1]}, "invalid_parameter", [f"items[{n}]" for n in range(5)]),
        (
            ARTISTS,
            {"input_type": "artist_name", "items": ["x", " ", 5, "a" * 501]},
            "invalid_parameter",
            ["items[1]", "items[2]", "items[3]"],
        ),
        (ARTISTS, {"input_type": "id", "items": [1] * 101}, "too_many_items", []),
        (RELEASES, {"input_type": "barcode", "items": [5099902894225]}, "invalid_parameter", ["items[0]"]),
        (RELEASES, {"input_type": "release_name", "items": ["x", {"artist": "a"}]}, "invalid_parameter", ["items[0]", "items[1].title"]),
        (RELEASES, {"input_type": "track_name", "items": [NIGHT_TRAINS]}, "invalid_parameter", ["input_type"]),
    ],
)
def test_d1_malformed_rows_of_artists_and_releases_are_refused(api: Api, path: str, body: object, code: str, names: list[str]) -> None:
    answer = api.request("POST", path, content=json.dumps(body), headers={"content-type": "application/json"})
    assert problem(answer) == (400, code, names)
    assert api.ask("/v1/usage")["credits_used"] == 0


@pytest.mark.parametrize("path", [ARTISTS, RELEASES])
def test_d3_a_batch_of_artists_or_releases_costs_a_credit_a_row_as_far_as_they_last(server: Api, path: str) -> None:
    caller = server.with_credits(2)
    sent = {"input_type": "id", "items": [1, 1, 999_999]}
    first = caller.post(path, sent, headers={"idempotency-key": "one"})
    assert [row["status"] for row in first.json()["results"]] == ["matched", "matched", "skipped_no_credits"]
    assert (first.json()["partial"], first.json()["credits_used"]) == (True, 2)
    again = caller.post(path, sent, headers={"idempotency-key": "one"})
    assert (again.content, again.headers["x-credits-used"]) == (first.content, "0")


@pytest.mark.parametrize(
    ("path", "input_type", "item"),
    [("/v1/tracks/resolve", "isrc", isrc(1)), ("/v1/tracks/resolve", "track_name", NIGHT_TRAINS), (ARTISTS, "id", 1), (RELEASES, "id", 1)],
)
def test_a16_batches_name_their_build(api: Api, path: str, input_type: str, item: object) -> None:
    answer = api.post(path, {"input_type": input_type, "items": [item]})
    assert answer.headers["x-catalog-build"] == "second"
    assert "second" not in answer.text


def test_a16_identifications_name_their_build(api: Api) -> None:
    answer = api.post("/v1/tracks/identify", {"fingerprint": [*range(60)]})
    assert (answer.status_code, answer.headers["x-catalog-build"]) == (200, "second")


def test_f5_releases_are_found_by_barcode_in_pages(api: Api) -> None:
    [found] = api.ask("/v1/releases", barcode=BARCODE.lstrip("0"))["results"]
    assert (found["id"], found["title"]) == (2, "Night Trains and Harbours")
    for spelling in (f" {BARCODE}", f"{BARCODE}  ", f"{BARCODE[:2]} {BARCODE[2:8]}-{BARCODE[8:]} "):
        assert [one["id"] for one in api.ask("/v1/releases", barcode=spelling)["results"]] == [found["id"]], spelling
    first = api.ask("/v1/releases", barcode=SHARED_BARCODE, limit=1)
    second = api.ask("/v1/releases", barcode=SHARED_BARCODE, limit=1, cursor=first["next_cursor"])
    assert [page["results"][0]["id"] for page in (first, second)] == [10, 9]
    assert second["next_cursor"] is None
    assert api.refused("/v1/releases", barcode=BARCODE, cursor=first["next_cursor"]) == (400, "invalid_cursor", [])
    assert api.ask("/v1/releases", barcode="12345678") == {"results": [], "next_cursor": None}
    for wrong in ("1234567", "x" * 12, "123456789012345", "1--2345678", "٣٣٣٣٣٣٣٣"):
        assert api.refused("/v1/releases", barcode=wrong) == (400, "invalid_parameter", ["barcode"])
    assert api.refused("/v1/releases") == (400, "invalid_parameter", ["barcode"])
