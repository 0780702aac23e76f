"""The outermost layer of the application: gives a request its id, sees it off, notes how it went.

Around everything, the key check too: whatever is answered has an id and is counted. What must not live here: anything that decides an
answer. What inner layers tell it, they put into `scope["state"]`: `caller`, `route`, `credits` (charged), `code` (of a problem).
"""

from __future__ import annotations

import itertools
import re
import secrets
import time
from typing import TYPE_CHECKING, Any

from litestar.enums import ScopeType

from catalog_api.answers import WHOLE

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from litestar.types import ASGIApp, Receive, Scope, Send

    from catalog_api.server.request_statistics import Traffic

_HARMLESS_ID = re.compile(r"[\w.:/=+@~-]{1,128}", re.ASCII)
"""UUIDs, ULIDs, base64, trace contexts: nothing that means anything in a log, in JSON or in HTML."""
CLIENT_WENT_AWAY = 499
"""Noted as the status of a request that was never answered."""


class Front:
    """Takes the caller's X-Request-Id if it is harmless, else makes one; the answer, the problem document and the log carry it."""

    def __init__(self, app: ASGIApp, traffic: Traffic) -> None:
        """`app` answers the request; `traffic` is told of it."""
        self._app = app
        self._traffic = traffic
        # A random start and a count: unique over processes and restarts, and a tenth of the price of a UUID.
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        identity = self._identify(scope)
        status = CLIENT_WENT_AWAY

        def tagged(message: Any) -> Awaitable[None]:  # noqa: ANN401 - an ASGI message, or the extension's
            nonlocal status
            if message["type"] == WHOLE:
                status = message["status"]
                message["head"] += b"x-request-id: %b\r\n" % identity.encode()
            elif message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", identity.encode())]
            return send(message)

        started = time.perf_counter()
        try:
            await self._app(scope, receive, tagged)
        except Exception:
            status = 500
            raise
        finally:
            self._note(scope, status, started)

    def _identify(self, scope: Any) -> str:  # noqa: ANN401 - an HTTP scope
        """The id of the request, which its state keeps from now on."""
        identity = ""
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                sent = value.decode("latin-1")
                if _HARMLESS_ID.fullmatch(sent):
                    identity = sent
                    break
        identity = identity or f"{self._prefix}-{next(self._numbers):x}"
        scope.setdefault("state", {})["request_id"] = identity
        return identity

    def _note(self, scope: Any, status: int, started: float) -> None:  # noqa: ANN401 - an HTTP scope
        state = scope["state"]
        caller = state.get("caller")
        self._traffic.note(
            route=state.get("route") or scope.get("path_template"),  # the latter by the framework, of routes that are not declared
            method=scope["method"],
            path=scope["path"],
            status=status,
            seconds=time.perf_counter() - started,
            request_id=state["request_id"],
            credits_=state.get("credits", 0),
            code=state.get("code"),
            account=None if caller is None else caller.account_id,
        )
