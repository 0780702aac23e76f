"""Processes of this machine that run the functions of a pool, and one function in a process of its own."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from catalog_store.memory_budget import get_budget, set_budget
from pipeline.engine.usage import call_measured, charge_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from catalog_store.memory_budget import MemoryBudget

Item = TypeVar("Item")
Result = TypeVar("Result")

_PR_SET_PDEATHSIG = 1
"""<linux/prctl.h>"""


@contextmanager
def start_processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Start `workers` processes and end them with the block. Each has its share of this process's memory.

    They are forked from a clean server process, because forking a process that runs Polars or DuckDB threads can deadlock. They end with
    this process, however it ends, and at once when the block is interrupted.
    """
    # `fork` would copy locks that other threads hold at that moment, and the child would wait for them for ever. For the same reason the
    # server has nothing preloaded: `import polars` starts three threads, one of which removes spilled rows, and a forked worker would lack
    # them. A worker would start in .01 instead of .46 CPU seconds; a step that has a pool takes many times as long.
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker, initargs=(_share_budget(workers),)) as processes:
        try:
            yield processes
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


def call_alone(function: Callable[[Item], Result], item: Item) -> Result:
    """Return `function(item)`, called in a process of its own. BrokenProcessPool when that process dies."""
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(1, mp_context=context, initializer=_begin_worker, initargs=(_share_budget(1),)) as process:
        result, cost = process.submit(partial(call_measured, function), item).result()
    charge_worker(cost)
    return result
