"""Tests that the server, its workers and companions continue when nothing can be logged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from account_store.accounts import Accounts
from catalog_store.publisher import rollback
from tests.catalog_api.server.test_process_supervisor import FOUND, Served, free_port, until
from tests.catalog_store.editions import copied, publish_editions
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def editions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_editions(tmp_path_factory.mktemp("editions"))


@pytest.fixture
def place(editions: Path, tmp_path: Path) -> Path:
    """Return a folder with a catalog in it, `first` live."""
    copied(editions, tmp_path)
    return tmp_path


@contextmanager
def served_with_log(place: Path, shell: str, **environment: str) -> Iterator[Served]:
    """Yield a server of two workers whose standard error is as `shell` redirects it."""
    accounts = Accounts.open(f"sqlite:///{place}/accounts.db")
    key = accounts.keys.create(accounts.create("tester", "scale").account_id).key
    accounts.close()
    port, metrics_port = free_port(), free_port()
    settings = {
        "CATALOG": f"{place}/catalog",
        "ACCOUNTS_URL": f"sqlite:///{place}/accounts.db",
        "PORT": str(port),
        "METRICS_PORT": str(metrics_port),
        "WORKERS": "2",
        "LOOK_SECONDS": "0.1",
        "MONITORS": "0",
        "WEBHOOKS": "false",
    } | environment
    process = subprocess.Popen(
        ["/bin/sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-m", "catalog_api", "serve"],
        cwd=ROOT,
        env={**os.environ, **{f"CATALOG_API_{name}": value for name, value in settings.items()}},
    )
    served = Served(port, metrics_port, key, process, place / "none")
    try:
        until(lambda: served.is_listening() and served.get("/readyz")[0] == 200)
        yield served
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            process.kill()
            process.wait()


def matchers_of(served: Served) -> list[int]:
    children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children").read_text().split()
    return [int(child) for child in children if b"audio_recognition" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["2>/dev/full", pytest.param("2>&-", marks=pytest.mark.long)])
def test_snapshot_published_later_is_served_when_the_log_is_unwritable(place: Path, shell: str) -> None:
    with served_with_log(place, shell) as served:
        for _ in range(40):  # lines of requests are written in the middle of requests
            assert served.get(FOUND, served.key)[0] == 200
        rollback(place / "catalog", "second")
        until(lambda: served.metrics().get(("catalog_api_snapshot_workers", "second")) == 2)
        status, body = served.get("/readyz")
        assert status == 200
        assert json.loads(body)["snapshot"] == json.loads(body)["current"] == "second"
        assert json.loads(body)["is_following"]
        metrics = served.metrics()
        assert metrics["catalog_api_snapshot_behind_seconds",] == metrics["catalog_api_workers_not_following",] == 0
        if shell == "2>/dev/full":
            until(lambda: served.metrics()["catalog_api_lost_log_lines_total",] > 40)

        [matcher] = matchers_of(served)
        workers = served.workers()
        os.kill(matcher, signal.SIGKILL)
        os.kill(min(workers), signal.SIGKILL)
        until(lambda: matcher not in matchers_of(served) and len(matchers_of(served)) == 1)
        until(lambda: min(workers) not in served.workers() and len(served.workers()) == 2)
        rollback(place / "catalog", "first")
        until(lambda: served.metrics().get(("catalog_api_snapshot_workers", "first")) == 2)
        assert served.get(FOUND, served.key)[0] == 200


@pytest.mark.long
@pytest.mark.parametrize("reader", ["true", "sleep 600"])
def test_log_reader_that_ends_or_hangs_stops_no_request(place: Path, reader: str) -> None:
    fifo = place / "log"
    os.mkfifo(fifo)
    with (
        subprocess.Popen(["/bin/sh", "-c", f'exec {reader} <"$0"', fifo]) as reading,
        served_with_log(place, f'2>"{fifo}"', MATCHER="false") as served,
    ):
        try:
            for _ in range(600 if reader != "true" else 40):  # the pipe holds 64 KiB
                assert served.get(FOUND, served.key)[0] == 200
            rollback(place / "catalog", "second")
            until(lambda: served.metrics().get(("catalog_api_snapshot_workers", "second")) == 2)
            until(lambda: served.metrics()["catalog_api_lost_log_lines_total",] > 0)
            assert json.loads(served.get("/readyz")[1])["snapshot"] == "second"
        finally:
            reading.kill()


@pytest.mark.slow
def test_snapshot_that_is_refused_leaves_a_worker_ready_and_stale(place: Path) -> None:
    with served_with_log(place, "2>/dev/null", MATCHER="false", STALE_SECONDS="0.3") as served:
        until(lambda: served.metrics().get(("catalog_api_snapshot_workers", "first")) == 2)
        broken = place / "catalog" / "snapshots" / "second" / "serving" / "serving.sqlite"
        broken.write_bytes(broken.read_bytes()[:-1])
        (place / "catalog" / ".next").symlink_to("snapshots/second")
        (place / "catalog" / ".next").rename(place / "catalog" / "current")
        until(lambda: served.metrics()["catalog_api_workers_refusing_snapshot",] == 2)
        until(lambda: json.loads(served.get("/readyz")[1])["is_stale"])
        status, body = served.get("/readyz")
        readiness = json.loads(body)
        assert status == 200
        assert (readiness["snapshot"], readiness["current"], readiness["is_refused"]) == ("first", "second", True)
        until(lambda: served.metrics()["catalog_api_snapshot_behind_seconds",] > 0.3)
        assert served.get(FOUND, served.key)[0] == 200
        workers = served.workers()
        os.kill(min(workers), signal.SIGKILL)
        until(lambda: min(workers) not in served.workers() and len(served.workers()) == 2)
        until(lambda: served.metrics().get(("catalog_api_snapshot_workers", "first")) == 2)
        assert served.metrics()["catalog_api_workers_refusing_snapshot",] == 2
        assert {served.get(FOUND, served.key)[0] for _ in range(20)} == {200}
        rollback(place / "catalog", "first")
        until(lambda: json.loads(served.get("/readyz")[1]).get("is_stale") is False)
