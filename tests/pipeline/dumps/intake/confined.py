"""Staging of hostile dumps in a process of its own with little memory and time."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

MEMORY_BYTES = 6 << 30
"""Limit of address space. The libraries take half of it without touching it."""
CPU_SECONDS = 90

_SCRIPT = """
import sys
from pathlib import Path
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.dumps.errors import DumpError

if __name__ == "__main__":
    try:
        stage_dump(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    except DumpError as error:
        print(type(error).__name__, error)
"""


def stage_confined(platform: str, dump: Path, folder: Path, memory: int = MEMORY_BYTES) -> str:
    """Stage the dump; return the kind and text of the DumpError, or nothing. Any other end of the process fails the test."""

    def confine() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))

    command = [sys.executable, "-c", _SCRIPT, platform, str(dump), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS, preexec_fn=confine)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout
