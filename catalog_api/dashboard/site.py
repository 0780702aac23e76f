"""Assemble the dashboard: its pages, its files, errors as pages, the policy headers of every answer; and route requests to it or to /v1."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from litestar import Litestar, Request, Response, get
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException, NotFoundException
from litestar.params import FromPath

from account_store.errors import UnavailableError
from catalog_api.answers import Answer
from catalog_api.dashboard import access_pages, account_pages, stream_pages, team_pages, track_pages, usage_pages, webhook_pages
from catalog_api.dashboard.bounded_threads import BoundedThreads, BusyError, TooSlowError
from catalog_api.dashboard.browser_session import (
    HOME,
    VISIT,
    CurrentVisit,
    DashboardContext,
    KeyNeededError,
    SignInNeededError,
    Visit,
    open_visit,
)
from catalog_api.dashboard.internal_requests import RequestRefusedError
from catalog_api.dashboard.page_rendering import POLICY, read_asset, redirect_to, render_page
from catalog_api.problems import CODES, ApiError, read_request_id
from catalog_store.errors import TablesAbsentError, TablesDamagedError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from litestar.types import ASGIApp, Message, Receive, Scope, Send

    from catalog_api.service import Service

log = logging.getLogger("catalog_api")

EVIDENCE_SECONDS = 10.0
_LARGEST_FORM = 32 * 1024
_STYLE, _ICON = read_asset("style.css"), read_asset("icon.svg")
_FOR_A_WHILE = {"cache-control": "max-age=300"}


@get("/style.css", sync_to_thread=False)
def get_style() -> Response[bytes]:
    """Return the style sheet of the pages."""
    return Response(_STYLE, media_type="text/css", headers=_FOR_A_WHILE)


@get("/icon.svg", sync_to_thread=False)
def get_icon() -> Response[bytes]:
    """Return the icon of the browser's tab."""
    return Response(_ICON, media_type="image/svg+xml", headers=_FOR_A_WHILE)


@get("/{rest:path}")
async def answer_unknown_page(visit: CurrentVisit, rest: FromPath[str]) -> Response[Any]:  # noqa: ARG001 - part of the path
    """Answer unknown paths in the style of the other pages."""
    raise NotFoundException("There is no such page.")


PAGES = [
    *account_pages.PAGES,
    *access_pages.PAGES,
    *team_pages.PAGES,
    *usage_pages.PAGES,
    *track_pages.PAGES,
    *stream_pages.PAGES,
    *webhook_pages.PAGES,
    get_style,
    get_icon,
    answer_unknown_page,
]


def build_context(service: Service, api: ASGIApp) -> DashboardContext:
    """Build what the pages work with; `api` answers /v1 behind authentication."""
    return DashboardContext(
        service,
        api,
        BoundedThreads("store", threads=4, waiting=64, seconds=15),
        # A password takes 50 ms of CPU and 64 MB: two at once leave room for /v1.
        BoundedThreads("passwords", threads=2, waiting=16, seconds=15),
        BoundedThreads("tables", threads=1, waiting=3, seconds=EVIDENCE_SECONDS),
        BoundedThreads("mails", threads=1, waiting=64, seconds=120),
    )


def build_dashboard(context: DashboardContext) -> Litestar:
    """Build the application below `/dashboard`."""
    return Litestar(
        route_handlers=PAGES,
        path=HOME,
        dependencies={"visit": Provide(open_visit)},
        exception_handlers={Exception: _render_error},
        openapi_config=None,
        logging_config=None,
        # The framework refuses a larger form with 413 while it arrives.
        request_max_body_size=_LARGEST_FORM,
        state=State({"context": context}),
    )


class SiteRouter:
    """Pass requests to /v1 or to the dashboard. `/` redirects to the dashboard, and all its answers have the policy headers."""

    def __init__(self, api: ASGIApp, pages: ASGIApp) -> None:
        """`api` gets every request that is not the dashboard's."""
        self._api = api
        self._pages = pages

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Route the request. It is not a coroutine: a request to /v1 costs one comparison."""
        path = scope.get("path", "")
        # A slice instead of an index: it is empty at the end of the path. /dashboards is not one of our pages.
        if path.startswith(HOME) and path[len(HOME) :][:1] in {"", "/"}:
            return self._answer_page(scope, receive, send)
        if path == "/":
            return Answer(b"", {"location": HOME}, status=302)(scope, receive, send)
        return self._api(scope, receive, send)

    async def _answer_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Files of the dashboard may be kept; pages must not, because they show data of an account.
                have = {name.lower() for name, _ in message["headers"]}
                policy = POLICY | ({} if b"cache-control" in have else {"cache-control": "no-store"})
                message["headers"] = [*message["headers"], *((name.encode(), value.encode()) for name, value in policy.items())]
            await send(message)

        await self._pages(scope, receive, send_with_policy)


_DETAILS = {405: "This page does not support that method.", 413: "The form is too large."}
_NOT_NOW: dict[type[Exception], tuple[str, str]] = {
    UnavailableError: ("Accounts unavailable", "Accounts cannot be looked up at the moment: try again later."),
    BusyError: ("Busy", "Too many people use this page at the moment: try again in a few seconds."),
    TablesAbsentError: ("No evidence here", "This server holds no tables to read the evidence from."),
    TablesDamagedError: ("No evidence here", "The tables that hold the evidence are damaged on this server."),
    TooSlowError: ("Took too long", "The answer was not ready in time: try again later."),
}


def _render_error(request: Request[Any, Any, State], error: Exception) -> Response[Any]:
    """Render any error as a page. An unexpected one is logged with its trace and shown without."""
    if isinstance(error, SignInNeededError):
        return redirect_to(f"{HOME}/sign-in{_build_next_query(request)}")
    # An error before the visit was opened has no user; its page is rendered for a stranger.
    guest: Visit | None = request.scope["state"].get(VISIT)
    page = render_page if guest is None else guest.render
    if isinstance(error, KeyNeededError):
        return page("no_key.html", HTTPStatus.CONFLICT)
    status, title, detail = _describe_error(request, error)
    return page("error.html", status, number=status, title=title, detail=detail, request_id=read_request_id(request.scope))


def _describe_error(request: Request[Any, Any, State], error: Exception) -> tuple[int, str, str]:
    if isinstance(error, RequestRefusedError):
        return error.answer.status, error.answer.document["title"], error.answer.document["detail"]
    if isinstance(error, ApiError):
        return CODES[error.code].status, CODES[error.code].title, error.detail
    if type(error) in _NOT_NOW:
        return 503, *_NOT_NOW[type(error)]
    if isinstance(error, HTTPException) and error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return error.status_code, HTTPStatus(error.status_code).phrase, _DETAILS.get(error.status_code, error.detail)
    log.error("unhandled error", exc_info=error, extra={"request_id": read_request_id(request.scope)})
    return 500, "Something went wrong", "Our fault. Quote the number below when you report it."


def _build_next_query(request: Request[Any, Any, State]) -> str:
    """Return the query that leads back to the requested page after sign-in."""
    # A form cannot be repeated by a redirect.
    if request.method != "GET" or request.url.path == HOME:
        return ""
    query = request.scope["query_string"].decode("latin-1")
    return "?next=" + quote(request.url.path + (f"?{query}" if query else ""), safe="/")
