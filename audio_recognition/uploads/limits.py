"""The limits of one upload. A window of 30 s costs some 0.1 s of CPU and a few MB (docs/design/recognition.md has the figures)."""

from __future__ import annotations

from typing import Final

import msgspec

WINDOW_SECONDS: Final = 30.0
"""Audio decoded per window (contract E4)."""
MOST_SKIPPED_SECONDS: Final = 120.0
"""Digital silence skipped before the sound of one window."""
MOST_READ_SECONDS: Final = WINDOW_SECONDS + MOST_SKIPPED_SECONDS
MEGABYTE: Final = 2**20


class Limits(msgspec.Struct, frozen=True, array_like=True):
    """For one file, from opening to its last window. A file that exceeds them is answered as undecodable."""

    cpu_seconds: int = 10
    """The kernel then ends the process. All windows of a file take some 2 s; 94 MB that look like Ogg pages kept FFmpeg busy for 38."""
    memory_bytes: int = 256 * MEGABYTE
    """Address space on top of what a process has before it sees the file."""
    deadline_seconds: float = 40.0
    """Time spent waiting for the process in total. It is far above `cpu_seconds`, so even on a busy machine only a heavy file reaches it.
    """
    most_windows: int = 20
    """Ten minutes of sound: whole recordings, and the beginning, middle and quarters of anything longer."""


TIMELINE_LIMITS: Final = Limits(cpu_seconds=90, deadline_seconds=300.0, most_windows=480)
"""Four hours of sound: an hour takes some 13 s."""
