"""Requests and answers as HTTP messages: what both clients share."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import httpx
import msgspec

from music_catalog.errors import ApiError, NotFoundError
from music_catalog.generated.types import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from music_catalog.operation import Content, Operation, T

PART_BYTES = 256 * 1024
TIMEOUT = httpx.Timeout(60.0, connect=10.0)
USER_AGENT = "music-catalog-client/1.0.0"


def build_headers(key: str) -> dict[str, str]:
    """Return the headers of every request."""
    return {"x-api-key": key, "user-agent": USER_AGENT}


def build_request(
    operation: Operation[Any],
    path: Mapping[str, Any] | None,
    query: Mapping[str, Any] | None,
    body: Mapping[str, Any] | None,
    idempotency_key: str | None,
) -> dict[str, Any]:
    """Return the arguments of `httpx.Client.request`, except content. A key is made where a repeat needs one."""
    names = {name: quote(str(value), safe="") for name, value in (path or {}).items()}
    request: dict[str, Any] = {"method": operation.method, "url": operation.path.format(**names), "headers": {}}
    if query:
        request["params"] = {name: _write(value) for name, value in query.items() if value is not None}
    if body is not None:
        request["json"] = {name: value for name, value in body.items() if value is not None}
    if operation.takes_key:
        request["headers"]["idempotency-key"] = idempotency_key or str(uuid.uuid4())
    return request


def _write(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def build_upload_headers(content: Content, media_type: str | None) -> dict[str, str]:
    """Return the headers of an upload. The size is announced where it is known, so that a refusal comes before the bytes."""
    headers = {"content-type": media_type or "application/octet-stream"}
    if isinstance(content, Path):
        headers["content-length"] = str(content.stat().st_size)
    return headers


def read_parts(content: Content) -> Iterator[bytes]:
    """Yield the parts of an upload, from its beginning."""
    if isinstance(content, bytes):
        yield content
    elif isinstance(content, Path):
        with content.open("rb") as file:
            while part := file.read(PART_BYTES):
                yield part
    else:
        yield from content()


async def read_parts_async(content: Content) -> AsyncIterator[bytes]:
    """Yield the parts of an upload. Reading a part of a local file takes less time than a switch of threads."""
    for part in read_parts(content):
        yield part


def decode_answer(operation: Operation[T], answer: httpx.Response) -> T:
    """Return the decoded body of a good answer."""
    if operation.answer is bytes:
        return cast("T", answer.content)
    return msgspec.json.decode(answer.content, type=operation.answer)


def read_retry_after(answer: httpx.Response) -> float | None:
    """Return the seconds that the server asks to wait."""
    try:
        return float(answer.headers.get("retry-after", ""))
    except ValueError:
        return None


def build_error(answer: httpx.Response) -> ApiError:
    """Return the error of an answer that is not 2xx."""
    try:
        problem = msgspec.json.decode(answer.content, type=Problem)
        code, detail, errors = problem.code, problem.detail, problem.errors
    except msgspec.MsgspecError:
        # A proxy between us answered.
        code, detail, errors = "unknown", answer.text[:200], []
    kind = NotFoundError if answer.status_code == httpx.codes.NOT_FOUND else ApiError
    request_id, wait = answer.headers.get("x-request-id"), read_retry_after(answer)
    return kind(answer.status_code, code, detail, errors=errors, request_id=request_id, retry_after=wait)
