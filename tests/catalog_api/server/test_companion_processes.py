"""Tests of companion processes: real ones that die, hang, refuse to stop, or lose their supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from catalog_api.server.companion_processes import SILENT_SECONDS, Companion, Companions
from catalog_api.server.metrics_endpoint import CompanionMetrics
from catalog_api.server.restart_backoff import LONGEST_DELAY_SECONDS, STEADY_SECONDS
from tests.conftest import ROOT
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROGRAM = "tests.catalog_api.server.companion_program"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Companions]]:
    """Yield a function that starts companions by name and options. All are stopped after the test."""
    monkeypatch.chdir(ROOT)
    every: list[Companions] = []

    def make(**wishes: str) -> Companions:
        made = [
            Companion(name, (PROGRAM, str(tmp_path / name), *wish.split()), stop_seconds=0.3 if "stubborn" in wish else PATIENCE_SECONDS)
            for name, wish in wishes.items()
        ]
        every.append(Companions(made, tmp_path))
        return every[-1]

    yield make
    for one in every:
        one.stop()


def words(diary: Path) -> list[str]:
    return [line.split()[0] for line in diary.read_text().splitlines()] if diary.exists() else []


def pid(diary: Path) -> int:
    until(lambda: words(diary))
    return int(diary.read_text().splitlines()[-1].split()[1])


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_killed_companion_is_restarted(made: Callable[..., Companions], tmp_path: Path) -> None:
    companions = made(one="")
    companions.start()
    os.kill(pid(tmp_path / "one"), signal.SIGKILL)

    def looked() -> bool:
        companions.check()
        return words(tmp_path / "one") == ["began", "began"]

    until(looked)
    assert [(state.is_up, state.restarts) for state in companions.read_states()] == [(True, 1)]


def test_companion_that_keeps_dying_is_restarted_with_growing_delays_until_it_runs_steadily(
    made: Callable[..., Companions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catalog_api.server.companion_processes.sys.executable", "/bin/false")  # dies at once
    now, waits = 0.0, []
    monkeypatch.setattr("catalog_api.server.companion_processes.time.monotonic", lambda: now)
    companions = made(one="")
    [run] = companions._processes
    companions.start()
    for ran in (1.0,) * 9 + (STEADY_SECONDS, 1.0):
        until(lambda: not run.is_up)
        now += ran
        before, died_at = run.restarts, now
        companions.check()
        while run.restarts == before:
            now += 0.25
            companions.check()
        waits.append(now - died_at)
    assert waits == [0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_DELAY_SECONDS, LONGEST_DELAY_SECONDS, 0, 0.5]


def test_companions_stop_in_reverse_order_and_one_that_ignores_sigterm_is_killed(made: Callable[..., Companions], tmp_path: Path) -> None:
    companions = made(first="", second="stubborn", third="")
    companions.start()
    pids = [pid(tmp_path / name) for name in ("first", "second", "third")]
    companions.stop()
    assert [words(tmp_path / name) for name in ("first", "second", "third")] == [["began", "ended"], ["began"], ["began", "ended"]]
    assert not any(is_alive(one) for one in pids)
    assert (tmp_path / "third").stat().st_mtime_ns + 3e8 <= (tmp_path / "first").stat().st_mtime_ns  # the second had its 0.3 s between


def test_companion_that_stops_writing_metrics_is_killed(made: Callable[..., Companions], tmp_path: Path) -> None:
    companions = made(one="")
    companions.start()
    process = pid(tmp_path / "one")
    companions.check()
    assert is_alive(process)
    [state] = companions.read_states()
    os.utime(state.metrics, (0, time.time() - SILENT_SECONDS - 1))

    def looked() -> bool:
        companions.check()
        return words(tmp_path / "one") == ["began", "began"]  # killed: it did not write that it ended

    until(looked)
    assert not is_alive(process)


def test_no_companion_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    supervisor = subprocess.Popen([sys.executable, "-m", PROGRAM, str(tmp_path / "below"), "supervises"], cwd=ROOT)
    process = pid(tmp_path / "below")
    supervisor.kill()
    supervisor.wait()
    until(lambda: words(tmp_path / "below") == ["began", "ended"])
    until(lambda: not is_alive(process))


def test_metrics_of_companions_carry_their_names_and_broken_files_are_left_out(made: Callable[..., Companions], tmp_path: Path) -> None:
    companions = made(one="", two="", three="")
    companions.start()
    for name in ("one", "two", "three"):
        pid(tmp_path / name)
    *_, broken = companions.read_states()
    broken.metrics.write_text('rounds_total{place="here} 7\n')
    registry = CollectorRegistry()
    registry.register(CompanionMetrics(companions))
    lines = generate_latest(registry).decode().splitlines()
    assert {'rounds_total{companion="one",place="here"} 7.0', 'rounds_total{companion="two",place="here"} 7.0'} <= set(lines)
    assert sum(line.startswith("# TYPE rounds_total") for line in lines) == 1
    assert not any(line.startswith('rounds_total{companion="three') for line in lines)
    assert {f'catalog_api_companion_up{{companion="{name}"}} 1.0' for name in ("one", "two", "three")} <= set(lines)
    assert 'catalog_api_companion_restarts_total{companion="one"} 0.0' in lines
