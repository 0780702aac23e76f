"""How a step runs: in a process of its own if the catalog is large, and again after a shortage of memory or a fault inside DuckDB.

A workbench runs a single query again (pipeline/build/workbench.py). Here the whole work of a step runs again, whichever connection failed.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from catalog_store.database_faults import is_fault, is_shortage
from catalog_store.lake import LakeFaultError
from catalog_store.memory_budget import MemoryBudget, get_budget, use_budget
from pipeline.defs.resources import CatalogResource
from pipeline.engine.duckdb_session import MemoryShortageError
from pipeline.engine.full_disk import is_full_disk
from pipeline.engine.step_process import run_in_own_process

Result = TypeVar("Result")


def run_step(name: str, catalog: CatalogResource, work: Callable[[], Result]) -> Result:
    """Return the result of `work`, in a process of its own if the catalog is large, and again after a shortage or a fault.

    `work` and its result must be picklable. Raises as `run_with_second_try` and `run_in_own_process` do.
    """
    return run_with_second_try(name, catalog, partial(run_in_own_process, name, work) if catalog.is_large else work)


def run_with_second_try(name: str, catalog: CatalogResource, work: Callable[[], Result]) -> Result:
    """Return the result of `work`. After a shortage or a fault it runs again with the memory of all processes and one thread.

    A fault inside DuckDB depends on the timing of its threads, and each thread needs buffers of its own.

    Raises:
        MemoryShortageError: when the second run is short of memory, too.
        LakeFaultError: the same in the lake, which has a process of its own.
    """
    try:
        return work()
    except MemoryShortageError:
        # The query has had all memory already.
        raise
    except Exception as error:
        if not (isinstance(error, LakeFaultError) or is_fault(error)):
            raise
        catalog.warn(f"{name}: runs again with one thread and the memory of all processes: {str(error).splitlines()[0]}")
    budget = MemoryBudget(get_budget().total_bytes)
    with use_budget(budget):
        try:
            return work()
        except Exception as error:
            if isinstance(error, MemoryShortageError) or is_full_disk(error) or not is_shortage(error):
                raise
            message = f"{name} needs more than {budget.database_limit}, DuckDB's part of the memory of a build: raise CATALOG_MEMORY"
            raise MemoryShortageError(message) from error
