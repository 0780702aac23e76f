"""`python -m stream_monitor.capture.decoder_server`: forks a confined decoding process for each stream of a worker. Started by decoders.py.

The process for one stream is confined as those for uploads are (audio_recognition/uploads/confinement.py) before it reads a byte: it has
one socket, to the worker, from which it gets the stream's bytes and to which it tells the sound. What must not live here: the decoding
itself (sound.py), the worker's end (decoders.py).
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
    Ended,
    Format,
    Heard,
    Wanted,
    packed,
)
from stream_monitor.capture.errors import CaptureError
from stream_monitor.capture.sound import sound

if TYPE_CHECKING:
    from audio_recognition.uploads.limits import Limits

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class WorkerGoneError(Exception):
    """The worker closed its end."""


class BytesOfWorker:
    """The stream's bytes, asked of the worker. As `Source`, for `sound`."""

    def __init__(self, channel: socket.socket) -> None:
        """`channel` is this process's end."""
        self._channel = channel

    def read(self) -> bytes:
        """What has come, at least a byte; empty at the end."""
        self._channel.send(packed(Wanted()))
        packet = self._channel.recv(LONGEST_MESSAGE)
        if not packet:
            raise WorkerGoneError
        return packet[1:] if packet.startswith(DATA) else b""


def serve_one_stream(channel: socket.socket, limits: Limits) -> None:
    """Confine this process for good, then decode what the worker sends until either end has had enough."""
    process = os.pidfd_open(os.getpid())
    has_filter = confine(limits)
    socket.send_fds(channel, [packed(Hello(has_filter))], [process])
    try:
        decode(BytesOfWorker(channel), channel)
        ended = Ended()
    except CaptureError as error:
        ended = Ended(_CONTROL.sub(" ", str(error))[:LONGEST_TEXT], error.is_lasting)
    except WorkerGoneError:
        return
    except MemoryError:
        ended = Ended("the stream takes more memory than decoding may have")
    except Exception as error:  # noqa: BLE001 - whatever a crafted stream makes a decoder raise, the worker is told
        ended = Ended(f"decoding the stream failed ({type(error).__name__})")
    channel.send(packed(ended))


def decode(source: BytesOfWorker, channel: socket.socket) -> None:
    """Tell the sound of the source as it comes. CaptureError."""
    for piece in sound(source, lambda text: _tell(channel, Format(_CONTROL.sub(" ", text)[:LONGEST_FORMAT]))):
        for start in range(0, len(piece), MOST_SAMPLES):
            _tell(channel, Heard(piece[start : start + MOST_SAMPLES].astype("<i2").tobytes()))


def _tell(channel: socket.socket, message: Format | Heard) -> None:
    try:
        channel.send(packed(message))
    except ConnectionError:
        raise WorkerGoneError from None


def warm_up() -> None:
    """Decode some silence, so that a fork finds everything imported: it cannot open a file any more."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(2)
        written.setsampwidth(2)
        written.setframerate(4 * SAMPLE_RATE)
        written.writeframes(bytes(4 * 4 * SAMPLE_RATE * 3))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, suppress(CaptureError):  # what is left at the end is no whole link
        for piece in sound(_Held(file.getvalue())):
            _tell(ours, Heard(piece[:MOST_SAMPLES].astype("<i2").tobytes()))
            theirs.recv(LONGEST_MESSAGE)


class _Held:
    """Bytes that are here already, as a source."""

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
