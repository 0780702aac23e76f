"""Signals that this process has caught, remembered where no library can drop them.

An interruption is an exception in the middle of whatever runs, and code may swallow it. Python drops what a finaliser raises, and every
member of a tar archive has one. DuckDB raises an ordinary RuntimeError in its place. A build that lost its interruption went on to the end.
So the command line watches for signals, and every step asks before it begins. Out of scope: what a command prints.
"""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

Result = TypeVar("Result")

_NOTICE_SECONDS = 0.5
"""Longest time between a signal and its exception, while a process waits for a result."""

_watched: list[int] = []
"""Read ends of the pipes of the blocks that watch now."""
_caught: list[int] = []
"""Signals that were read from a pipe."""


@contextmanager
def watch_signals() -> Iterator[None]:
    """Remember SIGINT and SIGTERM that arrive during the block, whichever handler they have. Outside of the main thread, do nothing."""
    if threading.current_thread() is not threading.main_thread():  # set_wakeup_fd raises ValueError there
        yield
        return
    # Libraries replace handlers. Python writes the number of each signal to this pipe all the same.
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    _watched.append(read)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        _watched.remove(read)
        _caught.clear()
        os.close(read)
        os.close(write)


def find_caught_signal() -> int | None:
    """Return SIGINT or SIGTERM if one of them came since `watch_signals` began, else None."""
    for pipe in _watched:
        try:
            # Every signal with a handler arrives here, also those of libraries.
            _caught.extend(number for number in os.read(pipe, 4096) if number in (signal.SIGINT, signal.SIGTERM))
        except BlockingIOError:
            continue
    return _caught[0] if _caught else None


def require_no_signal() -> None:
    """Raise KeyboardInterrupt if SIGINT or SIGTERM came, although whoever was interrupted went on."""
    if find_caught_signal():
        raise KeyboardInterrupt


def wait_for_result(future: Future[Result]) -> Result:
    """Return the result of a future, or raise its error; unlike `Future.result`, notice a signal within a moment."""
    # The handler that Polars installs for SIGINT lets a wait without an end go on (SA_RESTART). Python then raises KeyboardInterrupt only
    # when the result has come, which may be an hour later.
    while not future.done():
        wait([future], timeout=_NOTICE_SECONDS)
    return future.result()
