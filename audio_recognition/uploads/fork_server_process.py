"""The process that decodes strangers' sound in forks. Uploads and streams start it here with a bare environment, and end its forks here.

The messages between the processes do not belong here.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

START_SECONDS: Final = 30.0
"""For the imports of the fork server: half a second of CPU, on a machine that may be busy."""
STOP_SECONDS: Final = 5.0
DYING_SECONDS: Final = 0.5
"""From the end of a process's sockets to its own, on a busy machine."""
_KEPT_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")
"""Environment variables that the process keeps. Others may hold secrets, and the process reads bytes from strangers."""
_ROOT: Final = Path(__file__).resolve().parents[2]


def start_fork_server(module: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start `python -m <module>`, which calls `serve_forks`. Return the process, and our end of its standard input."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    # One thread: BLAS would start its own before the first fork. Forks inherit the locks of those threads, but not the threads.
    environment |= {"PYTHONPATH": str(_ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - ours
            [sys.executable, "-m", module], stdin=theirs.fileno(), stdout=subprocess.DEVNULL, env=environment
        )
    return process, control


def end_process(descriptor: int) -> None:
    """Kill the process that `descriptor` (a pidfd) refers to and close it. A process number could be another process's by now."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    os.close(descriptor)
