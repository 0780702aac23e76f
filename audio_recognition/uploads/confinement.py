"""The confinement of a process that is about to read a stranger's file, for good. Linux only: the kernel sets the limits.

  address space    RLIMIT_AS: the current size and `Limits.memory_bytes`      CPU          RLIMIT_CPU, then SIGKILL
  writing          RLIMIT_FSIZE 0, and no system call that opens or writes     core dumps   none
  descriptors      the existing ones: the file and one socket                  privileges   PR_SET_NO_NEW_PRIVS
  system calls     a short list (system_calls.py): no files, network, processes, threads, signals to others

It dies with its parent, it is the first that the kernel ends when memory is short, and it yields the CPU to the server. Not enforced: the
speed at which it reads its own file, and leaks by speculative execution.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from audio_recognition.uploads.system_calls import filter_system_calls

if TYPE_CHECKING:
    from audio_recognition.uploads.limits import Limits

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38
_NICENESS: Final = 5


def confine(limits: Limits) -> bool:
    """Confine this process now and for good. Return whether system calls are filtered too; OSError if any other limit cannot be set."""
    # First: the limits below forbid opening and writing files.
    Path("/proc/self/oom_score_adj").write_text("1000")
    os.nice(_NICENESS)
    for option, value in ((_PR_SET_PDEATHSIG, signal.SIGKILL), (_PR_SET_DUMPABLE, 0), (_PR_SET_NO_NEW_PRIVS, 1)):
        _set(option, value)
    for what, limit in (
        # NumPy and FFmpeg are mapped already; the limit is for what the file causes.
        (resource.RLIMIT_AS, _measure_address_space() + limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        # Open descriptors stay open; no new one can be made.
        (resource.RLIMIT_NOFILE, 0),
    ):
        # The hard limit too, so that the process cannot raise it again.
        resource.setrlimit(what, (limit, limit))
    # Last: the filter forbids the calls above.
    return filter_system_calls()


def _measure_address_space() -> int:
    """Return the bytes that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _set(option: int, value: int) -> None:
    c = ctypes.CDLL(None, use_errno=True)
    if c.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) was refused")
