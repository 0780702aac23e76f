"""The runner of independent jobs: a function, called for each of many inputs, with the results in the order of the inputs.

The builders of a snapshot are handed a runner, so that they know nothing of processes: the pipeline brings its pool, and everyone else lets
the jobs run in turn. A job is a module-level function, or a partial of one; its input and result can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

JobRunner = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""Calls a function for each item and yields the results in the items' order. It takes items only as it hands them out."""


def run_in_turn(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Run the jobs in this process, one after the other."""
    return map(function, items)
