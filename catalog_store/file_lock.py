"""The lock of a file that one process at a time may hold.

Out of scope: which work needs the lock, and what the refused process reports to its caller.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def hold_lock(file: Path, refusal: Exception) -> Iterator[None]:
    """Hold the lock of `file` during the block. Raise `refusal` at once when another process holds it."""
    # Append mode creates the file without emptying it. The file stays: its removal would race with the next holder.
    with file.open("a") as lock:
        try:
            # The kernel releases the lock when the process dies, so a killed process blocks nobody.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise refusal from None
        yield
