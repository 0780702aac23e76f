"""Pool of local processes that maps a pure function over many inputs, in order, with bounded work in flight.

The functions know nothing of processes: the same ones run in a plain loop (`workers=1`) or on a cluster.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
from collections import deque
from collections.abc import Sized
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from catalog_store.memory_budget import get_budget, set_budget
from pipeline.engine.progress import count_one, start_counting
from pipeline.engine.usage import WorkerCost, charge_worker, measure_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from catalog_store.memory_budget import MemoryBudget

Item = TypeVar("Item")
Result = TypeVar("Result")

_PR_SET_PDEATHSIG = 1
"""<linux/prctl.h>"""
IN_FLIGHT_PER_WORKER = 2
"""Inputs handed out per worker before the first result is awaited: bounds memory, keeps workers fed."""


def count_workers() -> int:
    """Return the number of processes that may work at once: one per processor, fewer where memory is short."""
    return get_budget().processes


class Pool(NamedTuple):
    """Worker processes for several calls of `map_ordered`: each costs half a second of imports. Without `processes` the caller works."""

    workers: int
    processes: ProcessPoolExecutor | None


@contextmanager
def start_workers(workers: int | None = None) -> Iterator[Pool]:
    """Start `workers` processes (default: `count_workers`) and end them with the block. Each has its share of this process's memory.

    They are forked from a clean server process, because forking a process that runs Polars or DuckDB threads can deadlock. They end with
    this process, however it ends, and at once when the block is interrupted.
    """
    workers = workers or count_workers()
    # Tests and small files stay in this process: a pool costs more than it saves, and a debugger sees the function.
    if workers == 1:
        yield Pool(1, None)
        return
    # `fork` would copy locks that other threads hold at that moment, and the child would wait for them for ever. For the same reason the
    # server has nothing preloaded: `import polars` starts three threads, one of which removes spilled rows, and a forked worker would lack
    # them. A worker would start in .01 instead of .46 CPU seconds; a step that has a pool takes many times as long.
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker, initargs=(_share_budget(workers),)) as processes:
        try:
            yield Pool(workers, processes)
        except BaseException as error:
            if not isinstance(error, Exception):  # Ctrl-C: nobody waits for what is in flight
                _kill_children()
            raise
        finally:
            processes.shutdown(wait=True, cancel_futures=True)


def _share_budget(workers: int) -> MemoryBudget:
    """Return the budget of one of `workers` processes."""
    budget = get_budget()
    return replace(budget, processes=max(workers, budget.processes)).take_share()


def _begin_worker(budget: MemoryBudget) -> None:
    """Keep a worker within `budget`, and end it with its parent, the server that ends with the build.

    A worker that outlived it would write into the next build's files. Ctrl-C reaches all processes of a terminal, so workers leave the
    reaction to the build.
    """
    set_budget(budget)
    # The kernel sends the signal, so that SIGKILL of the build ends the workers, too: no handler of Python runs then.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _kill_children() -> None:
    for process in multiprocessing.active_children():
        process.kill()


def map_ordered(
    function: Callable[[Item], Result], items: Iterable[Item], *, workers: int | None = None, pool: Pool | None = None
) -> Iterator[Result]:
    """Yield `function(item)` for each item, in the items' order; in `pool`, or in `workers` processes of its own.

    Items of a known number (a list) count as progress of the step.

    `function` and the items must be picklable (a module-level function or a partial of one). An error in a worker is raised here with its
    own type; what is in flight is dropped.
    """
    if pool is None:
        with start_workers(workers) as own:
            yield from map_ordered(function, items, pool=own)
        return
    start_counting(len(items) if isinstance(items, Sized) else 0)
    if pool.processes is None:
        for item in items:
            yield function(item)
            count_one()
        return
    waiting: deque[Future[tuple[Result, WorkerCost]]] = deque()
    measured = partial(_call_measured, function)
    try:
        for item in items:
            waiting.append(pool.processes.submit(measured, item))
            # Await the oldest result and not the next finished one: the order of the items is the order of the rows on disk.
            if len(waiting) >= pool.workers * IN_FLIGHT_PER_WORKER:
                yield _take_result(waiting.popleft())
                count_one()
        while waiting:
            yield _take_result(waiting.popleft())
            count_one()
    finally:
        # The consumer may stop early or an item may fail: what has not begun must not run on into the next stage.
        for future in waiting:
            future.cancel()


def call_alone(function: Callable[[Item], Result], item: Item) -> Result:
    """Return `function(item)`, called in a process of its own. BrokenProcessPool when that process dies."""
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(1, mp_context=context, initializer=_begin_worker, initargs=(_share_budget(1),)) as process:
        return _take_result(process.submit(partial(_call_measured, function), item))


def _call_measured(function: Callable[[Item], Result], item: Item) -> tuple[Result, WorkerCost]:
    """Call the function in a worker, and measure what the worker has cost since its last result."""
    return function(item), measure_worker()


def _take_result(future: Future[tuple[Result, WorkerCost]]) -> Result:
    result, cost = future.result()
    charge_worker(cost)
    return result
