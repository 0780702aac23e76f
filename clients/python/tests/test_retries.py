"""Tests of retries, over a transport that answers as told."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from music_catalog import ApiError, AsyncClient, Client, ConnectionFailedError, NotFoundError, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AT_ONCE = RetryPolicy(attempts=3, first_wait=0)
TRACK = {"id": 1, "title": "t", "releases": [], "artists": [], "isrc": None, "duration": None, "genre": [], "subgenre": [], "new member": 1}
RESOLVED = {"results": [], "partial": False, "processed": 0, "credits_used": 0, "credits_remaining": 7, "message": None}
JOB_HEADERS = {"x-credits-remaining": "7"}


def refuse(status: int, code: str, **headers: str) -> httpx.Response:
    problem = {"type": "x", "title": "x", "status": status, "detail": "why", "instance": "/", "code": code, "request_id": "r"}
    return httpx.Response(status, json=problem, headers=headers)


def answer(body: object) -> httpx.Response:
    return httpx.Response(200, json=body, headers=JOB_HEADERS)


class Script:
    """Answers one after the other; the requests that came."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        following = self.answers.pop(0)
        if isinstance(following, Exception):
            raise following
        return following


@pytest.fixture(params=["blocking", "asynchronous"])
def ask(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return a function that calls a method of a client over a script."""

    def call(script: Script, method: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401 - any answer
        if request.param == "blocking":
            with Client("http://catalog", "key", retries=AT_ONCE, transport=httpx.MockTransport(script)) as client:
                return getattr(client, method)(*arguments, **options)

        async def run() -> Any:  # noqa: ANN401 - any answer
            async def handle(sent: httpx.Request) -> httpx.Response:
                await sent.aread()
                return script(sent)

            async with AsyncClient("http://catalog", "key", retries=AT_ONCE, transport=httpx.MockTransport(handle)) as client:
                return await getattr(client, method)(*arguments, **options)

        return asyncio.run(run())

    return call


def test_busy_server_is_asked_again_and_unknown_members_are_ignored(ask: Callable[..., Any]) -> None:
    script = Script(refuse(429, "rate_limited", **{"retry-after": "0"}), refuse(503, "catalog_unavailable"), answer(TRACK))
    assert ask(script, "track_by_id", 1).title == "t"
    assert [str(one.url) for one in script.requests] == ["http://catalog/v1/tracks/1"] * 3
    assert script.requests[0].headers["x-api-key"] == "key"


def test_attempts_end_and_the_error_tells_why(ask: Callable[..., Any]) -> None:
    script = Script(*[refuse(503, "catalog_unavailable") for _ in range(3)])
    with pytest.raises(ApiError) as caught:
        ask(script, "track_by_id", 1)
    assert (caught.value.status, caught.value.code, caught.value.request_id, len(script.requests)) == (503, "catalog_unavailable", None, 3)


def test_spent_credits_and_long_waits_are_not_retried(ask: Callable[..., Any]) -> None:
    for refusal in (refuse(429, "quota_exceeded", **{"retry-after": "1"}), refuse(503, "x", **{"retry-after": "999"})):
        script = Script(refusal)
        with pytest.raises(ApiError):
            ask(script, "track_by_id", 1)
        assert len(script.requests) == 1


def test_broken_connection_is_retried_where_a_repeat_is_safe(ask: Callable[..., Any]) -> None:
    script = Script(httpx.ReadError("gone"), answer(TRACK))
    assert ask(script, "track_by_id", 1).id == 1
    script = Script(httpx.ReadError("gone"), refuse(500, "internal_error"), answer(RESOLVED))
    ask(script, "resolve", input_type="isrc", items=["x"])
    keys = {one.headers["idempotency-key"] for one in script.requests}
    assert (len(script.requests), len(keys)) == (3, 1), "one key for all attempts"


def test_unknown_outcome_of_a_ping_is_not_repeated(ask: Callable[..., Any]) -> None:
    script = Script(httpx.ReadError("gone"))
    with pytest.raises(ConnectionFailedError):
        ask(script, "ping_webhook", "id")
    assert len(script.requests) == 1


def test_not_found_is_an_error_of_its_own_and_an_answer_of_a_proxy_is_one_too(ask: Callable[..., Any]) -> None:
    with pytest.raises(NotFoundError):
        ask(Script(refuse(404, "not_found")), "track_by_isrc", "GBAYE0601498")
    with pytest.raises(ApiError) as caught:
        ask(Script(httpx.Response(403, text="<html>no</html>")), "usage")
    assert caught.value.code == "unknown"


def test_upload_of_a_file_is_sent_from_its_beginning_again(ask: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "clip"
    file.write_bytes(b"sound" * 100_000)
    found = {"matched": False, "results": [], "credits_charged": 11, "reason": "not_found"}
    script = Script(refuse(503, "recognition_unavailable"), answer(found))
    assert ask(script, "identify_file", file).reason == "not_found"
    assert [one.content for one in script.requests] == [file.read_bytes()] * 2
    assert {one.headers["content-length"] for one in script.requests} == {"500000"}


def test_absent_arguments_are_not_sent_and_names_are_escaped(ask: Callable[..., Any]) -> None:
    script = Script(answer({"results": [], "next_cursor": None}), answer(TRACK), answer({"id": "x"} | TRACK))
    ask(script, "browse", genre="Hip Hop & Co", randomize=True)
    assert str(script.requests[0].url) == "http://catalog/v1/tracks/browse?genre=Hip+Hop+%26+Co&randomize=true"
    ask(script, "track_by_isrc", "a/b?c")
    assert script.requests[1].url.raw_path == b"/v1/tracks/isrc/a%2Fb%3Fc"


def test_body_leaves_out_what_was_not_given(ask: Callable[..., Any]) -> None:
    script = Script(refuse(404, "not_found"))
    with pytest.raises(NotFoundError):
        ask(script, "change_webhook", "id", status="enabled")
    assert json.loads(script.requests[0].content) == {"status": "enabled"}


def test_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUSIC_CATALOG_KEY", raising=False)
    with pytest.raises(ValueError, match="MUSIC_CATALOG_KEY"):
        Client("http://catalog")
