"""Tests of the dashboard's settings, and of the pages that visitors see after a fault.

The whole application runs in this process.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import select

from account_store.accounts import Accounts
from account_store.errors import UnavailableError
from account_store.schema import sign_in_failure
from account_store.usage import Usage
from catalog_api.app import build_app
from catalog_api.server.request_statistics import RequestStatistics
from catalog_api.settings import ApiSettings
from tests.catalog_api.dashboard.conftest import new_user, token_of
from tests.migrated_databases import make_migrated_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
def accounts_url(tmp_path: Path) -> str:
    return make_migrated_file(tmp_path)


@asynccontextmanager
async def running(settings: ApiSettings) -> AsyncIterator[httpx.AsyncClient]:
    app = build_app(settings, RequestStatistics())
    to_app: asyncio.Queue[Any] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()
    life = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, to_app.get, from_app.put))  # type: ignore[arg-type]
    await to_app.put({"type": "lifespan.startup"})
    await from_app.get()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://catalog.example.org") as client:  # type: ignore[arg-type]
        yield client
    await to_app.put({"type": "lifespan.shutdown"})
    await life


def test_sign_up_can_be_switched_off(tmp_path: Path, accounts_url: str) -> None:
    async def scene() -> None:
        async with running(ApiSettings(catalog=tmp_path, accounts_url=accounts_url, dashboard_sign_up=False)) as client:
            page = await client.get("/dashboard/sign-in")
            assert "Sign up" not in page.text
            form = {"form_token": token_of(page.text), "email": "new@example.org", "password": "p" * 12}
            assert "switched off" in (await client.get("/dashboard/sign-up")).text
            assert (await client.post("/dashboard/sign-up", data=form)).status_code == 403

    asyncio.run(scene())
    with closing(Accounts.open(accounts_url)) as accounts:
        assert accounts.list_all() == []


def test_the_dashboard_can_be_switched_off(tmp_path: Path, accounts_url: str) -> None:
    async def scene() -> None:
        async with running(ApiSettings(catalog=tmp_path, accounts_url=accounts_url, dashboard=False)) as client:
            for path in ("/", "/dashboard", "/dashboard/sign-in"):
                assert (await client.get(path)).status_code == 401

    asyncio.run(scene())


def test_origin_and_client_address_with_a_load_balancer_are_the_configured_ones(tmp_path: Path, accounts_url: str) -> None:
    settings = ApiSettings(
        catalog=tmp_path,
        accounts_url=accounts_url,
        dashboard_origin="https://catalog.example.org",
        client_address_header="X-Forwarded-For",
    )

    async def scene() -> None:
        async with running(settings) as client:
            page = await client.get("/dashboard/sign-in")
            cookie = page.headers["set-cookie"]
            assert cookie.startswith("__Host-dashboard=")
            assert "Secure" in cookie
            form = {"form_token": token_of(page.text), "email": "a@example.org", "password": "wrong password"}
            headers = {"cookie": cookie.partition(";")[0], "x-forwarded-for": "198.51.100.7, 203.0.113.9"}
            for origin, status in (("https://catalog.example.org", 401), ("http://catalog.example.org", 403), ("https://example.org", 403)):
                answer = await client.post("/dashboard/sign-in", data=form, headers={**headers, "origin": origin})
                assert answer.status_code == status, origin

    asyncio.run(scene())
    with closing(Accounts.open(accounts_url)) as accounts, accounts.engine.connect() as connection:
        assert set(connection.scalars(select(sign_in_failure.c.subject))) == {"email:a@example.org", "address:203.0.113.9"}


@pytest.mark.parametrize(("error", "status"), [(RuntimeError("a secret detail"), 500), (UnavailableError("a secret detail"), 503)])
def test_internal_error_is_a_page_without_details(
    tmp_path: Path, accounts_url: str, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(Usage, "read_month_now", broken)
    with closing(Accounts.open(accounts_url)) as accounts:
        user, token = new_user(accounts)

    async def scene() -> None:
        async with running(ApiSettings(catalog=tmp_path, accounts_url=accounts_url)) as client:
            answer = await client.get("/dashboard", headers={"cookie": f"dashboard={token}"})
            assert answer.status_code == status
            assert answer.headers["x-request-id"] in answer.text
            assert user.email in answer.text
            assert "secret" not in answer.text
            assert "Traceback" not in answer.text

    asyncio.run(scene())
