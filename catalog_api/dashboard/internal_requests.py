"""Questions of the dashboard to /v1: asked in this process, behind the key check, as one of the account's own keys.

So a search from a page runs through the same code as one over the API, is limited, charged and refused alike, and stands in the statement
of the month under that key. What must not live here: any one question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from litestar.exceptions import NotFoundException

from account_store.api_keys import Caller, KeySummary
from account_store.clock import utc_now

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Message

    from account_store.accounts import Accounts


class RefusedError(Exception):
    """/v1 refused a question that a page cannot do without."""

    def __init__(self, told: Told) -> None:
        """`told` says why."""
        super().__init__(told.document["detail"])
        self.told = told


@dataclass(frozen=True)
class Told:
    """An answer of /v1: what a caller would have got."""

    status: int
    headers: Mapping[str, str]
    document: Any

    @property
    def is_ok(self) -> bool:
        """Whether the question was answered."""
        return self.status == HTTPStatus.OK

    def or_refused(self) -> Told:
        """Itself; RefusedError when it is no 200."""
        if not self.is_ok:
            raise RefusedError(self)
        return self

    @property
    def problems(self) -> dict[str, str]:
        """By parameter, what was wrong with it."""
        return {one["name"]: one["message"] for one in self.document.get("errors", [])}


def caller_of(accounts: Accounts, account_id: int) -> tuple[Caller, KeySummary] | None:
    """The caller that the account is by its newest live key, one that was not rotated if there is; None without a live key. Blocks."""
    summaries = live_keys(accounts, account_id)
    if not summaries:
        return None
    key = max(summaries, key=lambda one: (one.revoked_at is None, one.key_id))
    owner = accounts.account(account_id)
    return Caller(account_id, key.key_id, owner.plan, owner.has_card), key


def live_keys(accounts: Accounts, account_id: int) -> list[KeySummary]:
    """The account's keys that are good now, oldest first. Blocks."""
    now = utc_now()
    return [one for one in accounts.keys.summaries(account_id) if one.revoked_at is None or one.revoked_at > now]


def segment(text: str) -> str:
    """An id out of a page's address, for an address of `/v1`. NotFoundException: it is none, and could lead elsewhere."""
    if not text.isascii() or not text.replace("-", "").isalnum():
        raise NotFoundException("There is no such thing of yours.")
    return text


async def ask(
    api: ASGIApp,
    caller: Caller,
    path: str,
    query: Mapping[str, str | int] | None = None,
    *,
    body: object = None,
    method: str = "",
    idempotency_key: str = "",
    state: dict[str, Any],
) -> Told:
    """GET `path` of /v1, or POST when there is a `body`, unless `method` says another.

    `state` is that of the visitor's request: what was charged is noted there.
    """
    headers = [(b"content-type", b"application/json")] if body is not None else []
    if idempotency_key:
        headers.append((b"idempotency-key", idempotency_key.encode("latin-1", "replace")))
    own = {"caller": caller, "request_id": state.get("request_id", "")}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method or ("GET" if body is None else "POST"),
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": urlencode(query or {}).encode(),
        "root_path": "",
        "headers": headers,
        "client": None,
        "server": None,
        "extensions": {},
        "state": own,
    }
    sent: list[Any] = []

    async def receive() -> Any:  # noqa: ANN401 - an ASGI message
        return {"type": "http.request", "body": b"" if body is None else msgspec.json.encode(body), "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await api(scope, receive, send)  # type: ignore[arg-type]
    state["caller"] = caller
    state["credits"] = state.get("credits", 0) + own.get("credits", 0)
    start = sent[0]
    answered = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]}
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return Told(start["status"], answered, msgspec.json.decode(content or b"null"))
