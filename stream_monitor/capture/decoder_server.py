"""`python -m stream_monitor.capture.decoder_server`: forks a confined decoding process for each stream of a worker. Started by decoders.py.

A stream's process is confined like those for uploads (audio_recognition/uploads/confinement.py) before it reads a byte. Its one socket
leads to the worker, which sends the stream's bytes and receives the sound. Out of scope: decoding itself (sound.py), the
worker's end (decoders.py).
"""

from __future__ import annotations

import io
import os
import re
import socket
import wave
from contextlib import suppress
from typing import TYPE_CHECKING

import av.logging

from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.uploads.confinement import confine
from audio_recognition.uploads.fork_server import serve_forks
from audio_recognition.uploads.messages import Hello
from stream_monitor.capture.decoder_messages import (
    DATA,
    LONGEST_FORMAT,
    LONGEST_MESSAGE,
    LONGEST_TEXT,
    MOST_SAMPLES,
    BytesRequest,
    Ended,
    Format,
    Samples,
    encode_message,
)
from stream_monitor.capture.errors import CaptureError
from stream_monitor.capture.sound import decode_sound

if TYPE_CHECKING:
    from audio_recognition.uploads.limits import Limits

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class WorkerGoneError(Exception):
    """The worker closed its end."""


class BytesOfWorker:
    """A `BytesSource` that asks the worker for the stream's bytes."""

    def __init__(self, channel: socket.socket) -> None:
        """Ask over `channel`, this process's end."""
        self._channel = channel

    def read(self) -> bytes:
        """Return at least a byte; empty at the end."""
        self._channel.send(encode_message(BytesRequest()))
        packet = self._channel.recv(LONGEST_MESSAGE)
        if not packet:
            raise WorkerGoneError
        return packet[1:] if packet.startswith(DATA) else b""


def serve_one_stream(channel: socket.socket, limits: Limits) -> None:
    """Confine this process for good, then decode the worker's bytes until either end stops."""
    # Opened before the process is confined: afterwards it gets no new descriptor (RLIMIT_NOFILE is 0).
    process = os.pidfd_open(os.getpid())
    has_filter = confine(limits)
    socket.send_fds(channel, [encode_message(Hello(has_filter))], [process])
    try:
        decode(BytesOfWorker(channel), channel)
        ended = Ended()
    except CaptureError as error:
        # The worker refuses texts with control characters, and FFmpeg's errors may quote bytes of the stream.
        ended = Ended(_CONTROL.sub(" ", str(error))[:LONGEST_TEXT], error.is_lasting)
    except WorkerGoneError:
        return
    except MemoryError:
        ended = Ended("the stream takes more memory than decoding may have")
    except Exception as error:  # noqa: BLE001 - a crafted stream may make a decoder raise anything: the worker must hear of it
        ended = Ended(f"decoding the stream failed ({type(error).__name__})")
    channel.send(encode_message(ended))


def decode(source: BytesOfWorker, channel: socket.socket) -> None:
    """Send the sound of the source as it comes. CaptureError."""
    for piece in decode_sound(source, lambda text: _send(channel, Format(_CONTROL.sub(" ", text)[:LONGEST_FORMAT]))):
        for start in range(0, len(piece), MOST_SAMPLES):
            _send(channel, Samples(piece[start : start + MOST_SAMPLES].astype("<i2").tobytes()))


def _send(channel: socket.socket, message: Format | Samples) -> None:
    try:
        channel.send(encode_message(message))
    except ConnectionError:
        raise WorkerGoneError from None


def warm_up() -> None:
    """Decode some silence, so that everything is imported before a fork, which cannot open files any more."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        # Stereo at another rate, so that the resampler is loaded and used, too.
        written.setnchannels(2)
        written.setsampwidth(2)
        written.setframerate(4 * SAMPLE_RATE)
        written.writeframes(bytes(4 * 4 * SAMPLE_RATE * 3))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, suppress(CaptureError):  # the rest at the end is not a whole link
        for piece in decode_sound(_FixedBytes(file.getvalue())):
            _send(ours, Samples(piece[:MOST_SAMPLES].astype("<i2").tobytes()))
            theirs.recv(LONGEST_MESSAGE)


class _FixedBytes:
    """A source of fixed bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        data, self._data = self._data, b""
        return data


def main() -> None:
    """Fork for every request on standard input until the worker closes it."""
    av.logging.set_level(None)  # decoders complain about every broken packet of strangers

    def serve(descriptors: list[int], limits: Limits) -> None:
        with socket.socket(fileno=descriptors[0]) as channel:
            serve_one_stream(channel, limits)

    serve_forks(warm_up, serve)


if __name__ == "__main__":
    main()
