"""Authenticate requests by API key (contract A3, A8).

The key is checked before anything else, even before the path. Only open paths need none. What must not live here: what a plan allows
(entitlements.py), what a request costs (metering.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from litestar.enums import ScopeType

from account_store.errors import UnavailableError
from catalog_api.problems import ApiError, problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litestar.handlers import HTTPRouteHandler
    from litestar.types import ASGIApp, Receive, Scope, Send

    from account_store.api_keys import ApiKeys, Caller
    from catalog_api.middleware.unknown_key_limit import KeyGuesses

NO_METHOD = "NONE"
"""What the framework is told instead of OPTIONS, which it would answer by itself: keys stay off clients, so no other site's page may ask
(contract A15), and everybody else reads the description."""
_TOLD_AS = {"OPTIONS": NO_METHOD, "HEAD": "GET"}
"""HEAD is asked and charged as GET; the server leaves the body out (RFC 9110, 9.3.2)."""
OPEN_TO_ALL = "open_to_all"
"""Handler option: this route needs no key (documentation, health). Everything else does, unknown paths too."""


class KeyCheck:
    """Around all routes: refuses with 401, or remembers the caller in the request's state."""

    def __init__(self, app: ASGIApp, keys: ApiKeys, handlers: Iterable[HTTPRouteHandler], guesses: KeyGuesses) -> None:
        """`handlers` are the routes of `app`; those with the option OPEN_TO_ALL, and what lies below their parameters, need no key."""
        self._app = app
        self._guesses = guesses
        self._keys = keys
        open_paths = [path for handler in handlers if handler.opt.get(OPEN_TO_ALL) for path in handler.paths]
        self._open_paths = frozenset(path for path in open_paths if "{" not in path)
        self._open_folders = tuple(path.partition("{")[0] for path in open_paths if "{" in path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the key."""
        if scope["type"] == ScopeType.HTTP:
            told = _TOLD_AS.get(scope["method"])
            if told is not None:
                scope = cast("Scope", {**scope, "method": told})
            path = scope["path"]
            if not (path in self._open_paths or (self._open_folders and path.startswith(self._open_folders))):
                try:
                    key = _key(scope)
                    caller = self._keys.remembered(key) or await self._caller(key, scope)
                except (ApiError, UnavailableError) as error:
                    await problem(scope, error)(scope, receive, send)
                    return
                scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)

    async def _caller(self, key: str, scope: Scope) -> Caller:
        caller = await self._keys.authenticate(key)
        if caller is None:
            raise self._guesses.refusal(scope)
        return caller


def _key(scope: Any) -> str:  # noqa: ANN401 - an HTTP scope
    """The first key sent; ApiError `missing_api_key`. A loop: a generator takes four times as long."""
    for name, value in scope["headers"]:
        if name == b"x-api-key":
            if value:
                return str(value, "latin-1")
            break
    raise ApiError("missing_api_key", "The x-api-key header is missing.")
