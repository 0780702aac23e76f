"""A runner for tests that pickles function, input and result, as a process pool does."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def run_pickled(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Run the jobs in turn."""
    for item in items:
        sent, given = pickle.loads(pickle.dumps((function, item)))  # noqa: S301 - our own bytes
        yield pickle.loads(pickle.dumps(sent(given)))  # noqa: S301 - our own bytes
