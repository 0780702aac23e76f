"""What a process that is about to read a stranger's file gives up for good. Linux only: the limits are the kernel's.

    address space    RLIMIT_AS: what it has now and `Limits.memory_bytes`        CPU          RLIMIT_CPU, then SIGKILL
    writing          RLIMIT_FSIZE 0, and no system call that opens or writes     core dumps   none
    descriptors      those it has: the file and one socket                       privileges   PR_SET_NO_NEW_PRIVS
    system calls     a short list (system_calls.py): no files, network, processes, threads, signals to others

It goes when its parent goes, it is the first that the kernel ends when the machine's memory is short, and it yields the CPU to the server.
Not enforced: how fast it reads its own file; what speculative execution may leak.
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
    """Give everything up, now and for good; whether system calls are filtered, too. OSError if any other limit cannot be set."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    os.nice(_NICENESS)
    for option, value in ((_PR_SET_PDEATHSIG, signal.SIGKILL), (_PR_SET_DUMPABLE, 0), (_PR_SET_NO_NEW_PRIVS, 1)):
        _set(option, value)
    for what, limit in (
        (resource.RLIMIT_AS, _address_space() + limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 0),
    ):
        resource.setrlimit(what, (limit, limit))
    return filter_system_calls()


def _address_space() -> int:
    """Bytes that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _set(option: int, value: int) -> None:
    c = ctypes.CDLL(None, use_errno=True)
    if c.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) was refused")
