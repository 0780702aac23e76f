"""Puts the application together: routes, key check, error renderer, OpenAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from litestar import Litestar
from litestar.di import Provide
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp

from account_store import Accounts
from catalog_api.handlers.genres import genres
from catalog_api.handlers.iswc import iswcs_of_track, tracks_of_iswc
from catalog_api.handlers.links import links
from catalog_api.handlers.search import search
from catalog_api.handlers.service import alive, error_codes, openapi_document, ready
from catalog_api.handlers.tracks import track_by_id, track_by_isrc
from catalog_api.live_catalog import LiveCatalog
from catalog_api.middleware import KeyCheck, RequestId
from catalog_api.problems import render
from catalog_api.settings import ApiSettings

ROUTES = [search, track_by_isrc, iswcs_of_track, tracks_of_iswc, links, track_by_id, genres, error_codes, openapi_document, alive, ready]

API_VERSION = "1.0.0"
"""Of the machine-readable description (specification, part 9)."""


API_KEY = SecurityScheme(type="apiKey", name="x-api-key", security_scheme_in="header")


def build_app(settings: ApiSettings) -> ASGIApp:
    """The ASGI application for one catalog and one account store."""
    accounts = Accounts.open(settings.accounts_url)
    live = LiveCatalog(settings.catalog)

    @asynccontextmanager
    async def opened(_app: Litestar) -> AsyncIterator[None]:
        live.follow()
        yield
        live.close()
        accounts.close()

    routes = Litestar(
        route_handlers=ROUTES,
        dependencies={
            "catalog": Provide(lambda: live, sync_to_thread=False, use_cache=True),
            "settings": Provide(lambda: settings, sync_to_thread=False, use_cache=True),
        },
        middleware=[KeyCheck(accounts)],
        exception_handlers={Exception: render},
        lifespan=[opened],
        openapi_config=OpenAPIConfig(
            title="Music metadata service",
            version=API_VERSION,
            path="/v1/openapi",  # the framework's own pages, behind the key; the document itself is a route of ours
            render_plugins=[JsonRenderPlugin()],
            components=Components(security_schemes={"apiKey": API_KEY}),
            security=[{"apiKey": []}],
        ),
        logging_config=None,
    )
    return RequestId(routes)
