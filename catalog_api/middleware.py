"""What happens around every request, whatever its handler: a request id, the key check, the log line."""

from __future__ import annotations

import re
import time
import uuid
from typing import TYPE_CHECKING, Any

import structlog
from litestar.datastructures import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware

from catalog_api.problems import ApiError

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Message, Receive, Scope, Send

    from account_store import Accounts

log = structlog.get_logger("catalog_api")

OPEN_TO_ALL = "open_to_all"
"""Handler option: this route needs no key (documentation, health)."""

_SAFE_REQUEST_ID = re.compile(r"^[\w.-]{1,64}$")


def header(scope: Scope, name: bytes) -> str | None:
    """The first value of a request header, or None."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


class RequestId:
    """Outermost: takes the caller's X-Request-Id if it is harmless, else makes one; answers and logs carry it.

    Around the whole application, not a middleware of its routes: an unknown path has no route, and its answer has an id all the same.
    """

    def __init__(self, app: ASGIApp) -> None:
        """`app` answers the request."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tag the request, time it, log it. The key never appears in the log."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        sent = header(scope, b"x-request-id") or ""
        identity = sent if _SAFE_REQUEST_ID.match(sent) else str(uuid.uuid4())
        scope.setdefault("state", {})["request_id"] = identity
        started = time.perf_counter()
        status = 500

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableScopeHeaders.from_message(message)["X-Request-Id"] = identity
            await send(message)

        try:
            await self._app(scope, receive, tagged)
        finally:
            milliseconds = round((time.perf_counter() - started) * 1000, 3)
            log.info("request", method=scope["method"], path=scope["path"], status=status, milliseconds=milliseconds, request_id=identity)


class KeyCheck(ASGIMiddleware):
    """Every route but the open ones needs a live key in `x-api-key` (specification, part 5). Runs before parameters are looked at."""

    def __init__(self, accounts: Accounts) -> None:
        """`accounts` knows the keys."""
        self._accounts = accounts

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Refuse with 401, or remember the caller and go on."""
        handler: Any = scope.get("route_handler")
        if scope["type"] == ScopeType.HTTP and not (handler is not None and handler.opt.get(OPEN_TO_ALL)):
            key = header(scope, b"x-api-key")
            if not key:
                raise ApiError("missing_api_key", "The x-api-key header is missing.")
            caller = await self._accounts.keys.authenticate(key)
            if caller is None:
                raise ApiError("invalid_api_key", "The API key is unknown or revoked.")
            scope.setdefault("state", {})["caller"] = caller
        await next_app(scope, receive, send)
