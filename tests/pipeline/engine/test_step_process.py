from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from catalog_store.memory_budget import MemoryBudget, use_budget
from pipeline.engine.checkpoints import use_token
from pipeline.engine.pool import PROCESSES, Engine, use_engine
from pipeline.engine.progress import StepProgress, show_progress
from pipeline.engine.step_process import StepProcessError, run_in_own_process
from pipeline.engine.usage import measure_usage
from tests.conftest import ROOT
from tests.pipeline.engine.step_functions import HELD, describe_setting, end_from_outside, fail, hold_memory, tell
from tests.processes import is_running
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

ENDED = """
import sys
from functools import partial
from pathlib import Path
from pipeline.engine.step_process import run_in_own_process
from tests.pipeline.engine.step_functions import wait_in_workers

run_in_own_process("edges", partial(wait_in_workers, Path(sys.argv[1])))
"""
"""A build with a step in a process of its own, which has two workers. Each of the three writes the number of its process."""


def test_step_has_the_memory_the_engine_and_the_token_of_its_build() -> None:
    budget, engine = MemoryBudget(3_000_000_000, processes=2), Engine(PROCESSES, 2)
    with use_budget(budget), use_engine(engine), use_token("tonight"):
        setting = run_in_own_process("edges", describe_setting)
    assert setting[1:] == (budget, engine, "tonight")
    assert setting.process != os.getpid()


def test_progress_and_log_appear_as_if_the_step_ran_here(caplog: pytest.LogCaptureFixture) -> None:
    progress = StepProgress("edges", expected={"reading": 10.0, "process": 5.0}, is_to_scale=True, later_seconds=None)
    lines = 2_000  # more than a pipe holds
    with show_progress(progress, lambda _line: None), caplog.at_level(logging.INFO):
        workers = run_in_own_process("edges", partial(tell, lines))
        assert progress.describe().startswith("edges: ")
    assert list(progress.seconds) == ["begin", "reading", "process", "after process"]
    assert [record.getMessage() for record in caplog.records if record.name == "pipeline.told"] == [f"line {n}" for n in range(lines)]
    assert os.getpid() not in workers


def test_log_follows_the_level_of_the_build(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "pipeline.told"):
        run_in_own_process("edges", partial(tell, 3))
    assert not caplog.records


def test_cost_of_a_step_counts_as_that_of_the_build() -> None:
    with measure_usage() as usage:
        assert run_in_own_process("edges", hold_memory) == HELD
    assert usage.peak_bytes > HELD
    assert usage.cpu_seconds > 0.2  # its imports alone
    assert usage.worker_cpu_seconds == 0
    with measure_usage() as usage:
        run_in_own_process("edges", partial(tell, 1))
    assert 0.05 < usage.worker_cpu_seconds < usage.cpu_seconds  # one worker may take both inputs
    assert 0 < usage.worker_peak_bytes < usage.peak_bytes + HELD


def test_error_of_a_step_keeps_its_type_and_text() -> None:
    with pytest.raises(ValueError, match="three is out"):
        run_in_own_process("edges", fail)


def test_duckdb_draws_no_progress_on_standard_output() -> None:
    # As `python -m pipeline` does: worker processes do not import a main module of that name.
    script = "from pipeline.engine.step_process import run_in_own_process; from tests.pipeline.engine.step_functions import draws_progress"
    asked = subprocess.run(
        [sys.executable, "-c", f"{script}; print(run_in_own_process('gate', draws_progress))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout == "False\n"


def test_step_that_was_ended_from_outside_names_the_remedy() -> None:
    with pytest.raises(StepProcessError, match=r"^edges: .* ended from outside, .*: lower CATALOG_MEMORY$"):
        run_in_own_process("edges", end_from_outside)
    # The next step has a process again.
    assert run_in_own_process("clusters", describe_setting).process != os.getpid()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_step_and_its_workers_end_with_the_build(tmp_path: Path, number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", ENDED, str(tmp_path)], stderr=subprocess.DEVNULL) as build:
        until(lambda: len(list(tmp_path.iterdir())) == 3)
        processes = [int(path.name) for path in tmp_path.iterdir()]
        assert all(map(is_running, processes))
        build.send_signal(number)
    until(lambda: not any(map(is_running, processes)))
