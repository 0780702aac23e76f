"""Requests of the dashboard to /v1, in this process, as one of the account's own keys.

So a search from a page runs the same code as one over the API. It is limited, charged and refused in the same way, and appears in the usage
of that key. Out of scope: any single request.
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
from account_store.clock import read_utc_time
from account_store.errors import UnknownError

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Message

    from account_store.accounts import Accounts

_LARGEST_ID = 2**31 - 1


class RequestRefusedError(Exception):
    """/v1 refused a request that a page cannot do without."""

    def __init__(self, answer: ApiResponse) -> None:
        """`answer` says why."""
        super().__init__(answer.document["detail"])
        self.answer = answer


@dataclass(frozen=True)
class ApiResponse:
    """The response of /v1 that a caller would have got."""

    status: int
    headers: Mapping[str, str]
    document: Any

    @property
    def is_ok(self) -> bool:
        """Return whether the status is 200."""
        return self.status == HTTPStatus.OK

    def raise_if_refused(self) -> ApiResponse:
        """Return itself; RequestRefusedError when it is not a 200."""
        if not self.is_ok:
            raise RequestRefusedError(self)
        return self

    @property
    def problems(self) -> dict[str, str]:
        """Return the messages by parameter."""
        return {one["name"]: one["message"] for one in self.document.get("errors", [])}


def find_caller(accounts: Accounts, account_id: int) -> tuple[Caller, KeySummary] | None:
    """Return the caller of the account's newest live key, preferably one that was not rotated; None without a live key. Blocks.

    A signed-in user has all rights, whatever the scopes of the key. Test keys do not count.
    """
    summaries = [one for one in find_live_keys(accounts, account_id) if not one.rights.is_test]
    if not summaries:
        return None
    # A rotated key may end before the page is read.
    key = max(summaries, key=lambda one: (one.revoked_at is None, one.key_id))
    owner = accounts.get(account_id)
    return Caller(account_id, key.key_id, owner.plan, owner.has_card), key


def find_live_keys(accounts: Accounts, account_id: int) -> list[KeySummary]:
    """Return the account's valid keys, oldest first. Blocks."""
    now = read_utc_time()
    return [one for one in accounts.keys.list_summaries(account_id) if one.is_live(now)]


def check_path_segment(text: str) -> str:
    """Return an id from a page's path for a path of `/v1`. NotFoundException when it has other characters: it could lead elsewhere."""
    if not text.isascii() or not text.replace("-", "").isalnum():
        raise NotFoundException("The account has nothing under this id.")
    return text


def check_number(number: int) -> int:
    """Return the number of a key or person from a page's path; UnknownError when no row can have it."""
    # PostgreSQL raises an error for a number beyond the column's type, where SQLite finds nothing.
    if not 0 < number <= _LARGEST_ID:
        raise UnknownError
    return number


async def send_request(
    api: ASGIApp,
    caller: Caller,
    path: str,
    query: Mapping[str, str | int] | None = None,
    *,
    body: object = None,
    method: str = "",
    idempotency_key: str = "",
    state: dict[str, Any],
) -> ApiResponse:
    """Send a GET to `path` of /v1, or a POST when there is a `body`, unless `method` says otherwise.

    `state` is that of the visitor's request; the charge is recorded there.
    """
    headers = [(b"content-type", b"application/json")] if body is not None else []
    if idempotency_key:
        headers.append((b"idempotency-key", idempotency_key.encode("latin-1", "replace")))
    # Not the visitor's state: the inner request would overwrite the route and the code that tracking records.
    own = {"caller": caller, "request_id": state.get("request_id", ""), "actor": state.get("actor", "")}
    # Complete enough for the layers below authentication; there is no connection behind it.
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
    # The log and the counts of the visitor's request show who caused the charge.
    state["caller"] = caller
    state["credits"] = state.get("credits", 0) + own.get("credits", 0)
    start = sent[0]
    answered = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]}
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return ApiResponse(start["status"], answered, msgspec.json.decode(content or b"null"))
