"""Tests that damage to files of the live snapshot is found after they were opened, and that the alarm ends with their repair."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
import structlog

from catalog_store.publisher import rollback
from catalog_store.scrub import STATE_FILE, Scrubber, ScrubState, read_state
from tests.catalog_store.editions import copied, publish_editions
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def editions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_editions(tmp_path_factory.mktemp("editions"))


@pytest.fixture
def root(editions: Path, tmp_path: Path) -> Path:
    return copied(editions, tmp_path)


@pytest.fixture
def scrubber(root: Path) -> Iterator[Scrubber]:
    scrubber = Scrubber(root, 1e9, 0.05, lambda _state: None)
    thread = threading.Thread(target=scrubber.run)
    thread.start()
    yield scrubber
    scrubber.stop()
    thread.join()


def next_round(scrubber: Scrubber) -> None:
    rounds = scrubber.state.rounds
    until(lambda: scrubber.state.rounds > rounds + 1)


DAMAGES = {
    "catalog.duckdb": lambda file: file.write_bytes(file.read_bytes()[:-1] + bytes([file.read_bytes()[-1] ^ 1])),
    "tables/recording/part-00000-*.parquet": lambda file: file.write_bytes(b"x" * file.stat().st_size),
    "serving/keys/ids.npy": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "serving/search/popularity.npy": lambda file: file.unlink(),
    "manifest.json": lambda file: file.write_bytes(file.read_bytes().replace(b'"bytes": ', b'"bytes": 1', 1)),
}


@pytest.mark.parametrize("path", DAMAGES)
def test_damage_is_reported_until_the_file_is_repaired(root: Path, scrubber: Scrubber, path: str) -> None:
    next_round(scrubber)
    assert scrubber.state.snapshot == "first"
    assert not scrubber.state.damaged
    [file] = (root / "snapshots" / "first").glob(path)
    damaged = file.relative_to(root / "snapshots" / "first").as_posix()
    good = file.read_bytes()
    with structlog.testing.capture_logs() as logged:
        DAMAGES[path](file)
        until(lambda: list(scrubber.state.damaged) == [damaged])
        next_round(scrubber)
        file.write_bytes(good)
        until(lambda: not scrubber.state.damaged)
    levels = [line["log_level"] for line in logged if line.get("file") == damaged]  # a file that is being written is damaged in another way
    assert (levels[0], levels[-1], levels.count("info")) == ("error", "info", 1)
    assert "rollback" in logged[0]["remedy"]


def test_rollback_ends_the_alarm(root: Path, scrubber: Scrubber) -> None:
    file = root / "snapshots" / "first" / "catalog.duckdb"
    file.write_bytes(file.read_bytes()[:-1])
    until(lambda: scrubber.state.damaged)
    rollback(root, "second")
    until(lambda: scrubber.state.snapshot == "second" and scrubber.state.finished_unix)
    assert not scrubber.state.damaged


def test_folder_that_is_gone_is_waited_for(root: Path, scrubber: Scrubber) -> None:
    next_round(scrubber)
    root.rename(root.with_name("away"))
    time.sleep(0.2)
    root.with_name("away").rename(root)
    next_round(scrubber)
    until(lambda: not scrubber.state.damaged)


def test_no_more_is_read_in_a_second_than_allowed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances only by waiting."""
    now, states = 0.0, []
    monkeypatch.setattr("catalog_store.scrub.time.monotonic", lambda: now)
    scrubber = Scrubber(root, 1000, 10, lambda state: states.append(ScrubState(read_bytes=state.read_bytes)))

    def wait(seconds: float) -> bool:
        nonlocal now
        now += seconds
        return False

    monkeypatch.setattr(scrubber._stopping, "wait", wait)
    scrubber._read_through(scrubber._find_folder())
    assert now == pytest.approx(scrubber.state.read_bytes / 1000)
    assert scrubber.state.rounds == 1


@pytest.mark.parametrize("content", [b"", b'{"damaged": ', b'{"snapshot": "\xad"}'])
def test_unreadable_state_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / STATE_FILE).write_bytes(content)
    assert read_state(tmp_path) is None
