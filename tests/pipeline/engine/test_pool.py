from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from catalog_store.memory_budget import MemoryBudget, use_budget
from pipeline.engine.local import call_alone
from pipeline.engine.pool import PROCESSES, Engine, count_workers, map_ordered, start_workers, use_engine
from tests.pipeline.engine.pool_functions import fail_at_three, memory, process
from tests.processes import is_running
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

ENDED = """
import sys
from pathlib import Path
from pipeline.engine.pool import map_ordered
from tests.pipeline.engine.pool_functions import write_process_and_wait

list(map_ordered(write_process_and_wait, [Path(sys.argv[1])] * 2, workers=2))
"""
"""Starts two workers, each of which writes the number of its process and works on."""


def slow_square(number: int) -> int:
    time.sleep(0.05 if number % 2 else 0)
    return number * number


def test_results_come_in_the_order_of_the_inputs() -> None:
    assert list(map_ordered(slow_square, range(9), workers=3)) == [number * number for number in range(9)]


def test_one_worker_is_this_process_and_more_are_others() -> None:
    assert set(map_ordered(process, range(3), workers=1)) == {os.getpid()}
    assert os.getpid() not in set(map_ordered(process, range(3), workers=2))


def test_the_engine_of_processes_takes_small_work_too() -> None:
    with use_engine(Engine(PROCESSES, 1)), start_workers(is_small=True) as pool:
        assert os.getpid() not in set(map_ordered(process, range(3), pool=pool))


def test_an_error_in_a_worker_keeps_its_type_and_text() -> None:
    with pytest.raises(ValueError, match="three is out"):
        list(map_ordered(fail_at_three, range(100), workers=2))


def test_inputs_are_drawn_only_as_fast_as_results_are_taken() -> None:
    drawn = []

    def inputs() -> object:
        for number in range(1000):
            drawn.append(number)
            yield number

    results = map_ordered(slow_square, inputs(), workers=2)  # type: ignore[var-annotated,arg-type]
    next(results)
    assert len(drawn) <= 8
    results.close()  # type: ignore[attr-defined]


def test_one_pool_serves_several_calls_with_the_same_processes() -> None:
    with start_workers(2) as pool:
        seen = [set(map_ordered(process, range(12), pool=pool)) for _ in range(2)]
    assert os.getpid() not in seen[0] | seen[1]
    assert len(seen[0] | seen[1]) <= 2


def test_there_is_at_least_one_worker() -> None:
    assert count_workers() >= 1


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_together_take_no_more_memory_than_the_budget(workers: int) -> None:
    with use_budget(MemoryBudget(3_000_000_000, processes=2)):
        shares = set(map_ordered(memory, range(6), workers=workers))
        assert shares == {3_000_000_000 // workers}
        assert call_alone(memory, 0) == 1_500_000_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_process_that_started_them(tmp_path: Path, number: int) -> None:
    numbers = tmp_path / "numbers"
    numbers.mkdir()
    with subprocess.Popen([sys.executable, "-c", ENDED, str(numbers)], stderr=subprocess.DEVNULL) as build:
        until(lambda: len(list(numbers.iterdir())) == 2)
        workers = [int(path.name) for path in numbers.iterdir()]
        build.send_signal(number)
    until(lambda: not any(map(is_running, workers)))


def test_call_alone_has_a_process_of_its_own() -> None:
    assert call_alone(process, 1) != os.getpid()
    with pytest.raises(ValueError, match="three is out"):
        call_alone(fail_at_three, 3)
