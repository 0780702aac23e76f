"""The description of `/v1` for the platforms of the open snapshot, as a document for programs and a page for people.

It is built once per set of platforms. Out of scope: the contents of a description (description.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from catalog_api.description import build_description
from catalog_api.reference.reference_page import ReferencePage
from catalog_api.route_declaration import list_declared_routes
from catalog_api.service import Description

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litestar.handlers import HTTPRouteHandler

    from account_store.plans import PlanTable
    from catalog_store.platform_files import Platform


class LiveDescription:
    """The descriptions that this process has built."""

    def __init__(self, handlers: Sequence[HTTPRouteHandler], plans: PlanTable) -> None:
        """`handlers` with declared routes, `plans` for the introduction."""
        self._handlers, self._plans = handlers, plans
        self._built: tuple[tuple[Platform, ...], Description] | None = None

    def describe(self, platforms: Mapping[str, Platform]) -> Description:
        """Return the description for these platforms."""
        wanted = tuple(platforms.values())
        if self._built is None or self._built[0] != wanted:
            document = build_description(list_declared_routes(self._handlers), self._plans, platforms)
            self._built = (wanted, Description(msgspec.json.encode(document), ReferencePage(document, self._handlers).render))
        return self._built[1]
