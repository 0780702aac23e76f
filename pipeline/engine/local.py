"""Processes of this machine that run the functions of a pool, and one function in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from catalog_store.memory_budget import get_budget, set_budget
from pipeline.engine.interruption import wait_for_result
from pipeline.engine.usage import call_measured, charge_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from catalog_store.memory_budget import MemoryBudget

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def start_processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Start `workers` processes and end them with the block. Each has its share of this process's memory.

    They are forked from a clean server process, because forking a process that runs Polars or DuckDB threads can deadlock. They end with
    this process, however it ends, and at once when the block is interrupted.
    """
    with _start(workers, _begin_worker, _share_budget(workers)) as processes:
        yield processes


@contextmanager
def start_process(begin: Callable[[Item], None], item: Item) -> Iterator[ProcessPoolExecutor]:
    """Start one process, and end it with the block. It calls `begin(item)` first, and has all memory of this process."""
    with _start(1, _begin_alone, get_budget(), begin, item) as process:
        yield process


@contextmanager
def _start(workers: int, begin: Callable[..., None], *settings: object) -> Iterator[ProcessPoolExecutor]:
    # `fork` would copy locks that other threads hold at that moment, and the child would wait for them for ever. For the same reason the
    # server has nothing preloaded: `import polars` starts three threads, one of which removes spilled rows, and a forked worker would lack
    # them. A worker would start in .01 instead of .46 CPU seconds; a step that has a pool takes many times as long.
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=begin, initargs=settings) as processes:
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
    """Keep a worker within `budget`, and end it with the process that started it.

    A worker that outlived it would write into the next build's files, and hold its memory for ever. Ctrl-C reaches all processes of a
    terminal, so workers leave the reaction to the build.
    """
    set_budget(budget)
    # No handler of Python runs in a process that SIGKILL ends, and the fork server lives as long as one of its workers does.
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # DuckDB takes a process whose main module is no file for an interactive session, and draws its progress on standard output.
    main = sys.modules["__main__"]
    main.__file__ = getattr(main, "__file__", None) or __file__


def _begin_alone(budget: MemoryBudget, begin: Callable[[Item], None], item: Item) -> None:
    _begin_worker(budget)
    begin(item)


def end_with_parent() -> None:
    """End this process as soon as the process that started it has ended, without a word."""
    threading.Thread(target=_wait_for_parent, daemon=True, name="end with parent").start()


def _wait_for_parent() -> None:
    # The kernel closes the parent's end of a pipe, whatever ended it.
    if parent := multiprocessing.parent_process():
        parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_children() -> None:
    for process in multiprocessing.active_children():
        process.kill()


def call_alone(function: Callable[[Item], Result], item: Item) -> Result:
    """Return `function(item)`, called in a process of its own. BrokenProcessPool when that process dies."""
    with start_processes(1) as process:
        result, cost = wait_for_result(process.submit(partial(call_measured, function), item))
    charge_worker(cost)
    return result
