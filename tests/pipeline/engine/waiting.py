"""Waiting for what other processes do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_STATE = 2
"""Field of the state in /proc/<pid>/stat, behind the number and the name."""


def wait_until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    """Return once `is_so()` is true. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"not so within {seconds} s")
        time.sleep(0.05)


def is_running(process: int) -> bool:
    """Return whether a process is at work. One that has ended stays in the list until its parent has asked for its code."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").split()[_STATE] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False
