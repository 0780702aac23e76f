"""The outermost layer: give each request an id and record its outcome.

It surrounds authentication too, so every answer has an id and is counted. Out of scope: anything that decides an answer. Inner
layers report through `scope["state"]`: `caller`, `route`, `credits` (charged), `code` (of a problem document).
"""

from __future__ import annotations

import itertools
import re
import secrets
import time
from typing import TYPE_CHECKING, Any

from litestar.enums import ScopeType

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from litestar.types import ASGIApp, Receive, Scope, Send

    from catalog_api.request_log_writer import RequestLogWriter
    from catalog_api.server.request_statistics import RequestStatistics

_HARMLESS_ID = re.compile(r"[\w.:/=+@~-]{1,128}", re.ASCII)
"""UUIDs, ULIDs, base64 and trace contexts, but nothing that has a meaning in a log, in JSON or in HTML."""
CLIENT_CLOSED = 499
"""The recorded status of a request whose client left before the answer."""


class RequestTracking:
    """Take the caller's X-Request-Id if it is harmless, else make one. The answer, the problem document and the log carry it."""

    def __init__(self, app: ASGIApp, statistics: RequestStatistics, log: RequestLogWriter) -> None:
        """`app` answers the requests; `statistics` records all, `log` those of accounts."""
        self._app = app
        self._statistics = statistics
        self._log = log
        # A random prefix and a counter: unique over processes and restarts, at a tenth of the cost of a UUID.
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and record how it ended."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        request_id = self._assign_id(scope)
        status = CLIENT_CLOSED

        def send_with_id(message: Any) -> Awaitable[None]:  # noqa: ANN401 - an ASGI message
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            return send(message)

        started = time.perf_counter()
        try:
            await self._app(scope, receive, send_with_id)
        except Exception:
            # The server answers 500 itself when no answer has begun.
            status = 500
            raise
        finally:
            self._record(scope, status, started)

    def _assign_id(self, scope: Any) -> str:  # noqa: ANN401 - an HTTP scope
        """Return the id of the request and keep it in the state."""
        request_id = ""
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                sent = value.decode("latin-1")
                # An id of another form is replaced, not refused: it is not a reason to fail a request.
                if _HARMLESS_ID.fullmatch(sent):
                    request_id = sent
                    break
        request_id = request_id or f"{self._prefix}-{next(self._numbers):x}"
        scope.setdefault("state", {})["request_id"] = request_id
        return request_id

    def _record(self, scope: Any, status: int, started: float) -> None:  # noqa: ANN401 - an HTTP scope
        state = scope["state"]
        caller = state.get("caller")
        seconds = time.perf_counter() - started
        route = state.get("route") or scope.get("path_template")  # the framework sets the latter for routes that are not declared
        if caller is not None:
            self._log.append(caller, scope["method"], route, status, seconds, state)
        self._statistics.record(
            route=route,
            method=scope["method"],
            path=scope["path"],
            status=status,
            seconds=seconds,
            request_id=state["request_id"],
            credits_=state.get("credits", 0),
            code=state.get("code"),
            account=None if caller is None else caller.account_id,
        )
