"""Send a process SIGTERM when its parent dies, however it dies. No process is left behind on its port, socket or lease.

Workers call `end_with` themselves. Companions are started through `python -m catalog_api.server.parent_watchdog PARENT COMMAND...`, which
makes the request and becomes COMMAND: the request survives exec. What must not live here: imports that take time.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Ask the kernel for the signal. SystemExit when the process `parent` is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # It died before the kernel was asked.
    if os.getppid() != parent:
        sys.exit(1)


def main() -> None:
    """Ask, then become the command."""
    end_with(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell: the supervisor says what is started


if __name__ == "__main__":
    main()
