"""Files whose content changes while size and time of change stay, as on a failing disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def rot(file: Path, place: float = 0.5) -> None:
    """Flip the bits of 16 bytes at this share of the file."""
    times = file.stat()
    content = bytearray(file.read_bytes())
    first = int(place * len(content))
    content[first : first + 16] = bytes(byte ^ 0xFF for byte in content[first : first + 16])
    # In place: other names of the file change, too.
    with file.open("r+b") as opened:
        opened.write(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
