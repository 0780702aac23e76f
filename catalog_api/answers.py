"""An answer, ready to send: status, headers and encoded body. It is itself the ASGI application that sends them.

Tracks pass through as they were stored; the hot path decodes and encodes nothing. Out of scope: what an answer says (routes/),
what an error looks like (problems.py), what it costs (credit_prices.py).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from xxhash import xxh3_128_hexdigest

from catalog_api.compression import ACCEPT_ENCODING, CODINGS, LEAST_BYTES, choose_coding, compress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litestar.types import Receive, Scope, Send

JSON = "application/json; charset=utf-8"

REVALIDATE = "private, no-cache"
"""Callers may keep an answer but must revalidate it, which is free while it is current (contract A16)."""
KEEP_ONE_DAY = "max-age=86400"
"""The genre tree is stable for weeks."""
NO_STORE = "no-store"
"""For answers about an account."""


class Answer:
    """One answer. `headers` maps lower-case names to values; Content-Type and Content-Length are added when it is sent."""

    __slots__ = ("body", "headers", "media_type", "status")

    def __init__(self, body: bytes, headers: dict[str, str] | None = None, *, status: int = 200, media_type: str = JSON) -> None:
        """Take a body that is encoded already."""
        self.body = body
        self.headers = headers if headers is not None else {}
        self.status = status
        self.media_type = media_type

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the answer, compressed if it is large and the client takes that."""
        body, fields = self.body, self.headers
        # Not Modified has no body, and must not claim an empty one.
        if self.status != HTTPStatus.NOT_MODIFIED:
            # Problems are small, and the framework sends some of them.
            if len(body) >= LEAST_BYTES and self.status == HTTPStatus.OK:
                body, fields = self._compress(scope)
            fields = fields | {"content-type": self.media_type, "content-length": str(len(body))}
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    def _compress(self, scope: Scope) -> tuple[bytes, dict[str, str]]:
        """Return the body and the headers, in the coding that the request asks for."""
        vary = self.headers.get("vary")
        # Identity varies too: a cache must not give it to everybody.
        fields = (
            self.headers
            if vary and ACCEPT_ENCODING in vary
            else self.headers | {"vary": f"{vary}, {ACCEPT_ENCODING}" if vary else ACCEPT_ENCODING}
        )
        coding = choose_coding(scope["headers"])
        if coding is None:
            return self.body, fields
        coded = {"content-encoding": coding}
        # A strong tag names these very bytes.
        if "etag" in fields:
            coded["etag"] = _add_coding(fields["etag"], coding)
        return compress(self.body, coding), fields | coded


def encode_answer(body: msgspec.Struct) -> Answer:
    """Return a 200 with a wire type."""
    return Answer(msgspec.json.encode(body))


def build_page(items: Sequence[bytes], next_cursor: str | None) -> Answer:
    """Return a 200 with a page of encoded items (contract C2, F2, F4)."""
    return Answer(b'{"results":[%s],"next_cursor":%s}' % (b",".join(items), msgspec.json.encode(next_cursor)))


def build_location_header(path: str, asked_id: int, found_id: int) -> dict[str, str]:
    """Return the header that names the present place of a merged id (contract B16); empty when the id did not change."""
    return {} if asked_id == found_id else {"content-location": f"{path}{found_id}"}


def append_members(body: bytes, members: dict[str, bytes]) -> bytes:
    """Append members to an encoded JSON object; their values are encoded too."""
    if not members:
        return body
    added = b",".join(b'"' + name.encode() + b'":' + value for name, value in members.items())
    # The stored body ends with its closing brace. Decoding it would cost more than the lookup.
    return body[:-1] + (b"," if body != b"{}" else b"") + added + b"}"


def compute_etag(body: bytes) -> str:
    """Return a strong entity tag: equal bodies have equal tags in all builds."""
    # The tag protects no secret, so it needs no cryptographic hash.
    return f'"{xxh3_128_hexdigest(body)}"'


def find_current_tag(if_none_match: str, tag: str, body: bytes, scope: Scope) -> str | None:
    """Return the tag of a 304: the one that an If-None-Match field holds of `body`, in any coding; None when it holds none of them.

    `tag` is that of the body as it is. RFC 9110: weak comparison, `*` matches any.
    """
    if if_none_match.strip() == "*":
        coding = choose_coding(scope["headers"]) if len(body) >= LEAST_BYTES else None
        return tag if coding is None else _add_coding(tag, coding)
    tags = {tag, *(_add_coding(tag, coding) for coding in CODINGS)}
    held = (one.strip().removeprefix("W/") for one in if_none_match.split(","))
    return next((one for one in held if one in tags), None)


def _add_coding(tag: str, coding: str) -> str:
    return f'{tag[:-1]}-{coding}"'
