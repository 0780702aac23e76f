"""Authenticate requests by API key (contract A3, A8).

The key is checked before anything else, even before the path. Only open paths need none. Out of scope: what a plan allows
(entitlements.py), what a request costs (credit_prices.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from litestar.enums import ScopeType

from account_store.errors import UnavailableError
from account_store.key_rights import is_address_allowed
from catalog_api.client_address import find_client_address
from catalog_api.problems import ApiError, render_problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litestar.handlers import HTTPRouteHandler
    from litestar.types import ASGIApp, Receive, Scope, Send

    from account_store.api_keys import ApiKeys, Caller
    from catalog_api.middleware.unknown_key_limit import UnknownKeyLimit

NO_METHOD = "NONE"
"""The framework sees this instead of OPTIONS, which it would answer by itself. No page of another site may call the API, because keys must
not be given to browsers (contract A15); everybody else can read the description."""
_METHOD_SEEN = {"OPTIONS": NO_METHOD, "HEAD": "GET"}
"""HEAD is handled and charged as GET; the server leaves the body out (RFC 9110, 9.3.2)."""
OPEN_TO_ALL = "open_to_all"
"""Handler option: the route needs no key (documentation, health). All others need one, unknown paths included."""


class ApiKeyAuthentication:
    """Around all routes: answer 401, or put the caller into the request's state."""

    def __init__(
        self,
        app: ASGIApp,
        keys: ApiKeys,
        handlers: Iterable[HTTPRouteHandler],
        unknown_keys: UnknownKeyLimit,
        address_header: str = "",
    ) -> None:
        """`handlers` are the routes of `app`. Those with the option OPEN_TO_ALL, and all paths below their parameters, need no key.

        `address_header`: as in `client_address`.
        """
        self._address_header = address_header
        self._app = app
        self._unknown_keys = unknown_keys
        self._keys = keys
        open_paths = [path for handler in handlers if handler.opt.get(OPEN_TO_ALL) for path in handler.paths]
        self._open_paths = frozenset(path for path in open_paths if "{" not in path)
        self._open_folders = tuple(path.partition("{")[0] for path in open_paths if "{" in path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the key."""
        if scope["type"] == ScopeType.HTTP:
            method = _METHOD_SEEN.get(scope["method"])
            if method is not None:
                # A copy: tracking logs the method that the client sent.
                scope = cast("Scope", {**scope, "method": method})
            path = scope["path"]
            if not (path in self._open_paths or (self._open_folders and path.startswith(self._open_folders))):
                try:
                    key = _read_key(scope)
                    # The cache is asked without a coroutine: it knows nearly every key, and awaiting costs as much as the look-up.
                    caller = self._keys.find_cached_caller(key) or await self._find_caller(key, scope)
                    # Most keys may be used from everywhere.
                    if caller.networks:
                        self._check_address(caller, scope)
                except (ApiError, UnavailableError) as error:
                    await render_problem(scope, error)(scope, receive, send)
                    return
                scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)

    async def _find_caller(self, key: str, scope: Scope) -> Caller:
        caller = await self._keys.authenticate(key)
        if caller is None:
            raise self._unknown_keys.refuse(scope)
        return caller

    def _check_address(self, caller: Caller, scope: Scope) -> None:
        """Raise ApiError `address_not_allowed` if the client's address is not one of the key's."""
        address = find_client_address(scope, self._address_header)
        if not is_address_allowed(address, caller.networks):
            raise ApiError("address_not_allowed", f"The key may not be used from {address or 'a Unix socket'}.")


def _read_key(scope: Any) -> str:  # noqa: ANN401 - an HTTP scope
    """Return the first key sent; ApiError `missing_api_key`."""
    # A generator expression would take four times as long as this loop.
    for name, value in scope["headers"]:
        if name == b"x-api-key":
            if value:
                return str(value, "latin-1")
            break
    raise ApiError("missing_api_key", "The x-api-key header is missing.")
