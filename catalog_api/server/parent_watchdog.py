"""Send a process SIGTERM when its parent dies, however it dies. No process is left behind on its port, socket or lease.

Workers call `end_with_parent` themselves. Companions are started through `python -m catalog_api.server.parent_watchdog PARENT COMMAND...`,
which makes the request and becomes COMMAND: the request survives exec. Out of scope: imports that take time.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""prctl(2)."""


def end_with_parent(parent: int) -> None:
    """Ask the kernel for SIGTERM when the process `parent` dies. SystemExit when it is dead already."""
    if sys.platform == "linux":
        # The kernel ties the signal to the thread that made this process: it also comes when that thread ends (prctl(2)).
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # The parent may have died before the request: no signal comes then.
    if os.getppid() != parent:
        sys.exit(1)


def main() -> None:
    """Make the request, then become the command."""
    end_with_parent(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell: the supervisor names the program


if __name__ == "__main__":
    main()
