"""An answer, ready to be sent: status, headers and encoded body, itself the ASGI application that sends them.

Tracks pass through as they were stored; nothing on the hot path is decoded or encoded again. What must not live here: what an answer says
(routes/), what an error looks like (problems.py), what it costs (metering.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from xxhash import xxh3_128_hexdigest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litestar.types import Receive, Scope, Send

JSON = "application/json; charset=utf-8"

REVALIDATE = "private, no-cache"
"""Callers may keep an answer and must ask whether it still holds; asking is free while it does (contract A16)."""
ONE_DAY = "max-age=86400"
"""The genre tree is stable for weeks."""
NOT_KEPT = "no-store"
"""Answers about an account."""


class Answer:
    """One answer. `headers` are (lower-case name, value); Content-Type and Content-Length are added when it is sent."""

    __slots__ = ("body", "headers", "media_type", "status")

    def __init__(self, body: bytes, headers: dict[str, str] | None = None, *, status: int = 200, media_type: str = JSON) -> None:
        """`body` is encoded already."""
        self.body = body
        self.headers = headers if headers is not None else {}
        self.status = status
        self.media_type = media_type

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the answer."""
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self._fields().items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})

    def _fields(self) -> dict[str, str]:
        if self.status == 304:  # noqa: PLR2004 - Not Modified has no body, and must not claim an empty one
            return self.headers
        return self.headers | {"content-type": self.media_type, "content-length": str(len(self.body))}


def encoded(body: msgspec.Struct) -> Answer:
    """A 200 with a wire type."""
    return Answer(msgspec.json.encode(body))


def page(items: Sequence[bytes], next_cursor: str | None) -> Answer:
    """A 200 with the items as they are encoded."""
    return Answer(b'{"results":[%s],"next_cursor":%s}' % (b",".join(items), msgspec.json.encode(next_cursor)))


def with_members(body: bytes, members: dict[str, bytes]) -> bytes:
    """A JSON object, encoded, with more members at its end; their values are encoded too."""
    if not members:
        return body
    added = b",".join(b'"' + name.encode() + b'":' + value for name, value in members.items())
    return body[:-1] + (b"," if body != b"{}" else b"") + added + b"}"


def etag(body: bytes) -> str:
    """A strong entity tag: the same body, the same tag, whichever build published it. No secret hangs on it: a quick hash does."""
    return f'"{xxh3_128_hexdigest(body)}"'


def is_current(if_none_match: str, tag: str) -> bool:
    """Whether a caller's If-None-Match holds the tag (RFC 9110: compared weakly, `*` is any)."""
    return if_none_match.strip() == "*" or any(one.strip().removeprefix("W/") == tag for one in if_none_match.split(","))
