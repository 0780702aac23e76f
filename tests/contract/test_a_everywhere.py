"""Tests of section A of the contract: rules of every route."""

from __future__ import annotations

import gzip
import re
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
import zstandard

from account_store.api_keys import Caller
from account_store.plans import Terms, load_plans
from catalog_api import route_declaration
from catalog_api.answers import Answer
from catalog_api.changelog import build_deprecation_headers
from catalog_api.description import build_description
from catalog_api.metering import Lookup, Question
from catalog_api.problems import CODES
from catalog_api.wire.catalog_types import GenreTree
from catalog_api.wire.service_types import InterfaceChange
from tests.contract.awkward import MERGED, WORK, isrc
from tests.contract.conftest import Api, problem
from tests.contract.read_paths import PAID_PATHS, READ_PATHS, TIMESTAMP

if TYPE_CHECKING:
    from catalog_api.parameters import ParameterValues


def test_a1_unknown_paths_are_404_and_wrong_methods_405_with_allow(api: Api) -> None:
    assert problem(api.get("/v1/nothing")) == (404, "not_found", [])
    assert problem(api.get("/v2/genres")) == (404, "not_found", [])
    wrong = api.post("/v1/genres", {})
    assert problem(wrong) == (405, "method_not_allowed", [])
    assert "GET" in wrong.headers["allow"]
    not_read = api.get("/v1/tracks/resolve")
    assert problem(not_read) == (405, "method_not_allowed", [])
    assert "POST" in not_read.headers["allow"]
    assert not_read.json()["detail"] == "This path answers POST only."


def test_a1_head_is_answered_as_get_without_a_body(api: Api) -> None:
    report = "/v1/streams/report?from=2026-11-01&until=2026-11-02"
    for path in ("/v1/tracks/1", "/v1/genres", "/v1/usage", report, "/healthz", "/v1/errors"):
        asked, only_head = api.get(path), api.request("HEAD", path)
        assert (only_head.status_code, only_head.content) == (200, b""), path
        for name in ("content-type", "etag", "x-credits-used"):
            assert only_head.headers.get(name) == asked.headers.get(name), (path, name)
    assert api.request("HEAD", "/v1/tracks/resolve").headers["allow"] == "POST"
    assert api.post("/v1/genres", {}).headers["allow"] == "GET, HEAD"
    assert api.request("HEAD", "/v1/nothing").status_code == 404
    assert api.request("HEAD", "/v1/genres", key=None).status_code == 401


def test_a1_the_description_and_the_reference_need_no_key_and_no_other_site(api: Api) -> None:
    document = api.get("/v1/openapi.json", key=None).json()
    assert document["openapi"].startswith("3.1")
    served = {(path, method) for path, item in document["paths"].items() for method in item}
    assert {("/v1/tracks/search", "get"), ("/v1/tracks/{id}", "get"), ("/v1/tracks/resolve", "post"), ("/v1/usage", "get")} <= served
    page = api.get("/v1/docs", key=None)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert all(path in page.text for path in document["paths"])
    foreign = r"<script(?! src=\"/v1/docs/page.js\" defer></script>)|(src=|<link[^>]*href=)\"(https?:)?//"
    assert not re.search(foreign, page.text)
    assert "script-src 'self'" in page.headers["content-security-policy"]
    for local in re.findall(r"(?:src|href)=\"(/[^\"#]+)\"", page.text):
        assert api.get(local, key=None).status_code in {200, 303}, local


def test_a2_answers_are_json_in_utf_8(api: Api) -> None:
    for path in (*READ_PATHS, "/v1/usage"):
        assert api.get(path).headers["content-type"] == "application/json; charset=utf-8", path


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/xml", "application/x-www-form-urlencoded", "", "application/json; charset=latin-1"]
)
def test_a2_a_body_of_another_type_is_415(api: Api, content_type: str) -> None:
    body = b'{"input_type":"isrc","items":["GBAYE2600100"]}'
    answer = api.request("POST", "/v1/tracks/resolve", content=body, headers={"content-type": content_type})
    assert problem(answer) == (415, "unsupported_media_type", [])


def test_a3_a_live_key_is_needed_in_the_header(api: Api) -> None:
    for path in (*READ_PATHS, "/v1/usage", "/v1/nothing", "/v1/tracks/abc"):
        assert problem(api.get(path, key=None)) == (401, "missing_api_key", []), path
        assert problem(api.get(path, key="mc_" + "x" * 32)) == (401, "invalid_api_key", []), path
    assert api.get(f"/v1/genres?x-api-key={api.key}", key=None).status_code == 401
    assert api.get(f"/v1/genres?api_key={api.key}", key=None).status_code == 401
    assert api.get("/v1/genres", key=None, headers={"authorization": f"Bearer {api.key}"}).status_code == 401
    assert api.get("//v1/genres", key=None).status_code in {401, 404}
    assert api.get("/v1/docs/../genres", key=None).status_code in {401, 404}


def test_a3_a_revoked_key_is_refused_and_use_is_noted(api: Api) -> None:
    account = api.accounts.create("revoked" + api.key[-8:]).account_id
    made = api.accounts.keys.create(account)
    assert api.get("/v1/genres", key=made.key).status_code == 200
    assert api.accounts.keys.list_summaries(account)[0].last_used_at is not None
    api.accounts.keys.revoke(made.key_id)
    assert problem(api.get("/v1/genres", key=made.key)) == (401, "invalid_api_key", [])


def test_a4_a_free_key_reads_and_is_refused_paid_routes_before_other_checks(server: Api) -> None:
    free = server.as_caller("free")
    for path in PAID_PATHS:
        assert problem(free.get(f"{path}?limit=abc&cursor=x&genreId=zero")) == (403, "plan_required", []), path
    unread = free.request("POST", "/v1/tracks/abc/suggestions", content=b"\xff{", headers={"content-type": "text/plain"})
    assert problem(unread) == (403, "plan_required", [])
    unheard = free.request("POST", "/v1/tracks/identify", content=b"\xff{", headers={"content-type": "text/plain"})
    assert problem(unheard) == (403, "plan_required", [])
    free = server.as_caller("free")
    for path in [path for path in READ_PATHS if not path.startswith(PAID_PATHS)][:8]:
        assert free.get(path).status_code == 200, path
    assert server.as_caller("free").get("/v1/usage").status_code == 200
    assert server.as_caller("free").post("/v1/tracks/resolve", {"input_type": "isrc", "items": [isrc(1)]}).status_code == 200


def test_a4_every_paying_plan_reads_it_all(server: Api) -> None:
    for plan in ("starter", "growth", "scale"):
        paying = server.as_caller(plan)
        assert [paying.get(path).status_code for path in PAID_PATHS] == [200] * len(PAID_PATHS), plan


def test_a5_a_problem_names_all_bad_parameters_at_once_and_its_code_is_listed(api: Api) -> None:
    answer = api.get("/v1/tracks/search?limit=0&artist=%20")
    assert problem(answer) == (400, "invalid_parameter", ["artist", "title", "limit"])
    assert [one["in"] for one in answer.json()["errors"]] == ["query"] * 3
    assert answer.json()["instance"] == "/v1/tracks/search"
    odd = api.get("/v1/tracks/%22a%20b%C3%A9%00").json()
    assert odd["instance"] == "/v1/tracks/%22a%20b%C3%A9%00", "a URI reference, whatever was asked for"
    body = api.post("/v1/tracks/0/suggestions", {"field": "mood", "value": " "})
    assert problem(body)[0:2] == (400, "invalid_parameter")
    listed = api.get("/v1/errors", key=None).json()["errors"]
    assert {one["code"]: one["status"] for one in listed} == {name: code.status for name, code in CODES.items()}
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", one["code"]) and one["advice"] for one in listed)
    assert answer.json()["type"].startswith("/v1/errors#")


INSIDE = "https://10.0.0.8/hook"
STREAMS, WEBHOOKS, RESOLVE = "/v1/streams", "/v1/webhooks", "/v1/tracks/resolve"


@pytest.mark.parametrize(
    ("path", "body", "names"),
    [
        (STREAMS, {"url": INSIDE, "name": " "}, {"url", "name"}),
        (STREAMS, {"url": "http://localhost/live", "name": 5}, {"url", "name"}),
        (STREAMS, {"url": "http://2130706433/", "name": "x" * 201}, {"url", "name"}),
        (STREAMS, {"url": "ftp://example.org/", "name": ""}, {"url", "name"}),
        (STREAMS, {}, {"url", "name"}),
        (WEBHOOKS, {"url": INSIDE, "event_types": ["no such event"]}, {"url", "event_types"}),
        (WEBHOOKS, {"url": INSIDE, "event_types": 5, "description": "x" * 501}, {"url", "event_types", "description"}),
        (WEBHOOKS, {"url": "http://example.org\\@10.0.0.8/", "description": 5}, {"url", "description"}),
        (RESOLVE, {"input_type": "upc", "items": ["x", 5, {}]}, {"input_type", "items[1]"}),
        (RESOLVE, {"input_type": "upc", "items": []}, {"input_type", "items"}),
        (RESOLVE, {"input_type": 5, "items": ["x"] * 101}, {"input_type", "items"}),
        ("/v1/tracks/0/suggestions", {"field": "mood", "value": " ", "note": 5}, {"id", "field", "value", "note"}),
        ("/v1/tracks/identify", {"fingerprint": [], "fingerprint_duration": 0}, {"fingerprint", "fingerprint_duration"}),
    ],
)
def test_a5_a_body_is_judged_whole_where_its_addresses_lead_too(api: Api, path: str, body: object, names: set[str]) -> None:
    for account in api.accounts.list_all():
        api.accounts.set_card(account.account_id, has_card=True)
    status, code, found = problem(api.post(path, body, headers={"idempotency-key": "not one"}))
    expected = names | ({"Idempotency-Key"} if path != WEBHOOKS else set())
    assert (status, code, set(found)) == (400, "invalid_parameter", expected)


def test_a5_a_change_of_a_webhook_names_its_address_and_the_rest(api: Api) -> None:
    path = f"{WEBHOOKS}/{api.post(WEBHOOKS, {'url': 'https://hooks.example.org/'}).json()['id']}"
    answer = api.request("PATCH", path, json={"url": INSIDE, "status": "asleep", "event_types": "all"})
    assert set(problem(answer)[2]) == {"url", "status", "event_types"}
    assert api.ask(path)["url"] == "https://hooks.example.org/"


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/v1/streams/report?from=2026-03-02&until=2026-03-01&timezone=Mars", ["timezone", "from"]),
        ("/v1/streams/report?from=2026-01-01&until=2026-12-31&timezone=Mars", ["timezone", "from", "until"]),
        ("/v1/streams/report?from=soon&until=2026-13-01", ["from", "until"]),
        ("/v1/tracks/browse?genre=no+such+genre&limit=0&year=1", ["year", "limit", "genre"]),
        ("/v1/tracks/browse?genreId=999999&limit=0", ["limit", "genreId"]),
        ("/v1/webhooks/0b0b0b0b-0000-4000-8000-000000000000/deliveries?status=odd&limit=0", ["status", "limit"]),
        ("/v1/tracks/links?id=0&isrc=x", ["id", "isrc", "id", "isrc"]),
    ],
)
def test_a5_a_query_is_judged_whole(api: Api, path: str, names: list[str]) -> None:
    assert problem(api.get(path)) == (400, "invalid_parameter", names)


def test_a8_a_bad_body_with_an_address_is_400_over_the_rate_too(server: Api) -> None:
    slow = server.as_caller(terms=Terms(credits=10, price_eur=Decimal(1), requests_per_second=1))
    found = [problem(slow.post(WEBHOOKS, {"url": INSIDE, "event_types": 5})) for _ in range(6)]
    assert {(status, code) for status, code, _ in found} == {(400, "invalid_parameter")}
    assert set(found[0][2]) == {"url", "event_types"}, "the rate pays for looking where an address leads"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/tracks/9223372036854775807",
        "/v1/tracks/isrc/ZZZZZ9999999",
        "/v1/tracks/iswc/T0000000020",
        "/v1/tracks/links?store_a_id=999999999999",
        "/v1/tracks/links?catalog_b_id=00000000-0000-4000-8000-00000000dead",
        "/v1/tracks/iswc?isrc=ZZZZZ9999999",
        "/v1/artists/77777",
        "/v1/labels/77777/releases",
        "/v1/releases/77777",
        "/v1/tracks/77777/suggestions",
    ],
)
def test_a6_an_unknown_id_or_code_is_404(api: Api, path: str) -> None:
    if path.endswith("suggestions"):
        assert problem(api.post(path, {"field": "genre", "value": "House"})) == (404, "not_found", [])
    else:
        assert api.refused(path) == (404, "not_found", [])


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/v1/tracks/search", ["artist", "title"]),
        ("/v1/tracks/search?artist=a&title=%FF", ["title"]),
        ("/v1/tracks/search?artist=a&artist=b&title=c", ["artist"]),
        ("/v1/tracks/abc", ["id"]),
        ("/v1/tracks/0", ["id"]),
        ("/v1/tracks/-1", ["id"]),
        ("/v1/tracks/1.0", ["id"]),
        ("/v1/tracks/99999999999999999999", ["id"]),
        ("/v1/tracks/%D9%A1", ["id"]),
        ("/v1/tracks/isrc/GBAYE00000", ["isrc"]),
        ("/v1/tracks/iswc/T123", ["iswc"]),
        ("/v1/tracks/browse?year=nineteen&genreId=x&randomize=maybe", ["genreId", "year", "randomize"]),
        ("/v1/artists/abc", ["id"]),
        ("/v1/artists/abc/releases?limit=x", ["id", "limit"]),
        ("/v1/labels/abc", ["id"]),
        ("/v1/releases/abc", ["id"]),
        ("/v1/changes?since=../../etc", ["since"]),
    ],
)
def test_a6_a_malformed_value_is_400(api: Api, path: str, names: list[str]) -> None:
    assert api.refused(path) == (400, "invalid_parameter", names)


@pytest.mark.parametrize(
    ("path", "largest"),
    [
        ("/v1/tracks/search?artist=a&title=b", 100),
        (f"/v1/tracks/iswc/{WORK}?", 200),
        ("/v1/tracks/browse?", 100),
        ("/v1/releases/new?", 100),
        ("/v1/artists/1/releases?", 100),
        ("/v1/labels/1/releases?", 100),
        ("/v1/suggestions?", 100),
    ],
)
def test_a7_a_limit_out_of_range_is_refused_never_clamped(api: Api, path: str, largest: int) -> None:
    for bad in ("0", "-1", str(largest + 1), "1.5", "ten", "", "1e1", "999999999999999999999"):
        assert api.refused(f"{path}&limit={bad}") == (400, "invalid_parameter", ["limit"]), bad
    for good in (1, largest):
        assert api.get(f"{path}&limit={good}").status_code == 200


def test_a7_unknown_parameters_are_ignored_unless_strict_handling_is_preferred(api: Api) -> None:
    assert api.get("/v1/tracks/1?colour=red&_=123").status_code == 200
    strict = {"prefer": "handling=strict"}
    assert problem(api.get("/v1/tracks/1?colour=red", headers=strict)) == (400, "invalid_parameter", ["colour"])
    assert api.get("/v1/tracks/1", headers=strict).status_code == 200
    assert api.get("/v1/tracks/search?artist=a&title=b", headers={"prefer": "respond-async, handling=strict"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "names"),
    [
        (WEBHOOKS, {"url": "https://hooks.example.org/", "events": ["stream.track_started"]}, ["events"]),
        (WEBHOOKS, {"url": "https://hooks.example.org/", "event_type": 5, "Description": ""}, ["event_type", "Description"]),
        (STREAMS, {"url": "http://radio.example.org/live", "name": "r", "x": {}}, ["x"]),
        (RESOLVE, {"input_type": "isrc", "items": ["x"], "limit": 5}, ["limit"]),
        (
            RESOLVE,
            {"input_type": "track_name", "items": [{"artist": "a", "title": "b", "isrc": "c"}, {"artist": "a", "title": "b"}]},
            ["items[0].isrc"],
        ),
        ("/v1/tracks/1/suggestions", {"field": "title", "value": "x", "why": "y"}, ["why"]),
        ("/v1/tracks/identify", {"fingerprint": [1, 2, 3], "duration": 200}, ["duration"]),
    ],
)
def test_a7_unknown_members_of_a_body_are_ignored_unless_strict_handling_is_preferred(
    api: Api, path: str, body: dict[str, object], names: list[str]
) -> None:
    for account in api.accounts.list_all():
        api.accounts.set_card(account.account_id, has_card=True)
    for wish in ("handling=strict", 'respond-async, Handling = "strict"; x=1'):
        assert problem(api.post(path, body, headers={"prefer": wish})) == (400, "invalid_parameter", names)
    assert api.post(path, body, headers={"prefer": "handling=lenient"}).status_code == 200


def test_a7_strict_handling_names_unknown_parameters_members_and_wrong_ones_together(api: Api) -> None:
    strict = {"prefer": "handling=strict"}
    answer = api.post(f"{WEBHOOKS}?colour=red", {"url": INSIDE, "events": []}, headers=strict)
    assert [(one["in"], one["name"]) for one in answer.json()["errors"]] == [("query", "colour"), ("body", "url"), ("body", "events")]
    path = f"{WEBHOOKS}/{api.post(WEBHOOKS, {'url': 'https://hooks.example.org/'}, headers=strict).json()['id']}"
    assert problem(api.request("PATCH", path, json={"state": "disabled"}, headers=strict))[2] == ["state"]
    assert problem(api.post(f"{path}/rotate", {"overlap": 1}, headers=strict))[2] == ["overlap"]
    assert problem(api.post(f"{path}/replay", {"since": "2026-11-20T00:00:00Z", "until": 1}, headers=strict))[2] == ["until"]
    assert api.request("POST", f"{path}/rotate", headers=strict).status_code == 200


def test_a8_checks_come_in_their_order(server: Api) -> None:
    spent = server.with_credits(1)
    assert spent.get("/v1/genres").status_code == 200
    bad = "/v1/tracks/search?limit=0"
    assert spent.get(bad, key=None).status_code == 401
    assert server.as_caller("free").get("/v1/tracks/browse?limit=0").status_code == 403
    assert spent.get(bad).status_code == 400
    assert problem(spent.get("/v1/genres"))[1] == "quota_exceeded"
    slow = server.as_caller(terms=Terms(credits=1, price_eur=Decimal(1), requests_per_second=1))
    codes = [slow.get("/v1/genres").status_code for _ in range(2)]
    assert codes == [200, 429]
    answers = [slow.get("/v1/genres") for _ in range(6)]
    assert "rate_limited" in {problem(answer)[1] for answer in answers}
    assert slow.get(bad).status_code == 400
    post = slow.request("POST", "/v1/tracks/resolve", content=b"x", headers={"content-type": "text/plain"})
    assert post.status_code == 415


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a13_catalog_paths_are_read_only(api: Api, method: str) -> None:
    for path in READ_PATHS:
        answer = api.request(method, path.partition("?")[0], json={})
        assert answer.status_code == 405, path
        assert "GET" in answer.headers["allow"]


def test_a13_nothing_of_artwork_previews_lyrics_or_audio_features(api: Api) -> None:
    document = api.get("/v1/openapi.json", key=None).json()
    members = {name for schema in document["components"]["schemas"].values() for name in schema.get("properties", {})}
    assert not members & {"artwork", "image", "cover", "preview", "preview_url", "lyrics", "bpm", "tempo", "mood", "energy", "danceability"}


def test_a14_dates_are_whole_and_say_how_much_of_them_is_known(api: Api) -> None:
    dates = {number: api.ask(f"/v1/tracks/{number}")["releases"][0] for number in (14, 15, 16, 18)}
    shown = {number: (one["release_date"], one["release_date_precision"]) for number, one in dates.items()}
    assert shown == {14: ("1999-01-01", "year"), 15: ("1999-05-01", "month"), 16: ("1999-01-02", "day"), 18: (None, None)}
    in_1999 = [track["id"] for track in api.ask("/v1/tracks/browse", year=1999)["results"]]
    assert in_1999 == [15, 16, 14], "dates known to the month or year come behind the full dates of that period"
    made = api.post("/v1/tracks/1/suggestions", {"field": "genre", "value": "House"}).json()
    assert TIMESTAMP.fullmatch(made["created_at"])


def test_a15_no_cross_origin_headers_and_every_answer_has_its_id(api: Api) -> None:
    for path in ("/v1/genres", "/v1/nothing", "/v1/tracks/abc", "/v1/openapi.json"):
        answer = api.get(path, headers={"origin": "https://example.org"})
        assert not [name for name in answer.headers if name.startswith("access-control")]
    preflight = api.request("OPTIONS", "/v1/genres", headers={"origin": "https://example.org", "access-control-request-method": "GET"})
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    assert problem(preflight)[0] == 405
    for mine in ("mine-1", "5f0c7b8e-3b1d-4d0e-9b1a-0d5a8c2b1e77", "Root=1-67891233-abcdef012345678912345678", "a/b+c=="):
        assert api.get("/v1/genres", headers={"x-request-id": mine}).headers["x-request-id"] == mine
    made = api.get("/v1/nothing", headers={"x-request-id": "bad id {}"})
    assert made.headers["x-request-id"] == made.json()["request_id"] != "bad id {}"


@pytest.mark.parametrize("path", READ_PATHS)
def test_a16_answers_about_the_catalog_name_their_build_in_a_header_only(api: Api, path: str) -> None:
    answer = api.get(path)
    build = answer.headers["x-catalog-build"]
    assert build == api.ask("/v1/changes", since="first")["build"]
    held = api.get(path, headers={"if-none-match": answer.headers["etag"]})
    assert (held.status_code, held.headers["x-catalog-build"]) == (304, build)
    assert api.get("/v1/tracks/99999999").headers["x-catalog-build"] == build, "an unknown id is an answer of that build too"


def test_a16_answers_have_strong_tags_and_a_held_answer_is_304(api: Api) -> None:
    for path in READ_PATHS:
        answer = api.get(path)
        tag = answer.headers["etag"]
        assert re.fullmatch(r'"[^"]+"', tag), path
        assert "cache-control" in answer.headers
        for held in (tag, f'"other", {tag}', f"W/{tag}", "*"):
            unchanged = api.get(path, headers={"if-none-match": held})
            assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", tag), (path, held)
        assert api.get(path, headers={"if-none-match": '"other"'}).status_code == 200
    assert api.get("/v1/genres").headers["cache-control"] == "max-age=86400"
    lines = [("x-api-key", api.key), ("if-none-match", '"other"'), ("if-none-match", tag)]
    assert api.http.get(f"{api.base}{READ_PATHS[-1]}", headers=lines).status_code == 304
    assert api.get("/v1/tracks/1").headers["vary"] == "x-api-key, accept-encoding"
    merged = api.get(f"/v1/tracks/{MERGED}", headers={"if-none-match": api.get("/v1/tracks/1").headers["etag"]})
    assert (merged.status_code, merged.headers["content-location"]) == (304, "/v1/tracks/1")


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("zstd", "zstd"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("GZIP;q=0.5, zstd;q=0.1", "gzip"),
        ("*", "zstd"),
        ("zstd;q=0, *", "gzip"),
        ("identity", None),
        ("", None),
        ("br", None),
        ("gzip;q=0", None),
        ("gzip;q=x", None),
        ("gzip;q=0.5, identity", None),
    ],
)
def test_a2_large_answers_come_in_the_coding_that_the_client_takes(api: Api, accepted: str, coding: str | None) -> None:
    path = "/v1/genres"
    plain = api.get(path, headers={"accept-encoding": "identity"})
    with api.http.stream("GET", api.base + path, headers={"x-api-key": api.key, "accept-encoding": accepted}) as answer:
        sent = b"".join(answer.iter_raw())
    assert answer.headers.get("content-encoding") == coding
    assert int(answer.headers["content-length"]) == len(sent)
    decode = {None: bytes, "gzip": gzip.decompress, "zstd": lambda content: zstandard.ZstdDecompressor().decompress(content)}[coding]
    assert decode(sent) == plain.content
    assert "accept-encoding" in answer.headers["vary"]
    assert "accept-encoding" in plain.headers["vary"]
    if coding is not None:
        assert len(sent) < len(plain.content) / 2
        assert answer.headers["etag"] == plain.headers["etag"][:-1] + f'-{coding}"'
    for held in (plain.headers["etag"], answer.headers["etag"]):
        unchanged = api.get(path, headers={"if-none-match": held, "accept-encoding": accepted})
        assert (unchanged.status_code, unchanged.headers["etag"]) == (304, held)


@pytest.mark.parametrize("path", ["/v1/tracks/19", "/healthz", "/v1/openapi.json", "/v1/docs"])
def test_a2_small_answers_are_sent_as_they_are_and_documentation_is_compressed(api: Api, path: str) -> None:
    answer = api.get(path, headers={"accept-encoding": "gzip"})
    is_large = path.startswith(("/v1/openapi", "/v1/docs"))
    assert answer.headers.get("content-encoding") == ("gzip" if is_large else None)
    assert ("accept-encoding" in answer.headers.get("vary", "")) == (is_large or path.startswith("/v1/tracks"))


def test_a17_the_changelog_lists_changes_and_deprecations_carry_their_headers(api: Api) -> None:
    changes = api.get("/v1/changelog", key=None).json()["changes"]
    assert changes
    assert all(set(one) >= {"date", "kind", "path", "note"} for one in changes)
    leaving = InterfaceChange("2027-01-01", "deprecated", "/v1/old", "Use /v1/new.", "2027-07-01", "https://example.org/new")
    headers = build_deprecation_headers((leaving,), "/v1/old")
    assert headers == {
        "deprecation": "@1798761600",
        "sunset": "Thu, 01 Jul 2027 00:00:00 GMT",
        "link": '<https://example.org/new>; rel="deprecation"',
    }
    assert build_deprecation_headers((leaving,), "/v1/new") == {}


def test_a17_every_answer_of_a_deprecated_route_has_the_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_declaration, "CHANGES", (InterfaceChange("2027-01-01", "deprecated", "/v1/old", "Use /v1/new."),))

    @route_declaration.get_route("/v1/old", GenreTree, tag="Genres", summary="Leaving")
    def leaving(_asked: ParameterValues) -> Question:
        return Lookup(lambda _catalog, _service: Answer(b"{}"))

    caller = Caller(1, 1, load_plans().find_plan("free"), has_card=False)
    question = leaving.fn({"headers": [], "query_string": b"", "path_params": {}, "state": {"caller": caller}})
    assert question.route_headers == {"deprecation": "@1798761600"}
    [route] = route_declaration.list_declared_routes([leaving])
    assert build_description([route], load_plans())["paths"]["/v1/old"]["get"]["deprecated"]
