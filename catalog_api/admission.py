"""Who may ask: the key of every request but those to open paths, and what the account's plan and card allow (contract A3, A4, A8, G1).

The key is asked for before anything else, even whether the path exists; plan and card before parameters and body are looked at. What must
not live here: what a request costs (metering.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from litestar.enums import ScopeType

from account_store.errors import UnavailableError
from catalog_api.problems import ApiError, problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litestar.handlers import HTTPRouteHandler
    from litestar.types import Receive, Scope, Send

    from account_store.api_keys import ApiKeys, Caller
    from catalog_api.express import ExpressLane
    from catalog_api.key_guesses import KeyGuesses

NO_METHOD = "NONE"
"""What the framework is told instead of OPTIONS, which it would answer by itself: keys stay off clients, so no other site's page may ask
(contract A15), and everybody else reads the description."""
_TOLD_AS = {"OPTIONS": NO_METHOD, "HEAD": "GET"}
"""HEAD is asked and charged as GET; the server leaves the body out (RFC 9110, 9.3.2)."""
OPEN_TO_ALL = "open_to_all"
"""Handler option: this route needs no key (documentation, health). Everything else does, unknown paths too."""


class KeyCheck:
    """Around all routes: refuses with 401, or remembers the caller in the request's state."""

    def __init__(self, app: ExpressLane, keys: ApiKeys, handlers: Iterable[HTTPRouteHandler], guesses: KeyGuesses) -> None:
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


def check_plan(scope: Any, feature: str) -> None:  # noqa: ANN401 - an HTTP scope
    """ApiError `plan_required` when the caller's plan does not allow the feature, as the table of plans names it."""
    plan = scope["state"]["caller"].plan
    if not plan.allows(feature):
        raise ApiError("plan_required", f"The plan {plan.name!r} does not include {feature}.")


def check_card(scope: Any) -> None:  # noqa: ANN401 - an HTTP scope
    """ApiError `payment_method_required` when the caller's account has no payment card on file."""
    if not scope["state"]["caller"].has_card:
        raise ApiError("payment_method_required", "The account has no payment card on file; each active stream is paid by the month.")
