"""Call the handlers of frequent GET routes directly: paths that are fixed, or fixed except for their last part.

The framework's dispatch costs more than a lookup (docs/design/decisions/0012; docs/benchmarks/http_server.md has the ratio). This layer
finds the handler in a dictionary and leaves every other request to the framework. Out of scope: anything that makes an answer
different from the framework's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litestar.enums import ScopeType

from catalog_api.problems import render_problem
from catalog_api.route_declaration import ROUTE, Route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from litestar import Litestar
    from litestar.handlers import HTTPRouteHandler
    from litestar.types import Receive, Scope, Send


class FastRoutes:
    """In front of `routes`; `handlers` are the ones registered there."""

    def __init__(self, routes: Litestar, handlers: Iterable[HTTPRouteHandler]) -> None:
        """Collect the handlers that can be called directly: declared GET routes without middleware of their own."""
        self._routes = routes
        self._by_path: dict[str, Callable[..., Any]] = {}
        self._by_folder: dict[str, tuple[str, str, Callable[..., Any]]] = {}
        """By path without its last part: the parameter's name, the template, the handler."""
        all_handlers = list(handlers)
        # A fixed path, or the beginning of one, is never taken for a value, whatever its method (contract C9).
        fixed = [path.partition("{")[0].rstrip("/").split("/") for handler in all_handlers for path in handler.paths]
        self._fixed = frozenset("/".join(parts[:length]) for parts in fixed for length in range(1, len(parts) + 1))
        for handler in all_handlers:
            route: Route | None = handler.opt.get(ROUTE)
            # Other handlers need what only the framework does: bodies, dependencies, their own middleware.
            if route is None or route.method != "GET" or handler.middleware:
                continue
            folder, _, last = route.path.rpartition("/")
            if "{" not in route.path:
                self._by_path[route.path] = handler.fn
            elif "{" not in folder:
                self._by_folder[folder] = (last.strip("{}").partition(":")[0], route.path, handler.fn)

    @property
    def paths(self) -> set[str]:
        """Return the templates of the routes that are answered here."""
        return {*self._by_path, *(template for _, template, _ in self._by_folder.values())}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the handler, or pass the request to the framework."""
        handle = self._find(scope) if scope["type"] == ScopeType.HTTP and scope["method"] == "GET" else None
        if handle is None:
            await self._routes(scope, receive, send)
            return
        try:
            answer = handle(scope)
        except Exception as error:  # noqa: BLE001 - rendered as the framework's error handler renders it
            answer = render_problem(scope, error)
        await answer(scope, receive, send)

    def _find(self, scope: Any) -> Callable[..., Any] | None:  # noqa: ANN401 - an HTTP scope
        path = scope["path"]
        handle = self._by_path.get(path)
        if handle is not None:
            scope["path_params"] = {}
        else:
            folder, _, value = path.rpartition("/")
            known = self._by_folder.get(folder)
            # A fixed path wins over a value (contract C9).
            if known is None or not value or path in self._fixed:
                return None
            name, _, handle = known
            scope["path_params"] = {name: value}
        # The framework sets this too; questions find the service by it.
        scope["litestar_app"] = self._routes
        return handle
