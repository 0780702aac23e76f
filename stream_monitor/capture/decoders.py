"""The worker's end of decoding: a confined process for each stream, forked by decoder_server.py. Its messages are not trusted.

    decoders = Decoders()                                       # one for a worker, for all threads
    for samples in decoders.decode(source, on_format): ...     # int16[n], mono, SAMPLE_RATE; CaptureError

A process that crashes, hangs or is killed ends its stream's connection with a DecoderError, and the stream reconnects as after any other
failure. The worker and its other streams do not notice. Out of scope: decoding itself (sound.py, decoder_server.py).
"""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import structlog

from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.uploads.fork_server import READY
from audio_recognition.uploads.fork_server_process import DYING_SECONDS, START_SECONDS, STOP_SECONDS, end_process, start_fork_server
from audio_recognition.uploads.limits import MEGABYTE, Limits
from audio_recognition.uploads.messages import Hello
from stream_monitor.capture.decoder_messages import (
    DATA,
    END,
    LONGEST_MESSAGE,
    MOST_BYTES,
    BytesRequest,
    Ended,
    Format,
    Samples,
    decode_message,
    encode_message,
)
from stream_monitor.capture.errors import CaptureError, DecoderError, LastingCaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from stream_monitor.capture.feed import PartedSource

log = structlog.get_logger("stream_monitor")

LIMITS: Final = Limits(cpu_seconds=3600, memory_bytes=128 * MEGABYTE)
"""Limits of one stream's process. A second of sound takes 2 ms: an hour of CPU lasts three weeks, then the stream reconnects."""
SLOWEST_SECONDS: Final = 20.0
"""Seconds by which the work of a process may exceed the length of its sound. A full core delays it a little, a crafted stream for good."""
MOST_SILENT_BYTES: Final = 4 * MEGABYTE
"""Bytes for a process without sound: more than feed.py ever tries."""
_TRIES: Final = 3
"""Attempts to fork: a dead fork server may show only when it is asked."""


class Decoders:
    """The decoding processes of one worker. Thread-safe; close it at the end."""

    def __init__(self, limits: Limits = LIMITS, *, slowest_seconds: float = SLOWEST_SECONDS) -> None:
        """Start nothing yet: the first stream does, or `start`."""
        self._limits = limits
        self._slowest_seconds = slowest_seconds
        self._lock = threading.Lock()
        self._server: _ForkServer | None = None
        self._warned = False

    def start(self) -> None:
        """Start the fork server unless it runs. DecoderError."""
        with self._lock:
            if self._server is None or not self._server.is_alive:
                self._stop()
                self._server = _ForkServer()

    def close(self) -> None:
        """Stop the fork server, and with it all decoding."""
        with self._lock:
            self._stop()

    def decode(self, source: PartedSource, on_format: Callable[[str], None] = lambda _text: None) -> Iterator[NDArray[np.int16]]:
        """Yield `int16[n]` pieces until the source ends. CaptureError: a fault of the source; DecoderError: its process ended or hung."""
        has_more = True
        while has_more:
            decoder = self._fork_decoder()
            try:
                yield from decoder.decode(source, on_format)
            finally:
                decoder.end()
            # The next part comes from another encoder (HLS: a discontinuity), so it gets another process.
            has_more = source.begin_next()

    def _fork_decoder(self) -> _Decoder:
        for _ in range(_TRIES):
            self.start()
            server = self._server
            if server is not None and (forked := server.fork(self._limits)):
                channel, descriptor, has_filter = forked
                if not has_filter and not self._warned:
                    self._warned = True
                    log.warning("streams are decoded without a filter of system calls: this kernel or machine has none")
                return _Decoder(channel, descriptor, self._slowest_seconds)
        raise DecoderError(f"no process could be started to decode the stream, after {_TRIES} attempts; the monitor's log has the reason")

    def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop()


class _ForkServer:
    """A process of decoder_server.py."""

    def __init__(self) -> None:
        """Start it and wait until it is ready. DecoderError."""
        self._process, self._control = start_fork_server("stream_monitor.capture.decoder_server")
        self._control.settimeout(START_SECONDS)
        try:
            is_ready = self._control.recv(LONGEST_MESSAGE) == READY
        except OSError:
            is_ready = False
        if not is_ready:
            self.stop()
            raise DecoderError("the server of decoding processes did not start; the reason is on its standard error")
        self._is_gone = False

    @property
    def is_alive(self) -> bool:
        """The process runs."""
        return not self._is_gone and self._process.poll() is None

    def fork(self, limits: Limits) -> tuple[socket.socket, int, bool] | None:
        """Fork a confined process; return its channel, its descriptor and whether its system calls are filtered. None: no process came."""
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A fork that hangs before its first message is given up like one that died.
        channel.settimeout(START_SECONDS)
        try:
            with theirs:
                # `theirs` is closed here afterwards: when the fork ends, this end sees the end of the channel.
                socket.send_fds(self._control, [encode_message(limits)], [theirs.fileno()])
            message, descriptors, _, _ = socket.recv_fds(channel, LONGEST_MESSAGE, 1)
        except OSError as error:
            message, descriptors = b"", []
            self._is_gone = isinstance(error, ConnectionError)
            log.warning("no process for a stream", error=str(error))
        if message and descriptors:
            return channel, descriptors[0], msgspec.msgpack.decode(message, type=Hello).has_call_filter
        # The fork or the server has ended; the exit code of the server comes a moment later.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(DYING_SECONDS)
        channel.close()
        return None

    def stop(self) -> None:
        """Close its socket, which ends it and its forks."""
        self._control.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Decoder:
    """One stream's process and its remaining busy time."""

    def __init__(self, channel: socket.socket, descriptor: int, slowest_seconds: float) -> None:
        """Take a pidfd as `descriptor`: a process number could belong to another process by now."""
        self._channel = channel
        self._descriptor = descriptor
        self._slowest_seconds = self._left = slowest_seconds
        self._undecoded = 0

    def decode(self, source: PartedSource, on_format: Callable[[str], None]) -> Iterator[NDArray[np.int16]]:
        unsent = b""
        while True:
            message = self._receive()
            if isinstance(message, BytesRequest):
                # A read may block for READ_SECONDS. That time is the source's: `_receive` alone counts the time of the process.
                unsent = self._send_bytes(unsent or source.read())
            elif isinstance(message, Samples):
                samples = np.frombuffer(message.samples, "<i2").astype(np.int16)
                self._undecoded = 0
                # Sound earns time. A process may lag in all by `slowest_seconds`, however long it runs.
                self._left = min(self._slowest_seconds, self._left + len(samples) / SAMPLE_RATE)
                yield samples
            elif isinstance(message, Format):
                on_format(message.text)
            elif message.message:
                raise (LastingCaptureError if message.is_lasting else CaptureError)(message.message)
            else:
                return

    def end(self) -> None:
        """Kill the process."""
        end_process(self._descriptor)
        self._channel.close()

    def _send_bytes(self, data: bytes) -> bytes:
        """Send the first bytes of `data`; return the rest."""
        piece = data[:MOST_BYTES]
        self._undecoded += len(piece)
        if self._undecoded > MOST_SILENT_BYTES:
            raise DecoderError(f"the decoder took {MOST_SILENT_BYTES // MEGABYTE} MB and gave no sound")
        try:
            self._channel.send(DATA + piece if piece else END)
        except OSError as error:
            raise _build_gone_error(error.strerror or str(error)) from None
        return data[MOST_BYTES:]

    def _receive(self) -> BytesRequest | Format | Samples | Ended:
        began = time.monotonic()
        self._channel.settimeout(max(self._left, 0.001))
        try:
            packet = self._channel.recv(LONGEST_MESSAGE)
        except TimeoutError:
            raise DecoderError(
                f"the decoder was busy for {self._slowest_seconds:.0f} s longer than the sound it gave, and was ended"
            ) from None
        except OSError as error:
            raise _build_gone_error(error.strerror or str(error)) from None
        finally:
            self._left -= time.monotonic() - began
        if not packet:
            raise _build_gone_error("it crashed, was killed, or took more memory or CPU than it may")
        try:
            return decode_message(packet)
        except ValueError as error:
            raise DecoderError(f"the decoder broke the protocol: {error}") from None


def _build_gone_error(why: str) -> DecoderError:
    return DecoderError(f"the stream's decoder ended: {why}")
