"""The server's view of the fork server and its forks: start, request, end. Their messages are not trusted.

Turns and the order of windows belong in sandbox.py, the processes themselves in fork_server.py and child.py.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import structlog

from audio_recognition.decoding.audio_errors import UndecodableAudioError, UnsupportedAudioError
from audio_recognition.uploads.fork_server_process import DYING_SECONDS, START_SECONDS, STOP_SECONDS, end_process, start_fork_server
from audio_recognition.uploads.messages import (
    LONGEST_MESSAGE,
    FileFacts,
    Hello,
    Refusal,
    WindowItems,
    WindowPeaks,
    WindowRequest,
    decode_message,
    pack_message,
)
from audio_recognition.uploads.sandbox_errors import SandboxDownError

if TYPE_CHECKING:
    from typing import BinaryIO, Self

    from audio_recognition.uploads.limits import Limits

log = structlog.get_logger("audio_recognition")


class ForkServer:
    """One process of fork_server.py."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        """Use `start` instead."""
        self._process = process
        self._control = control
        self._is_gone = False
        self._warned = False

    @classmethod
    async def start(cls) -> Self:
        """Start a new one and return it when it is ready. SandboxDownError."""
        process, control = start_fork_server("audio_recognition.uploads.fork_server")
        control.setblocking(False)
        server = cls(process, control)
        try:
            async with asyncio.timeout(START_SECONDS):
                is_ready = await asyncio.get_running_loop().sock_recv(control, LONGEST_MESSAGE)
        except BaseException as error:
            # A cancelled start must leave no process behind either.
            await server.stop()
            if isinstance(error, TimeoutError | OSError):
                raise SandboxDownError("the fork server does not start") from error
            raise
        if not is_ready:
            await server.stop()
            raise SandboxDownError(f"the fork server ended with exit code {process.returncode} before it was ready; it says why on stderr")
        return server

    @property
    def is_alive(self) -> bool:
        """Return whether it has not ended yet."""
        return not self._is_gone and self._process.poll() is None

    async def fork(self, file: BinaryIO, limits: Limits) -> DecodingProcess | None:
        """Fork a confined process that has `file` open; None if no process comes."""
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        channel.setblocking(False)
        try:
            # Our copy of the other end must close: else the channel would not show the death of the fork.
            with theirs:
                socket.send_fds(self._control, [pack_message(limits)], [file.fileno(), theirs.fileno()])
            async with asyncio.timeout(limits.deadline_seconds):
                await _wait_readable(channel)
            message, descriptors, _, _ = socket.recv_fds(channel, LONGEST_MESSAGE, 1)
            if message:
                self._warn_once(msgspec.msgpack.decode(message, type=Hello))
                return DecodingProcess(channel, descriptors[0], limits.deadline_seconds)
        except OSError as error:  # TimeoutError is one
            self._is_gone = isinstance(error, ConnectionError)  # its end is closed; the kernel may report its exit a moment later
            log.warning("no process for an upload", error=str(error))
        except BaseException:
            channel.close()
            raise
        else:
            # The fork has ended, or the fork server with the request. The kernel reports the latter a moment later.
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, DYING_SECONDS)
        channel.close()
        return None

    async def stop(self) -> None:
        """Stop the process by closing its socket; its forks end with it."""
        self._control.close()
        try:
            await asyncio.to_thread(self._process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)

    def _warn_once(self, hello: Hello) -> None:
        if not hello.has_call_filter and not self._warned:
            self._warned = True
            log.warning("uploads are decoded without a filter of system calls: this kernel or machine has none")


class DecodingProcess:
    """One process of child.py and its remaining time."""

    def __init__(self, channel: socket.socket, descriptor: int, deadline_seconds: float) -> None:
        """`descriptor` refers to the process (a pidfd), because a process number could be another process's by now."""
        self._channel = channel
        self._descriptor = descriptor
        self._left = deadline_seconds

    async def receive_facts(self) -> FileFacts:
        """Return the first message. UnsupportedAudioError, UndecodableAudioError."""
        answer = await self._answer()
        if not isinstance(answer, FileFacts):
            raise _build_undecodable_error("the process sent a message out of turn")
        return answer

    async def request_window(self, ask: WindowRequest) -> WindowItems:
        """Return the sound of one window. UnsupportedAudioError, UndecodableAudioError."""
        answer = await self._request(ask)
        if not isinstance(answer, WindowItems):
            raise _build_undecodable_error("the process sent a message out of turn")
        return answer

    async def request_peaks(self, start_seconds: float, *, is_whole: bool = False) -> WindowPeaks:
        """Return the landmarks of one window. UnsupportedAudioError, UndecodableAudioError."""
        answer = await self._request(WindowRequest(start_seconds, wants_peaks=True, is_whole=is_whole))
        if not isinstance(answer, WindowPeaks):
            raise _build_undecodable_error("the process sent a message out of turn")
        return answer

    def end(self) -> None:
        """Kill the process now."""
        end_process(self._descriptor)
        self._channel.close()

    async def _request(self, ask: WindowRequest) -> FileFacts | WindowItems | WindowPeaks:
        try:
            self._channel.send(pack_message(ask))
        except OSError as error:
            raise _build_undecodable_error(str(error)) from None
        return await self._answer()

    async def _answer(self) -> FileFacts | WindowItems | WindowPeaks:
        loop = asyncio.get_running_loop()
        since = loop.time()
        try:
            async with asyncio.timeout(self._left):
                packet = await loop.sock_recv(self._channel, LONGEST_MESSAGE)
        except TimeoutError:
            raise _build_undecodable_error("the process exceeded the deadline") from None
        except OSError as error:
            raise _build_undecodable_error(str(error)) from None
        finally:
            # Only time that the server waits for the process counts.
            self._left -= loop.time() - since
        # A closed channel: the kernel ended the process by one of its limits, or a fault of the decoder did.
        if not packet:
            raise _build_undecodable_error("the process crashed, or exceeded its CPU time or memory")
        try:
            answer = decode_message(packet)
        except ValueError as error:
            raise _build_undecodable_error(f"the process sent a message that is not allowed: {error}") from None
        if isinstance(answer, Refusal):
            raise (UnsupportedAudioError if answer.is_unsupported else UndecodableAudioError)(answer.message)
        return answer


def _build_undecodable_error(why: str) -> UndecodableAudioError:
    log.warning("an upload was given up", why=why)
    return UndecodableAudioError("the file does not decode within the limits of time and memory")


async def _wait_readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    loop.add_reader(connection, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(connection)
