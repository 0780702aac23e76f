"""A process that gets SIGTERM when its parent dies, however it dies: none is left behind on its port, socket or lease.

Workers ask for it themselves (`end_with`). `python -m catalog_api.tied PARENT COMMAND...` asks and becomes COMMAND: it stands between the
supervisor and each of its companions; the wish survives exec. What must not live here: anything that takes time to import.
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
