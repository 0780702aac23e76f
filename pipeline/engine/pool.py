"""Map of a pure function over many inputs, in order, with bounded work in flight.

The functions know nothing of processes. The same ones run in a plain loop, in processes of this machine (local.py), or on a cluster
(spark.py). Data between two maps goes through files (shuffle.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sized
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from catalog_store.memory_budget import get_budget
from catalog_store.pending_files import collect_pending, commit
from pipeline.engine.interruption import wait_for_result
from pipeline.engine.local import start_processes
from pipeline.engine.progress import count_one, enter_block
from pipeline.engine.spark import open_cluster
from pipeline.engine.usage import WorkerCost, call_measured, charge_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

Item = TypeVar("Item")
Result = TypeVar("Result")

PROCESSES = "processes"
"""Name of the engine that is processes of this machine. As a cluster, it takes all work, however small."""
IN_FLIGHT_PER_WORKER = 2
"""Inputs handed out per worker before the first result is awaited: bounds memory, keeps workers fed."""


def count_workers() -> int:
    """Return the number of processes that may work at once: one per processor, fewer where memory is short."""
    return get_budget().processes


class Processes(Protocol):
    """Processes that run functions: those of a pool on this machine, or of a cluster."""

    def submit(self, function: Callable[[Item], Result], item: Item, /) -> Future[Result]:
        """Start `function(item)`."""
        ...


class Pool(NamedTuple):
    """Worker processes for several calls of `map_ordered`: each costs half a second of imports. Without `processes` the caller works."""

    workers: int
    processes: Processes | None


class Engine(NamedTuple):
    """Cluster that runs the work of pools: its URL (or PROCESSES), and how many inputs it works on at once."""

    url: str
    tasks: int


_engines: list[Engine] = []
"""Engines that blocks of this process have set, the innermost last."""


@contextmanager
def use_engine(engine: Engine | None) -> Iterator[None]:
    """Let `engine` run the work of the pools that the block starts; None leaves it to processes of this machine."""
    if engine is None:
        yield
        return
    _engines.append(engine)
    try:
        yield
    finally:
        _engines.remove(engine)


def find_engine() -> Engine | None:
    """Return the engine that does the work of pools; None: processes of this machine do."""
    return _engines[-1] if _engines else None


def is_engine_used() -> bool:
    """Return whether an engine does the work of pools, so that the processors of this machine are few beside its own."""
    return bool(_engines)


@contextmanager
def start_workers(workers: int | None = None, *, is_small: bool = False) -> Iterator[Pool]:
    """Start `workers` processes (default: `count_workers`) and end them with the block. The caller alone does work that `is_small`.

    An engine that is in use takes the place of these processes, whatever the size of the work.
    """
    engine = find_engine() if workers is None else None
    if engine and engine.url != PROCESSES:
        with open_cluster(*engine) as cluster:
            yield Pool(cluster.tasks, cluster)
        return
    workers = engine.tasks if engine else workers or (1 if is_small else count_workers())
    # Tests and small files stay in this process: a pool costs more than it saves, and a debugger sees the function.
    if workers == 1 and engine is None:
        yield Pool(1, None)
        return
    with start_processes(workers) as processes:
        yield Pool(workers, processes)


def map_ordered(
    function: Callable[[Item], Result], items: Iterable[Item], *, workers: int | None = None, pool: Pool | None = None
) -> Iterator[Result]:
    """Yield `function(item)` for each item, in the items' order; in `pool`, or in `workers` processes of its own.

    Items of a known number (a list) are a section of the step's progress, which has the name of `function`. Others count for the section
    that was entered last.

    `function` and the items must be picklable (a module-level function or a partial of one). An error in a worker is raised here with its
    own type; what is in flight is dropped.

    An engine may run a call twice. So the function writes each file with `write_aside`, removes none, and does not read by its final name
    what it has written itself. Its files get their names when this process takes its result, before that result is yielded.
    """
    if pool is None:
        with start_workers(workers) as own:
            yield from map_ordered(function, items, pool=own)
        return
    if isinstance(items, Sized):
        with enter_block(_name(function), len(items)):
            yield from map_ordered(function, iter(items), pool=pool)
        return
    if pool.processes is None:
        for item in items:
            yield function(item)
            count_one()
        return
    waiting: deque[Future[_Done[Result]]] = deque()
    attempt = partial(_try_call, function)
    try:
        for item in items:
            waiting.append(pool.processes.submit(attempt, item))
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


def _name(function: Callable[..., object]) -> str:
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__).lstrip("_")


class _Done(NamedTuple, Generic[Result]):
    """Result of a call, its cost, and the files that it has written under pending names."""

    result: Result
    cost: WorkerCost
    written: list[tuple[Path, Path]]


def _try_call(function: Callable[[Item], Result], item: Item) -> _Done[Result]:
    """Call the function in a worker. The engine may do so twice, and this process takes one of the results."""
    with collect_pending() as attempt:
        result, cost = call_measured(function, item)
    return _Done(result, cost, attempt.written)


def _take_result(future: Future[_Done[Result]]) -> Result:
    done = wait_for_result(future)
    charge_worker(done.cost)
    commit(done.written)
    return done.result
