"""The allowed system calls of a decoding process; every other one fails with EPERM. The filter is the kernel's seccomp, set by `prctl`.

A call belongs here when decoding needs it, and when it acts only on the process's own memory and its two descriptors. Without
`sched_getaffinity` FFmpeg sees one CPU and starts no threads; `clone` is missing for any that it would start.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from typing import Final

_CALLS: Final = {
    # name: (number on x86_64, number on aarch64 or None where it has no such call)
    "read": (0, 63),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigreturn": (15, 139),
    "pread64": (17, 67),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "getpid": (39, 172),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "sendmsg": (46, 211),
    "exit": (60, 93),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
}
_MACHINES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Name -> the kernel's number of the architecture, position in the pairs above."""

_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2
_ALLOW: Final = 0x7FFF0000
_FAIL: Final = 0x00050000 | errno.EPERM
_LOAD: Final = 0x20
_JUMP_IF_EQUAL: Final = 0x15
_RETURN: Final = 0x06
_NUMBER_AT: Final = 0
_ARCHITECTURE_AT: Final = 4


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_system_calls() -> bool:
    """Keep only the listed calls, for good. Return False when the machine is unknown or the kernel does not filter."""
    if platform.machine() not in _MACHINES:
        return False
    instructions = _build_instructions(*_MACHINES[platform.machine()])
    program = _Program(len(instructions), b"".join(instructions))
    c = ctypes.CDLL(None)
    return bool(c.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


def _build_instructions(architecture: int, place: int) -> list[bytes]:
    """Return the filter as the kernel's packet-filter instructions: (code, steps if true, steps if false, value) each."""
    numbers = [numbers[place] for numbers in _CALLS.values()]
    # The architecture first: the same numbers mean other calls on another one.
    steps = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_JUMP_IF_EQUAL, 0, len(numbers) + 1, architecture), (_LOAD, 0, 0, _NUMBER_AT)]
    # A jump counts the instructions that it skips: those up to the last one, which allows the call.
    steps += [(_JUMP_IF_EQUAL, len(numbers) - index, 0, number) for index, number in enumerate(numbers)]
    steps += [(_RETURN, 0, 0, _FAIL), (_RETURN, 0, 0, _ALLOW)]
    return [struct.pack("=HBBI", *step) for step in steps]
