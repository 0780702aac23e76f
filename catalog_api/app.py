"""Assemble the application. A request passes tracking, the dashboard or the API, authentication, the fast routes, the framework."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path

from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.types import ASGIApp

from account_store.accounts import Accounts
from account_store.rate_limits import RateLimiter, open_buckets
from catalog_api.airplay.day_packing import keep_days_packed, pack_days_at_start
from catalog_api.airplay.name_preload import preload_names
from catalog_api.announcements import announce_snapshots
from catalog_api.dashboard.site import SiteRouter, build_context, build_dashboard
from catalog_api.genre_names import GenreNames
from catalog_api.live_catalog import LiveCatalog
from catalog_api.live_description import LiveDescription
from catalog_api.middleware.authentication import ApiKeyAuthentication
from catalog_api.middleware.fast_routes import FastRoutes
from catalog_api.middleware.request_tracking import RequestTracking
from catalog_api.middleware.unknown_key_limit import UnknownKeyLimit
from catalog_api.past_catalogs import PastCatalogs
from catalog_api.problems import render_problem
from catalog_api.recognition import Recognition
from catalog_api.request_log_writer import RequestLogWriter
from catalog_api.routes import ROUTES
from catalog_api.server.request_statistics import REPORTS_FOLDER, RequestStatistics
from catalog_api.service import Service
from catalog_api.settings import ApiSettings
from outbound_http import Outbound, read_allow_list

PeriodicTasks = Callable[[RequestStatistics, LiveCatalog], AbstractAsyncContextManager[None]]
"""A block around the life of the application: tasks that run beside the requests."""


def build_app(
    settings: ApiSettings, statistics: RequestStatistics, run_periodic_tasks: PeriodicTasks = lambda _statistics, _live: nullcontext()
) -> ASGIApp:
    """Build the ASGI application for one catalog and one account store; `statistics` records every request."""
    accounts = Accounts.open(settings.accounts_url)
    request_log = RequestLogWriter(accounts.requests)
    folder = Path(os.environ[REPORTS_FOLDER]) if os.environ.get(REPORTS_FOLDER) else None
    live = LiveCatalog(
        settings.catalog,
        verify_contents=settings.verify_contents,
        look_seconds=settings.look_seconds,
        last_served=folder and folder / "last-served-snapshot",
    )
    limiter = RateLimiter.open(settings.rate_limits_url, folder)
    unknown_keys = UnknownKeyLimit(open_buckets(folder, "key_guesses"), settings.unknown_keys_per_minute, settings.client_address_header)
    describe = LiveDescription(ROUTES, accounts.plans).describe
    recognition = Recognition(settings, live)
    past = PastCatalogs(settings.catalog, live)
    outbound = Outbound(read_allow_list(os.environ))
    service = Service(live, accounts, limiter, outbound, settings, describe, GenreNames(), recognition, past)

    @asynccontextmanager
    async def run_lifespan(_app: Litestar) -> AsyncIterator[None]:
        # A worker accepts requests only once it can answer them; other workers serve meanwhile.
        await asyncio.to_thread(live.look)
        live.follow()
        await pack_days_at_start(accounts)
        packing = asyncio.create_task(keep_days_packed(accounts))
        announcing = announce_snapshots(live, accounts, settings.look_seconds)
        async with request_log.run(), preload_names(service), run_periodic_tasks(statistics, live), announcing:
            yield
        packing.cancel()
        context.close()
        await recognition.close()
        live.close()
        past.close()
        service.fixed.close()
        await unknown_keys.close()
        await limiter.close()
        # Last: the parts above may still use the database.
        accounts.close()

    routes = Litestar(
        route_handlers=ROUTES,
        exception_handlers={Exception: _render_error},
        lifespan=[run_lifespan],
        openapi_config=None,  # description.py generates the document from the declarations of the routes
        logging_config=None,
        state=State({"service": service}),
    )
    fast_routes = FastRoutes(routes, ROUTES)
    # `fast_routes`, not `api`: the dashboard signs people in itself and names the key as which it calls /v1.
    context = build_context(service, fast_routes)
    api = ApiKeyAuthentication(fast_routes, accounts.keys, ROUTES, unknown_keys, settings.client_address_header)
    return RequestTracking(SiteRouter(api, build_dashboard(context)) if settings.dashboard else api, statistics, request_log)


def _render_error(request: Request[object, object, State], error: Exception) -> Response[bytes]:
    answer = render_problem(request.scope, error)
    return Response(answer.body, status_code=answer.status, media_type=answer.media_type, headers=answer.headers)
