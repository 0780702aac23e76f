"""Applications to compare the server with: a minimal one, ours without metering, and ours without the key check too.

They are served like ours (same uvicorn, same protocol, same housekeeping); `benchmarks.http` starts them.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self, cast

from litestar import Litestar, Response, get

from account_store.accounts import Accounts
from account_store.api_keys import Caller
from account_store.ledger.operations import Charge
from account_store.plans import Plan
from account_store.rate_limits import Allowance
from catalog_api import app as application
from catalog_api.server import worker_process

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Send

    from account_store.ledger import Ledger

BODY = b'{"hello":"world"}'
_PLAN = Plan("bare", 1, Decimal(1), Decimal(1), 1, 1, frozenset())
_CALLER = Caller(1, 1, _PLAN, has_card=False)
_ALLOWANCE = Allowance(is_allowed=True, requests_per_second=1, burst=1, remaining=1, retry_after=0, full_after=0.0)
_CHARGE = Charge(1, 1, 1, 1, 2, "2026-01-01")


async def answer_hello(scope: Any, _receive: Receive, send: Send) -> None:  # noqa: ANN401 - an ASGI scope
    """Answer hello world without a framework: the cost of the server itself."""
    if scope["type"] == "http":
        headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(BODY))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": BODY, "more_body": False})


def create_hello_framework() -> Litestar:
    """Create hello world as a route of the framework."""

    @get("/hello/{name:str}", sync_to_thread=False)
    def greet(name: str) -> Response[bytes]:  # noqa: ARG001 - read, as the code of a track is
        return Response(BODY, media_type="application/json; charset=utf-8")

    return Litestar([greet], openapi_config=None, logging_config=None)


class _Unchecked:
    """Replaces the key check."""

    def __init__(self, app: Any, *_: object) -> None:  # noqa: ANN401 - the layer behind
        self._app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401 - an ASGI scope
        scope["state"]["caller"] = _CALLER
        await self._app(scope, receive, send)


class _Uncounted:
    """Replaces the rate limiter and the ledger."""

    @classmethod
    def open(cls, *_: object) -> Self:
        return cls()

    async def take(self, _caller: Caller) -> Allowance:
        return _ALLOWANCE

    def charge(self, *_: object, **__: object) -> asyncio.Future[Charge]:
        done = asyncio.get_running_loop().create_future()
        done.set_result(_CHARGE)
        return done

    def close(self) -> None:
        pass


class _UncountedAccounts(Accounts):
    """Accounts whose ledger books nothing."""

    @classmethod
    def open(cls, url: str, **options: Any) -> Self:  # noqa: ANN401 - handed on
        accounts = super().open(url, **options)
        accounts.ledger.close()
        accounts.ledger = cast("Ledger", _Uncounted())
        return accounts


def create_checked_app() -> ASGIApp:
    """Create our application without metering."""
    parts: Any = application
    parts.Accounts, parts.RateLimiter = _UncountedAccounts, _Uncounted
    return worker_process.build_application()


def create_unmetered_app() -> ASGIApp:
    """Create our application without metering and key check."""
    parts: Any = application
    parts.ApiKeyAuthentication = _Unchecked
    return create_checked_app()
