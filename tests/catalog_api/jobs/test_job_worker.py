"""Tests of the worker of bulk jobs: interruptions at every step change neither results nor credits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from account_store.accounts import Accounts
from account_store.jobs import job_leases
from account_store.jobs.job_leases import JobLeases
from account_store.jobs.job_store import FAILED, SUCCEEDED, UNFINISHED, Job, NewJob
from account_store.opaque_ids import generate_opaque_id
from account_store.plans import Terms
from catalog_api.jobs import job_folder, job_input, job_worker
from catalog_api.jobs.job_folder import JobFolder
from catalog_api.jobs.job_worker import KEPT, JobWorker
from catalog_api.live_catalog import LiveCatalog
from catalog_api.settings import ApiSettings
from tests.catalog_api.in_process import publish_as
from tests.catalog_store.catalog_tables import isrc
from tests.conftest import ROOT
from tests.migrated_databases import make_migrated_file
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROWS = 23
CODES = [isrc(number % 40) for number in range(ROWS)]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("jobs")
    publish_as(place, "first")
    return place / "catalog"


class Bench:
    """A worker in the test's process, its accounts and its folder."""

    def __init__(self, catalog: Path, place: Path, url: str) -> None:
        self.accounts = Accounts.open(url)
        self.live = LiveCatalog(catalog)
        self.live.look()
        self.root = place / "jobs"
        self.url = url
        self.worker = JobWorker(self.accounts, self.live, self.root, ApiSettings().url_templates)
        terms = Terms(credits=10_000_000, price_eur=Decimal(1), requests_per_second=10)
        self.account_id = self.accounts.create(f"jobs {generate_opaque_id()}", "custom", terms).account_id
        self.key_id = self.accounts.keys.create(self.account_id).key_id

    def create(self, rows: list[Any], form: str = "ndjson", input_type: str = "isrc") -> Job:
        job_id = generate_opaque_id()
        folder = JobFolder(self.root, job_id)
        folder.make()
        folder.input.write_text("".join(json.dumps(row) + "\n" for row in rows))
        new = NewJob("tracks", input_type, "ndjson", form, None)
        return self.accounts.jobs.create(self.account_id, self.key_id, new, job_id=job_id, most=1000)

    def get(self, job: Job) -> Job:
        return self.accounts.jobs.get(self.account_id, job.job_id)

    def read_result(self, job: Job) -> bytes:
        return JobFolder(self.root, job.job_id).get_result(job.result_format).read_bytes()

    def count_used(self) -> int:
        return self.accounts.usage.read_month_now(self.account_id).used

    def run(self, job: Job) -> Job:
        until(lambda: not self.worker.run_turn() or self.get(job).status not in UNFINISHED, "the end of the job")
        return self.get(job)


@pytest.fixture
def bench(catalog: Path, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(catalog, tmp_path, make_migrated_file(tmp_path))
    yield made
    made.live.close()
    made.accounts.close()


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (job_folder, job_input, job_worker):
        monkeypatch.setattr(module, "CHUNK_ROWS", 5)
    monkeypatch.setattr(job_worker, "_ROWS_AT_ONCE", 2)


class Interrupted(BaseException):
    """The end of the process at this point."""


@pytest.mark.usefixtures("small_chunks")
def test_an_interruption_after_any_write_changes_neither_result_nor_credits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = bench.run(bench.create(CODES))
    assert (expected.status, expected.row_count, expected.charged) == (SUCCEEDED, ROWS, ROWS)
    points = 0

    def interrupt_at(owner: type, name: str, *, after: bool) -> Callable[..., Any]:
        real = getattr(owner, name)

        def act(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - any method
            nonlocal points
            points -= 1
            if points == 0 and not after:
                raise Interrupted
            done = real(*arguments, **options)
            if points == 0:
                raise Interrupted
            return done

        return act

    steps = [(JobFolder, name) for name in ("finish_part", "remove_all_but_result")]
    steps += [(JobLeases, name) for name in ("reserve", "record", "end")]
    for after in (False, True):
        with monkeypatch.context() as patched:
            for owner, name in steps:
                patched.setattr(owner, name, interrupt_at(owner, name, after=after))
            for point in range(1, 40):
                used, job, points = bench.count_used(), bench.create(CODES), point
                with pytest.raises(Interrupted) if point <= _count_steps() else _nothing():
                    bench.worker.run_turn()
                points = 0
                _free_leases(bench)
                found = bench.run(job)
                assert (found.status, found.done_count, found.matched_count) == (SUCCEEDED, ROWS, expected.matched_count), (after, point)
                assert bench.read_result(job) == bench.read_result(expected)
                assert bench.count_used() == used + ROWS, (after, point)
                if point > _count_steps():
                    break


def _count_steps() -> int:
    """Return the writes of one job: chunks of items, `prepared`, `reserve`, chunks of rows with their records, result, end, removal."""
    chunks = -(-ROWS // 5)
    return chunks + 1 + 1 + 2 * chunks + 1 + 1 + 1


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _free_leases(bench: Bench) -> None:
    """Let the lease of the dead worker expire."""
    with bench.accounts.engine.begin() as connection:
        connection.execute(job_leases.bulk_job.update().values(lease_ends_ms=1))


@pytest.mark.usefixtures("small_chunks")
def test_a_large_job_gives_its_turn_to_a_small_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_worker, "TURN_SECONDS", 0.0)
    large, small = bench.create(CODES), bench.create(CODES[:2])
    monkeypatch.setattr(job_worker, "TURN_SECONDS", -1.0)
    assert bench.worker.run_turn()
    assert bench.get(large).status in UNFINISHED
    monkeypatch.setattr(job_worker, "TURN_SECONDS", 5.0)
    assert bench.worker.run_turn()
    assert (bench.get(small).status, bench.get(large).status) == (SUCCEEDED, "running")
    assert bench.run(large).status == SUCCEEDED


def test_input_that_ends_workers_fails_after_some_tries(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise MemoryError

    monkeypatch.setattr(job_worker, "prepare_input", fail)
    job = bench.create(CODES)
    for _ in range(job_leases.MOST_TRIES):
        assert not bench.worker.run_turn()
        assert bench.get(job).status in UNFINISHED
    assert bench.run(job).status == FAILED
    assert (bench.get(job).error, bench.count_used()) == ("the work on the input failed 5 times", 0)


def test_files_go_when_nobody_needs_them(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    done, cancelled = bench.run(bench.create(CODES)), bench.create(CODES)
    bench.accounts.jobs.cancel(bench.account_id, cancelled.job_id)
    orphan, stray = JobFolder(bench.root, "orphan"), JobFolder(bench.root, "stray")
    orphan.make()
    stray.make()
    os.utime(orphan.place, (1, 1))
    assert [file.name for file in JobFolder(bench.root, done.job_id).place.iterdir()] == ["result.ndjson"]
    bench.worker._clean_at = 0
    assert not bench.worker.run_turn()
    assert sorted(job_folder.list_job_ids(bench.root)) == sorted([done.job_id, "stray"])
    later = bench.accounts.clock() + KEPT
    monkeypatch.setattr(bench.accounts, "clock", lambda: later)
    bench.worker._clean_at = 0
    bench.worker.run_turn()
    assert job_folder.list_job_ids(bench.root) == ["stray"]


@contextmanager
def working(bench: Bench, catalog: Path) -> Iterator[subprocess.Popen[bytes]]:
    settings = {"CATALOG_API_CATALOG": catalog, "CATALOG_API_ACCOUNTS_URL": bench.url, "CATALOG_API_JOBS_FOLDER": bench.root}
    environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    command = [sys.executable, "-X", "faulthandler", "-m", "catalog_api.jobs"]
    with (bench.root.parent / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _stop(bench: Bench, worker: subprocess.Popen[bytes]) -> None:
    worker.terminate()
    try:
        assert worker.wait(PATIENCE_SECONDS) == 0
    except subprocess.TimeoutExpired:
        worker.send_signal(signal.SIGABRT)
        worker.wait()
        pytest.fail(f"the worker does not stop; its threads are in:\n{(bench.root.parent / 'worker.log').read_text()[-5_000:]}")


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_job_whose_worker_is_killed_twice_has_the_result_and_the_price_of_another(
    catalog: Path, tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/accounts.db"
    if database == "postgresql":
        url = request.getfixturevalue("new_postgresql_database")("killed_jobs")
    bench = Bench(catalog, tmp_path, url)
    with closing(bench.accounts), closing(bench.live):
        rows = [isrc(number % 97) for number in range(100_000)]
        job = bench.create(rows, "csv")
        for _ in range(2):
            before = bench.get(job).done_count
            with working(bench, catalog) as worker:
                until(lambda before=before: bench.get(job).done_count > before + 5_000, "progress", worker)  # type: ignore[misc]
                worker.send_signal(signal.SIGKILL)
            assert bench.get(job).status == "running"
        assert bench.count_used() == len(rows)
        with working(bench, catalog) as worker:
            until(lambda: bench.get(job).status not in UNFINISHED, "the end", worker)
            _stop(bench, worker)
        found, whole = bench.get(job), bench.create(rows, "csv")
        assert (found.status, found.charged, bench.count_used()) == (SUCCEEDED, len(rows), len(rows))
        bench.run(whole)
        assert bench.read_result(job) == bench.read_result(whole)
        assert bench.count_used() == 2 * len(rows)
