"""Standard error that never stops work: a line that cannot be written is dropped and counted.

A log's disk may fill up, its reader may exit or hang, a descriptor may be closed. Python's own stream then raises or waits for ever, and
stops the thread that logs. `guard_standard_error` replaces it by a stream that neither raises nor waits. Every long-running process calls
it first (catalog_store/log.py does). When writing works again, a line reports how many lines are missing. The form of a line belongs in
log.py. Standard output carries answers and is not guarded.
"""

from __future__ import annotations

import io
import os
import select
import socket
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import ReadableBuffer

_DESCRIPTOR = 2
_PIECE = select.PIPE_BUF
"""Bytes that a pipe accepts whole, or not at all (POSIX atomic write)."""


class TolerantStream(io.RawIOBase):
    """A byte stream to one descriptor. Lines that cannot be written now are dropped, never waited for."""

    def __init__(self, descriptor: int, format_lost: Callable[[int], str]) -> None:
        """Open the descriptor. `format_lost` formats the line that reports a number of lost lines, without its end."""
        super().__init__()
        self.lost_lines = 0
        """Lines dropped since the process began."""
        self.format_lost = format_lost
        self._reported_lost = 0
        self._is_torn = False
        self._descriptor = descriptor
        self._out = descriptor
        self._is_waiting_kind = True
        self._socket: socket.socket | None = None
        with suppress(OSError):
            kind = os.fstat(descriptor).st_mode
            if stat.S_ISFIFO(kind):
                # A file description of its own: non-blocking mode belongs to the description, and this one is shared with the parent
                # process.
                self._out = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                self._is_waiting_kind = False
            elif stat.S_ISSOCK(kind):
                self._socket = socket.socket(fileno=os.dup(descriptor))
            self._is_waiting_kind = self._is_waiting_kind and not stat.S_ISREG(kind)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Write whole lines or drop them; always return the number of bytes given."""
        content = bytes(data)
        if missing := self.lost_lines - self._reported_lost:
            # A torn line has no end, so the notice begins with one.
            notice = (b"\n" if self._is_torn else b"") + self.format_lost(missing).encode() + b"\n"
            if self._write_part(notice) < len(notice):
                self.lost_lines += _count_lines(content)
                return len(content)
            self._reported_lost, self._is_torn = self.lost_lines, False
        written = self._write_part(content)
        if written < len(content):
            self.lost_lines += _count_lines(content[written:])
            self._is_torn = self._is_torn or not (content[:written].endswith(b"\n") or written == 0)
        return len(content)

    def _write_part(self, content: bytes) -> int:
        """Return how many bytes could be written without waiting."""
        written = 0
        try:
            while written < len(content):
                # A descriptor that is ready may still wait for a write of more than PIPE_BUF bytes.
                piece = content[written : written + _PIECE] if self._is_waiting_kind else content[written:]
                if self._socket is not None:
                    count = self._socket.send(piece, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                elif self._is_waiting_kind and not self._is_ready():
                    break
                else:
                    count = os.write(self._out, piece)
                if not count:
                    break
                written += count
        # No room, no reader, or no descriptor: the caller counts what is left.
        except (OSError, ValueError):
            pass
        return written

    def _is_ready(self) -> bool:
        poll = select.poll()
        poll.register(self._out, select.POLLOUT)
        return any(state & select.POLLOUT for _, state in poll.poll(0))


def guard_standard_error(format_lost: Callable[[int], str] = "{} lines of the log are lost".format) -> None:
    """Make writing to `sys.stderr` in this process never raise and never wait. A repeated call replaces `format_lost`.

    Closed descriptors 0 to 2 become /dev/null. Otherwise the next opened file would receive the log.
    """
    global _guarded  # noqa: PLW0603 - a process has one standard error
    if _guarded is not None:
        _guarded.format_lost = format_lost
    # A test runner or a notebook captures standard error.
    if sys.stderr is not sys.__stderr__:
        return
    _open_standard_descriptors()
    _guarded = TolerantStream(_DESCRIPTOR, format_lost)
    sys.stderr = io.TextIOWrapper(_guarded, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def write_to_log(lines: bytes) -> None:
    """Write encoded lines to standard error as `guard_standard_error` left it. Never raises, never waits."""
    if _guarded is not None:
        _guarded.write(lines)
    elif sys.stderr is not None:
        with suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), lines)


def count_lost_lines() -> int:
    """Return how many lines of this process's log could not be written."""
    return 0 if _guarded is None else _guarded.lost_lines


_guarded: TolerantStream | None = None


def _open_standard_descriptors() -> None:
    for descriptor in range(_DESCRIPTOR + 1):
        try:
            os.fstat(descriptor)
        except OSError:
            with suppress(OSError):
                opened = os.open(os.devnull, os.O_RDWR)
                if opened != descriptor:
                    os.dup2(opened, descriptor)
                    os.close(opened)
                os.set_inheritable(descriptor, True)


def _count_lines(content: bytes) -> int:
    return content.count(b"\n") or 1
