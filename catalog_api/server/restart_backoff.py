"""When a process that died is started anew: at once, unless it keeps dying soon after it was started.

What must not live here: processes (server/process_supervisor.py, server/companion_processes.py).
"""

from __future__ import annotations

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
"""Before the second restart in a row, doubled to the longest."""
STEADY_SECONDS = 10.0
"""A process that ran so long died of something new; one that cannot work at all dies within its imports, which take seconds."""


class Restarts:
    """The restarts of one process and of those that took its place. Seconds are `time.monotonic`'s."""

    def __init__(self) -> None:
        """None yet."""
        self._started_at = 0.0
        self._wait = 0.0

    def note_start(self, now: float) -> None:
        """It was started."""
        self._started_at = now

    def note_death(self, now: float) -> float:
        """It died, or could not be started; how many seconds to wait before it is started anew."""
        if now - self._started_at >= STEADY_SECONDS:
            self._wait = 0.0
        seconds, self._wait = self._wait, min(max(2 * self._wait, FIRST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)
        return seconds
