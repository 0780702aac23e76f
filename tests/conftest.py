"""Shared fixtures of several test folders: a small simulated world and the catalog built from it, made once per run."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from filelock import FileLock
from hypothesis import HealthCheck, settings

from tests.postgresql import create_database, shared_server
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
WORLD_RECORDINGS = 600
WORLD = ("--recordings", str(WORLD_RECORDINGS), "--seed", "7", "--fingerprints", "0.7")
"""Options of `pipeline simulate` that make the shared world. The tutorial makes the same one."""
LONGEST = ("test_first_build.py", "stream_monitor", "rebuild")
"""Files and folders that go first, in this order. They would keep one worker busy for minutes after the others have run out of tests. The
first one builds the shared catalog. The second needs no catalog, so its tests run meanwhile."""


settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")  # timings of single examples say nothing where other work is done


def pytest_configure() -> None:
    """Restore Ctrl-C, which a shell makes its background jobs and all their children ignore, and collect no garbage until the tests run.

    The tests send Ctrl-C to commands that must hear it.
    """
    # Collection keeps all that it makes: 19 passes over 8,000 tests found nothing in 2.8 CPU seconds of each worker.
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the items by LONGEST; `make test` has workers take files in this order."""
    items.sort(key=lambda item: next((place for place, name in enumerate(LONGEST) if name in item.path.parts), len(LONGEST)))


def pytest_collection_finish() -> None:
    """Collect garbage again, but spare the modules and tests, which live as long as the process."""
    gc.freeze()
    gc.enable()


def run_module(
    *arguments: str | Path, check: bool = True, timeout_seconds: float = PATIENCE_SECONDS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `python -m <arguments>` from the project's root, as an operator does."""
    command = [sys.executable, "-m", *map(str, arguments)]
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=timeout_seconds
    )
    if check and result.returncode != 0:
        pytest.fail(f"{' '.join(command)} exited {result.returncode}:\n{result.stderr[-4000:]}")
    return result


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the keys of databases without a file of their own. It is never in the home of the person who runs the tests."""
    folder = tmp_path_factory.mktemp("state")
    os.environ["XDG_STATE_HOME"] = str(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def one_worker() -> Iterator[None]:
    """Run pool work in the tests' own process. Imports cost a pool a second a worker, and the inputs of tests are tiny.

    Commands have their pools, among them the one that builds the shared world. Its tables are compared with those of one worker.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.engine.local.count_workers", lambda: 1)
        yield


@pytest.fixture(autouse=True)
def plain_log() -> Iterator[None]:
    """Undo a test's changes to the log of the process. The next test has another standard error, and this one's is closed."""
    yield
    structlog.reset_defaults()


@dataclass(frozen=True)
class BuiltWorld:
    """A simulated world (`dumps`, with `dumps/truth`) and the catalog built from it."""

    dumps: Path
    catalog: Path
    answer: dict[str, object]


@pytest.fixture(scope="session")
def built_world(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> BuiltWorld:
    """Return the world that all workers of a run share: read it, never write to it."""
    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent
    dumps, catalog, done = base / "world", base / "catalog", base / "built.json"
    with FileLock(base / "built.lock"):
        if not done.exists():
            run_module("pipeline", "simulate", *WORLD, "--out", dumps)
            built = run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog)
            done.write_text(built.stdout)
    return BuiltWorld(dumps, catalog, json.loads(done.read_text()))


@pytest.fixture(scope="session")
def new_postgresql_database(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Callable[[str], str]]:
    """Yield a function that makes an empty database of that name and returns its URL. All workers of a run share the server."""
    base = tmp_path_factory.getbasetemp()
    with shared_server(base if worker_id == "master" else base.parent) as server_url:
        yield lambda name: create_database(server_url, name)
