"""Tests of the server as an operator runs it: several workers, metrics, log, a worker that dies, a stop under load."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from account_store.accounts import Accounts
from catalog_store.publisher import publish
from catalog_store.tables import CATALOG_TABLES
from tests.catalog_store.catalog_tables import isrc, make_tables
from tests.conftest import ROOT
from tests.ports import free_port
from tests.processes import children
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORKERS = 2
FOUND = f"/v1/tracks/isrc/{isrc(1)}"


@dataclass
class Served:
    port: int
    metrics_port: int
    key: str
    process: subprocess.Popen[bytes]
    log: Path

    def get(self, path: str, key: str | None = None, port: int | None = None) -> tuple[int, str]:
        request = urllib.request.Request(f"http://127.0.0.1:{port or self.port}{path}", headers={"x-api-key": key} if key else {})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - loopback
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Return (name, label values by the labels' names ...) -> value of all metrics."""
        _, text = self.get("/metrics", port=self.metrics_port)
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return {(sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value for sample in samples}

    def is_listening(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def workers(self) -> set[int]:
        return set(children(self.process.pid, b"spawn_main"))

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a published catalog and an account."""
    place = tmp_path_factory.mktemp("served")
    made = make_tables(place / "tables", 30)
    tables = {table.name: made[table.name] for table in CATALOG_TABLES}
    publish(tables, place / "catalog", snapshot_id="first", next_ids={"recording": 1000, "artist": 50})
    return place


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Served]:
    accounts = Accounts.open(f"sqlite:///{place}/accounts.db")
    key = accounts.keys.create(accounts.create("tester", "scale").account_id).key
    accounts.close()
    port, metrics_port = free_port(), free_port()
    settings = place / "settings.toml"
    settings.write_text(
        f'catalog = "{place}/catalog"\naccounts_url = "sqlite:///{place}/accounts.db"\n'
        "port = 1\nwebhooks = false\nscrub_pause_seconds = 0.2\n",
        encoding="utf-8",
    )
    command = [
        sys.executable,
        "-m",
        "catalog_api",
        "serve",
        "--settings",
        str(settings),
        "--workers",
        str(WORKERS),
        "--metrics-port",
        str(metrics_port),
    ]
    log = place / "server.log"
    with log.open("wb") as lines:
        process = subprocess.Popen(command, cwd=ROOT, stderr=lines, env={**os.environ, "CATALOG_API_PORT": str(port)})
    served = Served(port, metrics_port, key, process, log)
    try:
        until(lambda: log.read_text().count("snapshot is live") == WORKERS)
        until(served.is_listening)
        yield served
    finally:
        process.kill()
        process.wait()


def test_metrics_add_up_the_counts_of_all_workers(served: Served) -> None:
    for _ in range(40):
        assert served.get(FOUND, served.key)[0] == 200
    for _ in range(3):
        assert served.get("/v1/genres")[0] == 401
    assert served.get("/v1/tracks/isrc/nonsense", served.key)[0] == 400
    assert served.get("/no/such/path", served.key)[0] == 404
    route = "/v1/tracks/isrc/{isrc}"

    def read_whole() -> dict[tuple[str, ...], float] | None:
        """Return the metrics once both workers have told theirs: a worker may be late on a busy machine."""
        told = served.metrics()
        requests = sum(value for (name, *_), value in told.items() if name == "catalog_api_requests_total")
        # 45, and the requests of the start-up check
        return told if requests >= 45 and told["catalog_api_workers",] == WORKERS else None

    metrics = until(read_whole)
    assert metrics["catalog_api_requests_total", "GET", route, "200"] == 40
    assert metrics["catalog_api_requests_total", "GET", route, "400"] == 1
    assert metrics["catalog_api_credits_total", route] == 40
    assert metrics["catalog_api_request_seconds_count", route] == 41
    assert metrics["catalog_api_request_seconds_bucket", "+Inf", route] == 41
    assert metrics["catalog_api_refusals_total", "missing_api_key"] == 3
    assert metrics["catalog_api_refusals_total", "not_found"] == 1
    assert metrics["catalog_api_workers",] == metrics["catalog_api_workers_with_catalog",] == WORKERS
    assert metrics["catalog_api_snapshot_workers", "first"] == WORKERS
    assert 0 < metrics["catalog_api_snapshot_age_seconds",] < 3600
    assert metrics["catalog_api_workers_refusing_snapshot",] == 0
    assert metrics["catalog_api_companion_up", "matcher"] == 1
    until(lambda: ("matcher_recordings", "matcher") in served.metrics())  # that of the supervisor itself, beside those of the workers


def test_metrics_are_not_on_the_public_address(served: Served) -> None:
    assert served.get("/metrics")[0] == 401
    assert served.get("/metrics", served.key)[0] == 404


def test_each_request_is_a_log_line_without_key_or_query(served: Served) -> None:
    assert served.get(f"{FOUND}?include=nothing&x-api-key={served.key}", served.key)[0] == 400
    until(lambda: any(line.get("status") == 400 and line.get("path") == FOUND for line in served.lines()))
    line = next(line for line in served.lines() if line.get("status") == 400 and line.get("path") == FOUND)
    assert {"timestamp", "level", "event", "method", "milliseconds", "request_id", "account"} <= set(line)
    assert line["code"] == "invalid_parameter"
    assert served.key not in served.log.read_text()


def test_the_server_is_alive_and_ready(served: Served) -> None:
    assert served.get("/healthz") == (200, '{"status":"ok"}')
    until(lambda: json.loads(served.get("/readyz")[1])["damaged_files"] is not None)
    status, body = served.get("/readyz")
    reported = {"status": "ready", "snapshot": "first", "current": "first", "behind_seconds": 0.0}
    assert (status, json.loads(body)) == (
        200,
        {**reported, "is_stale": False, "is_refused": False, "is_following": True, "damaged_files": 0},
    )


def test_dead_worker_is_replaced_and_its_counts_stay(served: Served) -> None:
    refused = ("catalog_api_refusals_total", "missing_api_key")
    until(lambda: served.metrics()[refused] == 4)
    victim = min(served.workers())
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in served.workers() and len(served.workers()) == WORKERS)
    until(lambda: served.log.read_text().count("snapshot is live") == WORKERS + 1)
    assert served.get(FOUND, served.key)[0] == 200
    assert served.metrics()[refused] == 4


def test_damaged_live_snapshot_raises_an_alarm_until_it_is_repaired(place: Path, served: Served) -> None:
    file = place / "catalog" / "snapshots" / "first" / "catalog.duckdb"
    good = file.read_bytes()
    file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    until(lambda: served.metrics().get(("scrub_damaged_files", "scrub")) == 1)
    until(lambda: json.loads(served.get("/readyz")[1])["damaged_files"] == 1)
    assert served.get("/readyz")[0] == 200, "what is served is whole, or refused body by body"
    until(lambda: any(line["event"] == "a file of the live snapshot is damaged" for line in served.lines()))
    file.write_bytes(good)
    until(lambda: json.loads(served.get("/readyz")[1])["damaged_files"] == 0)
    until(lambda: served.metrics()["scrub_damaged_files", "scrub"] == 0)


def test_all_workers_killed_together_are_restarted_at_once(served: Served) -> None:
    died, live = len(deaths(served)), served.log.read_text().count("snapshot is live")
    before = served.workers()
    for worker in before:
        os.kill(worker, signal.SIGKILL)
    until(lambda: len(served.workers() - before) == WORKERS)
    until(lambda: served.log.read_text().count("snapshot is live") == live + WORKERS)
    assert served.get(FOUND, served.key)[0] == 200
    assert len(deaths(served)) - died == WORKERS
    until(lambda: served.metrics()["catalog_api_workers",] == WORKERS)


def test_silent_worker_does_not_delay_the_restart_of_another(served: Served) -> None:
    """The supervisor once asked one worker after the other, and waited half a minute for each answer."""
    silent, killed = sorted(served.workers())
    os.kill(silent, signal.SIGSTOP)
    time.sleep(1.5)  # the supervisor asks it, and it does not answer
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in served.workers() and len(served.workers()) == WORKERS)
    assert silent in served.workers(), "the silent one was waited for first"
    os.kill(silent, signal.SIGCONT)
    until(lambda: served.metrics()["catalog_api_workers",] == WORKERS)
    assert silent in served.workers()


def deaths(served: Served) -> list[dict[str, object]]:
    return [line for line in served.lines() if line["event"] == "worker died"]


def test_stopping_server_finishes_a_request_and_accepts_no_new_one(served: Served) -> None:
    # Spaces, so that a request which waits for its last byte keeps the pace that bodies must keep, even for a minute.
    body = json.dumps({"input_type": "isrc", "items": [isrc(1)]}).encode() + b" " * 200_000
    head = ["POST /v1/tracks/resolve HTTP/1.1", "host: x", f"x-api-key: {served.key}", "content-type: application/json"]
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_SECONDS) as slow:
        slow.sendall("\r\n".join([*head, f"content-length: {len(body)}", "", ""]).encode() + body[:-1])
        time.sleep(0.3)
        served.process.send_signal(signal.SIGTERM)

        until(lambda: not served.is_listening())
        slow.sendall(body[-1:])
        answer = slow.recv(65536)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer
    assert served.process.wait(timeout=PATIENCE_SECONDS) == 0
    assert "stopped" in served.lines()[-1].values()
    assert "matcher stopped" in [line["event"] for line in served.lines()]


def test_no_worker_outlives_a_killed_server_and_a_quiet_server_logs_no_requests(place: Path) -> None:
    port = free_port()
    where = ["--catalog", str(place / "catalog"), "--accounts", f"sqlite:///{place}/accounts.db", "--port", str(port)]
    alone = {"CATALOG_API_MATCHER": "false", "CATALOG_API_WEBHOOKS": "false", "CATALOG_API_MONITORS": "0"}
    command = [sys.executable, "-m", "catalog_api", "serve", *where, "--log-level", "warning"]
    log = place / "quiet.log"
    with log.open("wb") as lines:
        process = subprocess.Popen(command, cwd=ROOT, stderr=lines, env={**os.environ, **alone})
    killed = Served(port, 0, "", process, log)
    until(killed.is_listening)
    assert killed.get("/healthz")[0] == 200
    process.kill()
    process.wait()
    until(lambda: not killed.is_listening())  # the port is free for the next one
    assert not log.read_text()


@pytest.mark.parametrize("url", ["nonsense", "redis://me:secret@127.0.0.1:port", "redis+sentinel://127.0.0.1:1", "redis+cluster://"])
def test_start_with_a_wrong_place_of_rate_limits_prints_one_line(place: Path, url: str) -> None:
    command = [sys.executable, "-m", "catalog_api", "serve", "--catalog", str(place / "catalog")]
    command += ["--accounts", f"sqlite:///{place}/accounts.db"]
    environment = {**os.environ, "CATALOG_API_RATE_LIMITS_URL": url}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("error: rate limits are kept in memory://")
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--catalog", "nowhere"], "no published catalog"),
        (["--settings", "nowhere.toml"], "cannot be read"),
        (["--workers", "0"], "workers"),
        (["--accounts", "mysql://x/y"], "not a database for accounts"),
    ],
)
def test_start_that_fails_prints_one_line(place: Path, arguments: list[str], said: str) -> None:
    catalog = [] if "--catalog" in arguments else ["--catalog", str(place / "catalog")]
    command = [sys.executable, "-m", "catalog_api", "serve", *catalog, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
