"""Section D of the contract: bulk resolve."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from catalog_store import open_catalog
from catalog_store.serving.body_file import BodyFile
from catalog_store.serving.key_index import KeyIndex
from tests.contract.awkward import GLASS_REMIXES, OLD_RECORDING_UUID, SHARED_RELEASE, isrc, streamsvc_a_id, uuid
from tests.contract.conftest import Api, problem

if TYPE_CHECKING:
    from pathlib import Path

RESOLVE = "/v1/tracks/resolve"
NAMES = {"artist": "The Velvet Foxes", "title": "Midnight Running"}
ITEMS: dict[str, object] = {
    "isrc": isrc(1).lower(),
    "track_name": NAMES,
    "streamsvc_a_id": streamsvc_a_id(1),
    "streamsvc_b_id": "1440000001",
    "streamsvc_c_id": "990001",
    "store_a_id": "5000001",
    "catalog_a_id": "7001",
    "catalog_b_id": uuid(1).upper(),
}


def resolve(api: Api, input_type: str, items: list[Any], **headers: str) -> Any:  # noqa: ANN401 - JSON
    answer = api.post(RESOLVE, {"input_type": input_type, "items": items}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("input_type", ITEMS)
def test_d1_each_kind_of_input_is_resolved(api: Api, input_type: str) -> None:
    body = resolve(api, input_type, [ITEMS[input_type]])
    assert set(body) == {"results", "partial", "processed", "credits_used", "credits_remaining", "message"}
    [row] = body["results"]
    assert (row["status"], row["track"]["id"], row["input"]) == ("matched", 1, ITEMS[input_type])
    assert len(row["links"]) == 7
    assert (body["partial"], body["processed"], body["credits_used"], body["message"]) == (False, 1, 1, None)


@pytest.mark.parametrize(
    ("body", "code", "names"),
    [
        ({}, "invalid_parameter", ["input_type", "items"]),
        ({"input_type": "upc", "items": ["x"]}, "invalid_parameter", ["input_type"]),
        ({"input_type": "isrc", "items": []}, "invalid_parameter", ["items"]),
        ({"input_type": "isrc", "items": "GBAYE2600100"}, "invalid_parameter", ["items"]),
        ({"input_type": "isrc", "items": ["x"] * 101}, "too_many_items", []),
        ({"input_type": "isrc", "items": ["x", 5, None, {}]}, "invalid_parameter", ["items[1]", "items[2]", "items[3]"]),
        ({"input_type": "track_name", "items": [NAMES, "x", {"artist": "a"}]}, "invalid_parameter", ["items[1]", "items[2].title"]),
        ({"input_type": "track_name", "items": [{"artist": " ", "title": 5}]}, "invalid_parameter", ["items[0].artist", "items[0].title"]),
        ({"input_type": "track_name", "items": [{"artist": "a", "title": "b" * 501}]}, "invalid_parameter", ["items[0].title"]),
        ([], "invalid_parameter", ["body"]),
        (None, "invalid_parameter", ["body"]),
    ],
)
def test_d1_malformed_row_is_400_with_its_index(api: Api, body: object, code: str, names: list[str]) -> None:
    answer = api.request("POST", RESOLVE, content=json.dumps(body), headers={"content-type": "application/json"})
    assert problem(answer) == (400, code, names)
    assert api.ask("/v1/usage")["credits_used"] == 0


def test_d1_a_malformed_code_is_that_rows_not_found(api: Api) -> None:
    for input_type, bad in (("isrc", "not a code"), ("catalog_b_id", "not-a-uuid"), ("streamsvc_a_id", ""), ("store_a_id", "٣")):
        body = resolve(api, input_type, [bad, ITEMS[input_type]])
        assert [row["status"] for row in body["results"]] == ["not_found", "matched"], input_type


MALFORMED = (
    *("", " ", "\t\r\n", "\x00", "GBAYE26\x0000100", "\x7f\x1b[31m", "x" * 201, "7" * 5_000, "GBAYE2600100" * 1_000, "é" * 100_000, "=1+1"),
    *(
        "\u202e\ufeff",
        "\U0001d50a\U0001d505",
        "%00",
        "../../etc/passwd",
        "' OR 1=1 --",
        "-1",
        "1e9",
        str(2**63),
        str(2**64),
        "0" * 300,
        "{}",
        "٣٤٥",
    ),
)


@pytest.mark.parametrize("input_type", [kind for kind in ITEMS if kind != "track_name"])
def test_d1_a_code_malformed_in_any_way_is_that_rows_not_found(api: Api, input_type: str) -> None:
    items = [*MALFORMED, ITEMS[input_type]]
    body = resolve(api, input_type, items)
    assert [row["status"] for row in body["results"]] == ["not_found"] * len(MALFORMED) + ["matched"]
    assert [row["input"] for row in body["results"]] == items
    assert (body["processed"], body["credits_used"]) == (len(items), len(items))


def test_d1_names_that_search_finds_only_as_possible_are_not_found(api: Api) -> None:
    rows = [{"artist": "Midnight Running", "title": "The Velvet Foxes"}, {"artist": "The Velvet Foxes", "title": "Midnight Running"}]
    body = api.post(RESOLVE, {"input_type": "track_name", "items": rows}).json()
    assert [row["status"] for row in body["results"]] == ["not_found", "matched"]


def test_d1_a_code_as_long_as_a_body_may_be_is_not_found(api: Api) -> None:
    body = resolve(api, "isrc", ["A" * (2 * 2**20 - 100)])
    assert body["results"][0]["status"] == "not_found"


def test_d2_rows_answer_their_items_in_order_duplicates_included(api: Api) -> None:
    items = [isrc(2), "unknown", isrc(1), isrc(2), " gb-aye-26-00100 ", "ZZZZZ9999999"]
    rows = resolve(api, "isrc", items)["results"]
    assert [row["input"] for row in rows] == items
    assert [row["status"] for row in rows] == ["matched", "not_found", "matched", "matched", "matched", "not_found"]
    assert [row["track"]["id"] for row in rows if "track" in row] == [2, 1, 2, 1]
    assert all(isinstance(row["links"], list) for row in rows)
    assert all(("track" in row) == (row["status"] == "matched") for row in rows)
    spoken = [{"title": "Midnight Running", "artist": "The Velvet Foxes", "note": {"é": [1, 2.5, None]}}]
    [row] = resolve(api, "track_name", spoken)["results"]
    assert row["input"] == spoken[0]
    assert row["match"]["class"] == "exact"


def test_d2_ids_of_several_tracks_or_merged_tracks_are_followed(api: Api) -> None:
    [row] = resolve(api, "catalog_a_id", [SHARED_RELEASE])["results"]
    assert row["track"]["id"] == 32
    [row] = resolve(api, "catalog_b_id", [OLD_RECORDING_UUID])["results"]
    assert row["track"]["id"] == 1


def test_d3_rows_cost_a_credit_each_and_the_rest_is_skipped_when_credits_run_out(server: Api) -> None:
    caller = server.with_credits(5)
    items = [isrc(1), "unknown", isrc(2)]
    body = resolve(caller, "isrc", items)
    assert (body["partial"], body["processed"], body["credits_used"], body["credits_remaining"]) == (False, 3, 3, 2)
    body = resolve(caller, "isrc", [isrc(number) for number in (1, 2, 3, 4)])
    assert [row["status"] for row in body["results"]] == ["matched", "matched", "skipped_no_credits", "skipped_no_credits"]
    assert (body["partial"], body["processed"], body["credits_used"], body["credits_remaining"]) == (True, 2, 2, 0)
    assert body["message"]
    body = resolve(caller, "track_name", [NAMES])
    assert (body["partial"], body["processed"], body["credits_used"], body["results"]) == (
        True,
        0,
        0,
        [{"input": NAMES, "status": "skipped_no_credits", "links": []}],
    )
    assert caller.ask("/v1/usage")["credits_used"] == 5


def test_d4_a_batch_is_a_handful_of_reads_not_a_loop(awkward_catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def counted(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def read(*arguments: object) -> object:
            reads.append(name)
            return real(*arguments)

        monkeypatch.setattr(owner, name, read)

    for owner, name in ((KeyIndex, "find_candidates"), (BodyFile, "read_frame"), (BodyFile, "read_frames")):
        counted(owner, name)
    with open_catalog(awkward_catalog) as catalog:
        catalog._store._sessions[0].connection.set_trace_callback(reads.append)
        found = catalog.find_ids_by_isrcs([isrc(number) for number in GLASS_REMIXES])
        slim = catalog.read_slim_bodies(list(found.values()))
    assert len(slim) == len(GLASS_REMIXES)
    assert reads == ["find_candidates", "read_frames"]


def test_d4_a_repeat_under_an_idempotency_key_gets_the_first_answer_and_pays_nothing(server: Api) -> None:
    caller = server.with_credits(10)
    sent = {"input_type": "isrc", "items": [isrc(1), "unknown"]}
    headers = {"idempotency-key": "7a1c"}
    first = caller.post(RESOLVE, sent, headers=headers)
    again = caller.post(RESOLVE, sent, headers=headers)
    assert again.content == first.content
    assert (first.headers["x-credits-used"], again.headers["x-credits-used"]) == ("2", "0")
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["x-catalog-build"] == first.headers["x-catalog-build"]
    assert again.headers["x-credits-remaining"] == first.headers["x-credits-remaining"]
    assert caller.ask("/v1/usage")["credits_used"] == 2
    other = caller.post(RESOLVE, {"input_type": "isrc", "items": [isrc(2)]}, headers=headers)
    assert problem(other) == (409, "idempotency_key_reused", [])
    assert caller.post(RESOLVE, sent, headers={"idempotency-key": "7a1d"}).headers["x-credits-used"] == "2"
    assert problem(caller.post(RESOLVE, sent, headers={"idempotency-key": "k" * 256})) == (400, "invalid_parameter", ["Idempotency-Key"])
    stranger = server.as_caller()
    assert stranger.post(RESOLVE, {"input_type": "isrc", "items": [isrc(2)]}, headers=headers).status_code == 200
