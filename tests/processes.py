"""Processes below a command under test, read from /proc. They may start and end meanwhile."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def children(process: int, named: bytes = b"") -> list[int]:
    """Return the processes that one started itself and that have `named` on their command lines.

    One that ends meanwhile is left out. A process that has ended has none.
    """
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):  # a thread that has ended
                found += map(int, (task / "children").read_text().split())
    return [child for child in found if _has_on_command_line(child, named)]


def descendants(process: int) -> list[int]:
    """Return all processes below one."""
    found = children(process)
    return found + [one for child in found for one in descendants(child)]


def is_running(process: int) -> bool:
    """Return whether a process is at work. One that has ended stays in the list until its parent has asked for its code."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


def _has_on_command_line(process: int, named: bytes) -> bool:
    try:
        return named in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
