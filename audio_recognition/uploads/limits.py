"""How much one upload may take. A window of 30 s costs some 0.1 s of CPU and a few MB (docs/design/recognition.md has the figures)."""

from __future__ import annotations

from typing import Final

import msgspec

WINDOW_SECONDS: Final = 30.0
"""Audio looked at in one go (contract E4)."""
MEGABYTE: Final = 2**20


class Limits(msgspec.Struct, frozen=True, array_like=True):
    """Of one file, from opening to its last window. What exceeds them is answered as undecodable."""

    cpu_seconds: int = 10
    """The kernel ends the process then. All windows of a file take some 2 s; 94 MB that look like Ogg pages kept FFmpeg busy for 38."""
    memory_bytes: int = 256 * MEGABYTE
    """Address space on top of what a process has before it sees the file."""
    deadline_seconds: float = 40.0
    """Time spent waiting for the process, all told. Far above `cpu_seconds`: only a file that is heavy already gets near it, however busy
    the machine."""
    most_windows: int = 20
    """Ten minutes of sound: whole recordings, and the beginning, middle and quarters of anything longer."""
