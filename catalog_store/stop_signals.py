"""SIGTERM and SIGINT for programs that run until somebody stops them.

A handler runs in the main thread, between any two instructions. `threading.Event.set` takes a lock that `wait` holds for moments. If the
main thread is just there, the handler waits for its own thread, and the program never ends. So the work runs in a thread of its own, and
the main thread does nothing but wait for it. Programs with an event loop use `loop.add_signal_handler` instead.
"""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


def run_until_signal(run: Callable[[], Result], stop: Callable[[], object]) -> Result:
    """Run `run` in a thread and return its result, or raise its error. SIGTERM and SIGINT call `stop`, which asks it to end.

    Call it in the main thread. The handlers stay afterwards.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop())
    with ThreadPoolExecutor(1, "run-until-signal") as pool:
        return pool.submit(run).result()
