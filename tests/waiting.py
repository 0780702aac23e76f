"""Waits for conditions in other processes and threads. The limit is so long that only a fault reaches it."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

T = TypeVar("T")
PATIENCE_SECONDS = 600.0
"""No verdict depends on it: a machine ten times slower than ours is waited for, a test that hangs still ends."""
LOOK_SECONDS = 0.02


def until(holds: Callable[[], T], what: str = "", process: subprocess.Popen[bytes] | subprocess.Popen[str] | None = None) -> T:
    """Return the result of `holds` as soon as it is true.

    Raise AssertionError, naming `what` was expected, when it never is, or when the `process` that should cause it has ended.
    """
    ends = time.monotonic() + PATIENCE_SECONDS
    while not (answer := holds()):
        assert process is None or process.poll() is None, f"the process ended ({process and process.returncode}) before {what or 'it held'}"
        assert time.monotonic() < ends, f"waited {PATIENCE_SECONDS:.0f} s in vain{what and f' for {what}'}"
        time.sleep(LOOK_SECONDS)
    return answer


async def until_in_loop(holds: Callable[[], object], what: str = "") -> None:
    """Wait as `until` does, and let the event loop go on; `holds` may also be a coroutine function."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = holds()
        if await answer if inspect.isawaitable(answer) else answer:
            return
        assert time.monotonic() < ends, f"waited {PATIENCE_SECONDS:.0f} s in vain{what and f' for {what}'}"
        await asyncio.sleep(LOOK_SECONDS)
