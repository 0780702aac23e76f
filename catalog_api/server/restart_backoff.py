"""Delays between restarts: none after a long run, growing ones for a process that keeps dying soon after its start.

Out of scope: processes (process_supervisor.py, companion_processes.py).
"""

from __future__ import annotations

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0
"""The delay before the second restart in a row, and the bound up to which it doubles."""
STEADY_SECONDS = 10.0
"""Time after which the death of a process counts as a new fault. A process that cannot work dies in its imports, within seconds."""


class RestartBackoff:
    """The delays of one process and of its successors. Times are those of `time.monotonic`."""

    def __init__(self) -> None:
        """Start without a delay."""
        self._started_at = 0.0
        self._delay = 0.0

    def record_start(self, now: float) -> None:
        """Record that the process was started."""
        self._started_at = now

    def record_death(self, now: float) -> float:
        """Record that the process died, or could not be started; return the seconds to wait before the next start."""
        if now - self._started_at >= STEADY_SECONDS:
            self._delay = 0.0
        seconds, self._delay = self._delay, min(max(2 * self._delay, FIRST_DELAY_SECONDS), LONGEST_DELAY_SECONDS)
        return seconds
