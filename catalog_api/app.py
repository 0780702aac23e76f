"""Puts the application together: front (ids, counts, log), doors (dashboard or API), key check, express lane, the framework's routes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import msgspec
from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.types import ASGIApp

from account_store.accounts import Accounts
from account_store.rate_limits import RateLimiter, open_buckets
from catalog_api.airplay.day_packing import keep_settled, settle_first
from catalog_api.airplay.name_preload import names_learned
from catalog_api.announcements import announcing
from catalog_api.dashboard.site import Doors, dashboard, open_desk
from catalog_api.description import description
from catalog_api.genre_names import GenreNames
from catalog_api.live_catalog import LiveCatalog
from catalog_api.middleware.authentication import KeyCheck
from catalog_api.middleware.fast_routes import ExpressLane
from catalog_api.middleware.request_tracking import Front
from catalog_api.middleware.unknown_key_limit import KeyGuesses
from catalog_api.problems import problem
from catalog_api.recognition import Recognition
from catalog_api.reference import reference_page
from catalog_api.route_declaration import declared
from catalog_api.routes import ROUTES
from catalog_api.server.request_statistics import REPORTS_FOLDER, Traffic
from catalog_api.service import Service
from catalog_api.settings import ApiSettings
from outbound_http import Outbound, read_allow_list

Housekeeping = Callable[[Traffic, LiveCatalog], AbstractAsyncContextManager[None]]
"""What goes on beside the requests while the application is up."""


def build_app(settings: ApiSettings, traffic: Traffic, housekeeping: Housekeeping = lambda _traffic, _live: nullcontext()) -> ASGIApp:
    """The ASGI application for one catalog and one account store; `traffic` is told of every request."""
    accounts = Accounts.open(settings.accounts_url)
    document = description(declared(ROUTES), accounts.plans)
    folder = Path(os.environ[REPORTS_FOLDER]) if os.environ.get(REPORTS_FOLDER) else None
    live = LiveCatalog(
        settings.catalog,
        verify_contents=settings.verify_contents,
        look_seconds=settings.look_seconds,
        last_served=folder and folder / "last-served-snapshot",
    )
    limiter = RateLimiter.open(settings.rate_limits_url, folder)
    guesses = KeyGuesses(open_buckets(folder, "key_guesses"), settings.unknown_keys_per_minute, settings.client_address_header)
    encoded = msgspec.json.encode(document)
    recognition = Recognition(settings, live)
    outbound = Outbound(read_allow_list(os.environ))
    service = Service(live, accounts, limiter, outbound, settings, encoded, reference_page(document), GenreNames(), recognition)

    @asynccontextmanager
    async def opened(_app: Litestar) -> AsyncIterator[None]:
        await asyncio.to_thread(live.look)  # a worker takes requests when it can answer them: the others go on meanwhile
        live.follow()
        await settle_first(accounts)
        settling = asyncio.create_task(keep_settled(accounts))
        beside = announcing(live, accounts, settings.look_seconds)
        async with names_learned(service), housekeeping(traffic, live), beside:
            yield
        settling.cancel()
        desk.close()
        await recognition.close()
        live.close()
        await guesses.close()
        await limiter.close()
        accounts.close()

    routes = Litestar(
        route_handlers=ROUTES,
        exception_handlers={Exception: _rendered},
        lifespan=[opened],
        openapi_config=None,  # description.py makes the document out of what the routes declare
        logging_config=None,
        state=State({"service": service}),
    )
    lane = ExpressLane(routes, ROUTES)
    desk = open_desk(service, lane)
    api = KeyCheck(lane, accounts.keys, ROUTES, guesses)
    return Front(Doors(api, dashboard(desk)) if settings.dashboard else api, traffic)


def _rendered(request: Request[object, object, State], error: Exception) -> Response[bytes]:
    answer = problem(request.scope, error)
    return Response(answer.body, status_code=answer.status, media_type=answer.media_type, headers=answer.headers)
