"""`python -m catalog_api.tied PARENT COMMAND...`: becomes COMMAND, which gets SIGTERM when the process PARENT dies, however it dies.

Between the supervisor and each of its companions, so that none is left behind on its socket or lease when the supervisor is killed. The
wish survives exec. What must not live here: anything that takes time to import.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask the kernel for the signal, then become the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # It died before the kernel was asked.
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell: the supervisor says what is started


if __name__ == "__main__":
    main()
