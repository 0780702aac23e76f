"""Tests of hostile and meaningless requests: an answer in the error form, never a hang, a crash or growing memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.awkward import isrc
from tests.contract.conftest import Api, exchanged, memory_of_servers, problem

if TYPE_CHECKING:
    from collections.abc import Iterator

RESOLVE = "/v1/tracks/resolve"
MEBIBYTE = 2**20
MADE_UP = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(scope="module")
def api(on_sqlite: Api) -> Api:
    return on_sqlite.as_caller()


def send(api: Api, body: bytes, content_type: str = "application/json") -> tuple[int, str, list[str]]:
    return problem(api.request("POST", RESOLVE, content=body, headers={"content-type": content_type}))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"items":' * 50_000,
        b'{"input_type":"isrc","items":["\xff"]}',
        '{"input_type":"isrc","items":["x"]}'.encode("utf-16"),
        b"\xef\xbb\xbf" + b'{"input_type":"isrc","items":["x"]}',
        b'{"input_type":"isrc","items":["\\ud800"]}',
        b'{"input_type":"isrc","input_type":"isrc","items":["x"]}',
        b'{"input_type":"track_name","items":[{"artist":"a","title":"b","artist":"c"}]}',
        b'{"input_type":"isrc","items":["x"]} trailing',
        b'{"input_type":"isrc","items":[NaN]}',
        b'{"input_type":"isrc","items":["\x00"]}',
        b"9" * 10_000,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_malformed_document_is_400(api: Api, body: bytes) -> None:
    assert send(api, body) == (400, "invalid_body", [])


@pytest.mark.parametrize("media_type", ["application/json;charset=utf-16", "multipart/form-data; boundary=x", "application/jsonx", "*/*"])
def test_body_other_than_json_is_415(api: Api, media_type: str) -> None:
    assert send(api, b"{}", media_type) == (415, "unsupported_media_type", [])


def test_a_body_of_100_mib_is_refused_before_it_is_read_and_costs_no_memory(api: Api) -> None:
    before = memory_of_servers(api)
    assert before > 0

    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * MEBIBYTE

    head = f"POST {RESOLVE} HTTP/1.1\r\nhost: x\r\nx-api-key: {api.key}\r\ncontent-type: application/json\r\n"
    assert b" 413 " in exchanged(api, f"{head}content-length: {100 * MEBIBYTE}\r\n\r\n".encode())[:20]
    chunked = api.request("POST", RESOLVE, content=endless(), headers={"content-type": "application/json"})
    assert problem(chunked) == (413, "body_too_large", [])
    assert memory_of_servers(api) - before < 30 * MEBIBYTE
    assert api.get("/v1/genres").status_code == 200


@pytest.mark.parametrize(
    "line",
    [
        b"GET /v1/tracks/\xff\xfe HTTP/1.1",
        b"GET /v1/tracks/%00 HTTP/1.1",
        b"GET /v1/tracks/%2e%2e%2fgenres HTTP/1.1",
        b"GET /v1/tracks/isrc/%F0%9F%8E%B5 HTTP/1.1",
        b"GET /v1/tracks/search?artist=%ff%fe&title=%c3%28 HTTP/1.1",
        b"GET /v1/tracks/search?artist=%00&title=%00 HTTP/1.1",
        b"GET /v1/tracks/search?artist=" + b"a" * 60_000 + b"&title=b HTTP/1.1",
        b"GET /v1/tracks/browse?" + b"&".join(b"a%d=1" % number for number in range(4_000)) + b"&limit=0 HTTP/1.1",
        b"BREW /v1/genres HTTP/1.1",
        b"get /v1/genres HTTP/1.1",
        b"GET http://other.example/v1/tracks/abc HTTP/1.1",
        b"GET * HTTP/1.1",
    ],
    ids=lambda line: line[:40].decode("latin-1"),
)
def test_strange_request_lines_are_answered_with_a_4xx(api: Api, line: bytes) -> None:
    answer = exchanged(api, line + b"\r\nhost: x\r\nconnection: close\r\nx-api-key: " + api.key.encode() + b"\r\n\r\n")
    status = int(answer.split(b" ", 2)[1])
    assert 400 <= status < 500 or (status == 200 and b"%00" in line), answer[:300]


@pytest.mark.parametrize(
    "header",
    [
        ("if-none-match", '"' * 5_000),
        ("prefer", "handling=" * 900),
        ("x-request-id", "é" * 100),
        ("accept", "text/html"),
    ],
)
def test_strange_headers_change_nothing(api: Api, header: tuple[str, str]) -> None:
    answer = api.get("/v1/tracks/1", headers={header[0]: header[1].encode("latin-1")})  # type: ignore[dict-item]
    assert answer.status_code == 200


@MADE_UP
@given(st.text(max_size=200))
def test_made_up_cursors_are_400_everywhere(api: Api, cursor: str) -> None:
    for path, query in (
        ("/v1/tracks/search", {"artist": "a", "title": "b"}),
        ("/v1/tracks/browse", {}),
        ("/v1/tracks/browse", {"randomize": "true"}),
        ("/v1/releases/new", {}),
        ("/v1/artists/1/releases", {}),
        ("/v1/tracks/iswc/T0345246801", {}),
        ("/v1/suggestions", {}),
        ("/v1/changes", {"since": "first"}),
    ):
        status, code, _ = api.refused(path, cursor=cursor.encode("utf-8", "replace"), **query)
        assert (status, code) == (400, "invalid_cursor")


@MADE_UP
@given(st.text(min_size=1, max_size=40))
def test_made_up_codes_and_ids_are_400_or_404(api: Api, text: str) -> None:
    spoken = quote(text.encode("utf-8", "replace"), safe="")
    for path in ("/v1/tracks/isrc/", "/v1/tracks/iswc/", "/v1/tracks/", "/v1/artists/", "/v1/releases/"):
        answer = api.get(path + spoken)
        is_found = text.strip() in {"search", "links", "iswc", "browse", "new"} or text.isdecimal()
        assert answer.status_code in {400, 404, 405} or is_found, text
        if answer.status_code != 200:
            problem(answer)


@MADE_UP
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20) | st.just(isrc(1)),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["artist", "title", "x"]), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(["isrc", "track_name", "catalog_b_id", "store_a_id", "nothing", None, 5]),
)
def test_made_up_batches_are_answered_in_full_or_refused(api: Api, items: object, input_type: object) -> None:
    body = json.dumps({"input_type": input_type, "items": items if isinstance(items, list) else [items]}).encode()
    answer = api.request("POST", RESOLVE, content=body, headers={"content-type": "application/json"})
    if answer.status_code == 200:
        sent = json.loads(body)["items"]
        assert [row["input"] for row in answer.json()["results"]] == sent
    else:
        assert problem(answer)[0] == 400


def test_number_with_a_zero_after_the_point_is_whole(api: Api) -> None:
    made = api.post("/v1/webhooks", {"url": "https://93.184.215.14/hook"}).json()
    for text, status in (("24.0", 200), ("2.4e1", 200), ("24.5", 400), ("1e400", 400)):
        body = b'{"overlap_hours":%s}' % text.encode()
        answer = api.request("POST", f"/v1/webhooks/{made['id']}/rotate", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == status, text
