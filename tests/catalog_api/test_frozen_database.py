"""Tests of the whole server beside a frozen PostgreSQL: every request is answered, no refusal is charged, service resumes afterwards."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from account_store.accounts import Accounts
from account_store.postgresql import SECONDS_VARIABLE
from tests.account_store.test_frozen_postgresql import FrozenServer, used
from tests.catalog_api.server.test_process_supervisor import FOUND, Served
from tests.catalog_api.test_unwritable_log import editions, place, served_with_log
from tests.postgresql import create_database, shared_server
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["editions", "place"]
ASKED_AT_ONCE = 40


@pytest.fixture
def frozen_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrozenServer]:
    folder = tmp_path_factory.mktemp("frozen")
    with shared_server(folder) as url:
        yield FrozenServer(folder, create_database(url, "served"))


def answer(served: Served, path: str, key: str | None = None) -> tuple[int, str | None, str]:
    """Return the status, Retry-After and body."""
    request = urllib.request.Request(f"http://127.0.0.1:{served.port}{path}", headers={"x-api-key": key} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:  # noqa: S310 - loopback
            return response.status, response.headers["retry-after"], response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["retry-after"], error.read().decode()


@pytest.mark.long
def test_requests_are_refused_with_503_while_the_database_is_frozen_and_nothing_is_charged_for_it(
    place: Path,
    frozen_server: FrozenServer,
) -> None:
    accounts = Accounts.open(frozen_server.url)
    log = place / "server.log"
    settings = {"ACCOUNTS_URL": frozen_server.url, "MATCHER": "false", "WEBHOOKS": "true", "MONITORS": "1", "WORKERS": "1"}
    with (
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor(ASKED_AT_ONCE) as threads,
    ):
        patch.setenv(SECONDS_VARIABLE, "1.5")
        with served_with_log(place, f'2>"{log}"', **settings) as served:
            caller_id = accounts.create("radio", "scale").account_id
            key = accounts.keys.create(caller_id).key
            caller = accounts.keys.find_caller(key)
            assert caller is not None
            paths = [FOUND] * ASKED_AT_ONCE
            granted = sum(answer(served, path, key)[0] == 200 for path in paths)
            assert granted == ASKED_AT_ONCE
            with frozen_server.frozen():
                for _ in range(2):  # first cached keys, then keys that need the database
                    answers = list(threads.map(lambda path: answer(served, path, key), paths))
                    assert {status for status, _, _ in answers} == {503}
                    assert {retry for _, retry, _ in answers} == {"5"}
                    assert {json.loads(body)["code"] for _, _, body in answers} == {"accounts_unavailable"}
                assert answer(served, "/readyz")[0] == 503
                assert answer(served, "/healthz")[0] == 200
                assert answer(served, "/dashboard/sign-in")[0] in {200, 503}
                until(lambda: "webhooks wait for the database" in log.read_text())
                until(lambda: "the account store is away; listening goes on" in log.read_text())
            until(lambda: answer(served, "/readyz")[0] == 200)
            before = sum(status == 200 for status, _, _ in threads.map(lambda path: answer(served, path, key), paths))
            granted += before
            until(lambda: answer(served, FOUND, key)[0] == 200)
            granted += 1
            until(lambda: used(accounts, caller) == granted)
            metrics = served.metrics()
            assert metrics["catalog_api_companion_up", "webhooks"] == metrics["catalog_api_companion_up", "monitor-1"] == 1
            assert metrics["catalog_api_companion_restarts_total", "monitor-1"] == 0
    accounts.close()
