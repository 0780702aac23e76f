"""A short way to the routes that are asked most: GET routes whose path is fixed, or fixed but for its last part.

The framework's own dispatch costs more than the whole lookup behind it (docs/design/decisions/0012). This layer finds the route in a
dictionary and asks the very same handler; everything it does not know, or that is not simple, goes to the framework. What must not live
here: anything that makes an answer different from the framework's way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litestar.enums import ScopeType

from catalog_api.problems import problem
from catalog_api.route_declaration import ROUTE, Route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from litestar import Litestar
    from litestar.handlers import HTTPRouteHandler
    from litestar.types import Receive, Scope, Send


class ExpressLane:
    """In front of `routes`; `handlers` are the ones registered there."""

    def __init__(self, routes: Litestar, handlers: Iterable[HTTPRouteHandler]) -> None:
        """Find out which handlers can be asked directly: GET, declared, without layers of their own."""
        self._routes = routes
        self._whole: dict[str, Callable[..., Any]] = {}
        self._by_folder: dict[str, tuple[str, str, Callable[..., Any]]] = {}
        every = list(handlers)
        # A fixed path, or a part of one, is never taken for a value, whatever its method (contract C9).
        fixed = [path.partition("{")[0].rstrip("/").split("/") for handler in every for path in handler.paths]
        self._fixed = frozenset("/".join(parts[:length]) for parts in fixed for length in range(1, len(parts) + 1))
        for handler in every:
            route: Route | None = handler.opt.get(ROUTE)
            if route is None or route.method != "GET" or handler.middleware:
                continue
            folder, _, last = route.path.rpartition("/")
            if "{" not in route.path:
                self._whole[route.path] = handler.fn
            elif "{" not in folder:
                self._by_folder[folder] = (last.strip("{}").partition(":")[0], route.path, handler.fn)

    @property
    def paths(self) -> set[str]:
        """The paths that are answered here."""
        return {*self._whole, *(template for _, template, _ in self._by_folder.values())}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask the handler, or leave the request to the framework."""
        ask = self._found(scope) if scope["type"] == ScopeType.HTTP and scope["method"] == "GET" else None
        if ask is None:
            await self._routes(scope, receive, send)
            return
        try:
            answer = ask(scope)
        except Exception as error:  # noqa: BLE001 - told in the one form, as the framework's error handler does
            answer = problem(scope, error)
        await answer(scope, receive, send)

    def _found(self, scope: Any) -> Callable[..., Any] | None:  # noqa: ANN401 - an HTTP scope
        path = scope["path"]
        ask = self._whole.get(path)
        if ask is not None:
            scope["path_params"] = {}
        else:
            folder, _, value = path.rpartition("/")
            known = self._by_folder.get(folder)
            if known is None or not value or path in self._fixed:
                return None
            name, _, ask = known
            scope["path_params"] = {name: value}
        scope["litestar_app"] = self._routes
        return ask
