"""Tests of credits over HTTP with several workers: exact for many callers at once, and after the death of a worker."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.contract.awkward import isrc
from tests.contract.conftest import Api, serving
from tests.processes import children
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

CLIENTS, WORKERS, CREDITS = 64, 4, 1_000
REQUESTS_EACH = 20


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def workers(
    request: pytest.FixtureRequest, awkward_catalog: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Iterator[Api]:
    """Return a server of several worker processes."""
    place = tmp_path_factory.mktemp("workers")
    url = f"sqlite:///{place}/accounts.db"
    if request.param == "postgresql":
        new_database: Callable[[str], str] = request.getfixturevalue("new_postgresql_database")
        url = new_database(f"workers_{worker_id}")
    with serving(awkward_catalog, url, place, workers=WORKERS) as api:
        yield api


def asked(api: Api, method: str, path: str, body: bytes | None = None, **headers: str) -> int | None:
    """Return the status of one request, or None when no answer came. Its own connection lets any worker answer it."""
    address = urlsplit(api.base)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, path, body, {"x-api-key": api.key, **headers})
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return None
    else:
        return answer.status
    finally:
        connection.close()


def read_used_credits(api: Api) -> int:
    """Return the used credits over a connection of its own: a kept one may lead to a worker that was killed."""
    address = urlsplit(api.base)
    with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE_SECONDS)) as connection:
        connection.request("GET", "/v1/usage", headers={"x-api-key": api.key})
        return int(json.loads(connection.getresponse().read())["credits_used"])


def all_at_once(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_64_clients_on_4_workers_get_exactly_the_1000_paid_answers(workers: Api) -> None:
    caller, statuses = workers.with_credits(CREDITS), []

    def client(_number: int) -> None:
        statuses.extend(asked(caller, "GET", "/v1/tracks/1") for _ in range(REQUESTS_EACH))

    all_at_once(client, CLIENTS)
    assert {status: statuses.count(status) for status in set(statuses)} == {200: CREDITS, 429: CLIENTS * REQUESTS_EACH - CREDITS}
    month = caller.ask("/v1/usage")
    assert (month["credits_used"], month["credits_remaining"]) == (CREDITS, 0)


def test_a_killed_worker_loses_no_charge_and_nothing_is_charged_twice_under_a_key(workers: Api) -> None:
    caller = workers.as_caller()
    body = json.dumps({"input_type": "isrc", "items": [isrc(1), isrc(2), "unknown"]}).encode()
    keys, answered = 60, []
    started = threading.Event()

    def client(number: int) -> None:
        for key in range(number, keys, 6):
            for _ in range(200):
                sent = {"content-type": "application/json", "idempotency-key": f"batch-{key}"}
                if asked(caller, "POST", "/v1/tracks/resolve", body, **sent) == 200:
                    answered.append(key)
                    started.set()
                    break
                time.sleep(0.05)

    def kill() -> None:
        started.wait(PATIENCE_SECONDS)
        for _ in range(2):
            victim = children(workers.pid, b"spawn_main")[0]
            os.kill(victim, signal.SIGKILL)
            until(lambda victim=victim: victim not in children(workers.pid, b"spawn_main"), "its death")  # type: ignore[misc]
            time.sleep(0.2)

    killer = threading.Thread(target=kill)
    killer.start()
    all_at_once(client, 6)
    killer.join()
    assert sorted(answered) == list(range(keys))
    assert read_used_credits(caller) == 3 * keys
