"""Tests of limits that hold over all workers of a server together (contract A3, A9): rates of keys, unknown keys of an address."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from tests.contract.conftest import Api, exchanged, serving
from tests.processes import children
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RATE, BURST = 5, 10
"""Limits of the plan `free`."""
GUESSES = 20


@pytest.fixture(scope="module", params=[pytest.param(2, id="two-workers"), pytest.param(4, id="four-workers", marks=pytest.mark.long)])
def several(request: pytest.FixtureRequest, awkward_catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    place = tmp_path_factory.mktemp("several_workers")
    settings = {"unknown_keys_per_minute": str(GUESSES), "client_address_header": "X-Forwarded-For"}
    with serving(awkward_catalog, f"sqlite:///{place}/accounts.db", place, workers=request.param, **settings) as api:
        yield api


def _workers(api: Api) -> list[int]:
    return children(api.pid, b"spawn_main")


def _status(api: Api, key: str, **headers: str) -> tuple[int, str]:
    """Return the status and Retry-After of a request. Its own connection lets any worker answer it."""
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in {"x-api-key": key, **headers}.items()]
    host = urlsplit(api.base).netloc
    answer = exchanged(api, f"GET /v1/usage HTTP/1.1\r\nhost: {host}\r\n{''.join(lines)}connection: close\r\n\r\n".encode()).decode()
    head = answer.partition("\r\n\r\n")[0].lower().splitlines()
    wait = next((line.partition(":")[2].strip() for line in head if line.startswith("retry-after:")), "")
    return int(head[0].split()[1]), wait


def _answered(api: Api, key: str, requests: int, *others: int) -> tuple[int, float]:
    """Return how many of `requests` were answered 200, and the seconds from before the first to after the last.

    Require that every other answer is 429 or one of `others`.
    """
    began = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: _status(api, key)[0], range(requests)))
    assert set(found) <= {200, 429, *others}
    return found.count(200), time.monotonic() - began


def test_a9_a_key_has_its_burst_and_its_rate_once_over_all_workers(several: Api) -> None:
    key = several.new_key("free")
    burst, seconds = _answered(several, key, 60)
    assert BURST <= burst <= BURST + RATE * seconds + 1
    sustained, seconds = _answered(several, key, 240)
    assert sustained <= RATE * seconds + RATE + 1, "the burst was spent before"


def test_a9_a_worker_that_is_killed_gives_no_key_its_burst_again(several: Api) -> None:
    key = several.new_key("free")
    began = time.monotonic()
    first, _ = _answered(several, key, 40)
    victim = _workers(several)[0]
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in _workers(several), "its death")  # till then it takes connections, and resets them
    second, _ = _answered(several, key, 40, 503)  # the new one, before it has a catalog
    assert first + second <= BURST + RATE * (time.monotonic() - began) + 1


def test_a3_many_unknown_keys_of_one_address_are_429_and_its_live_keys_go_on(several: Api) -> None:
    began = time.monotonic()
    found = [_status(several, f"mc_guess_{number}", X_Forwarded_For="spoofed, 198.51.100.7") for number in range(3 * GUESSES)]
    refused = [wait for status, wait in found if status == 429]
    assert {status for status, _ in found} == {401, 429}
    assert GUESSES <= [status for status, _ in found].count(401) <= GUESSES + GUESSES * (time.monotonic() - began) / 60 + 1
    assert all(1 <= int(wait) <= 60 for wait in refused)
    assert _status(several, several.new_key(), X_Forwarded_For="198.51.100.7")[0] == 200, "a key that was never seen before, too"
    assert _status(several, "mc_another_guess", X_Forwarded_For="198.51.100.8")[0] == 401, "another address"


def test_a3_addresses_of_one_ipv6_network_are_one_client(several: Api) -> None:
    found = [_status(several, f"mc_guess_{number}", X_Forwarded_For=f"2001:db8:1:2::{number:x}")[0] for number in range(3 * GUESSES)]
    assert 429 in found
    assert _status(several, "mc_another_guess", X_Forwarded_For="2001:db8:1:3::1")[0] == 401


def test_a3_without_a_key_the_answer_stays_401(several: Api) -> None:
    # The shared client may still hold a connection to the worker that was killed.
    with httpx.Client(base_url=several.base, timeout=PATIENCE_SECONDS, headers={"x-forwarded-for": "198.51.100.9"}) as client:
        found = {client.get("/v1/usage").status_code for _ in range(2 * GUESSES)}
    assert found == {401}
