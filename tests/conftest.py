"""Shared fixtures of several test folders: a small simulated world and the catalog built from it, made once per run."""

from __future__ import annotations

import gc
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from filelock import FileLock
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests.migrated_databases import migrate_database
from tests.postgresql import create_database, shared_server
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xdist.remote import Producer

ROOT = Path(__file__).resolve().parents[1]
WORLD_RECORDINGS = 600
WORLD = ("--recordings", str(WORLD_RECORDINGS), "--seed", "7", "--fingerprints", "0.7")
"""Options of `pipeline simulate` that make the shared world. The tutorial makes the same one."""
LONGEST = ("test_first_build.py", "contract", "stream_monitor", "rebuild")
"""Files and folders that go first, in this order. They would keep one worker busy for minutes after the others have run out of tests. The
first one builds the shared catalog. The next two need no catalog, so their tests run meanwhile."""
SHARED_SERVERS = "tests/contract/"
"""Tests that one worker runs. Two servers answer all of them; a pair in each of three workers cost 107 CPU seconds."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory: a mkdir, rename or sync there costs a tenth
NEEDED_BYTES = 4 << 30
"""Free room from which on the tests put their files into memory. They fill .8 GB."""


settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")  # timings of single examples say nothing where other work is done


class Scheduling(LoadFileScheduling):
    """Gives each worker whole files, and all tests with SHARED_SERVERS to one."""

    def _split_scope(self, nodeid: str) -> str:
        return SHARED_SERVERS if nodeid.startswith(SHARED_SERVERS) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)  # unknown under `-p no:xdist`
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Return the scheduler of `--dist loadfile`."""
    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    """Restore Ctrl-C, put the tests' files into memory, and collect no garbage until the tests run.

    A shell makes its background jobs and all their children ignore Ctrl-C, and the tests send it to commands that must hear it.
    """
    # Tests of the long tier write more than memory may have room for.
    if "not long" in config.option.markexpr and "TMPDIR" not in os.environ and has_room_in_memory():
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
    # Collection keeps all that it makes: 19 passes over 8,000 tests found nothing in 2.8 CPU seconds of each worker.
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def has_room_in_memory() -> bool:
    """Return whether MEMORY takes the tests' files, and programs and libraries among them."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < NEEDED_BYTES:
        return False
    return not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC


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
        patch.setattr("pipeline.engine.pool.count_workers", lambda: 1)
        yield


@pytest.fixture(autouse=True)
def plain_log() -> Iterator[None]:
    """Undo a test's changes to the log of the process. The next test has another standard error, and this one's is closed."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(autouse=True)
def heard_interruption() -> Iterator[None]:
    """Fail the test that leaves another handler of SIGINT, and restore Python's: a later test would wait for its interruption for ever.

    Libraries also replace the handler below Python's, where `getsignal` does not see it: Polars does when it is imported.
    """
    yield
    left = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert left is signal.default_int_handler, f"this test left {left} as the handler of SIGINT"


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
    # Operators name folders as they like. Here every test of the world finds out whether quotes in a path are read right.
    dumps, catalog, done = base / "world's dumps", base / "Zoë's catalog", base / "built.json"
    with FileLock(base / "built.lock"):
        if not done.exists():
            run_module("pipeline", "simulate", *WORLD, "--out", dumps)
            built = run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog)
            done.write_text(built.stdout)
    return BuiltWorld(dumps, catalog, json.loads(done.read_text()))


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """Yield the URL of the server that all workers of a run share."""
    base = tmp_path_factory.getbasetemp()
    with shared_server(base if worker_id == "master" else base.parent) as server_url:
        yield server_url


@pytest.fixture(scope="session")
def new_postgresql_database(postgresql_server: str) -> Callable[[str], str]:
    """Return a function that makes an empty database of that name and returns its URL."""
    return lambda name: create_database(postgresql_server, name)


@pytest.fixture(scope="session")
def new_migrated_database(postgresql_server: str, worker_id: str) -> Callable[[str], str]:
    """Return a function that makes a database of that name with the tables of accounts, and returns its URL."""
    migrated = f"migrated_{worker_id}"
    migrate_database(create_database(postgresql_server, migrated))
    return lambda name: create_database(postgresql_server, name, like=migrated)
