"""`python -m audio_recognition.uploads.fork_server`: the process that forks a decoding process for each file. sandbox.py starts it.

Importing NumPy and FFmpeg takes a third of a second; a fork of a process with both takes milliseconds. It never reads a file itself, so
each fork starts as clean as the first. Its standard input is a socket to the server; it exits when that closes.
"""

from __future__ import annotations

import gc
import io
import math
import os
import signal
import socket
import sys
import wave
from typing import TYPE_CHECKING

import msgspec

from audio_recognition.chromaprint import FIRST_ITEM_SECONDS, SAMPLE_RATE
from audio_recognition.chromaprint.chroma import MOST_SPEED
from audio_recognition.decoding.decoder import AudioFile
from audio_recognition.uploads.child import WindowReader, serve_one_file
from audio_recognition.uploads.limits import Limits
from audio_recognition.uploads.messages import LONGEST_MESSAGE, WindowRequest
from catalog_store.log_stream import guard_standard_error

if TYPE_CHECKING:
    from collections.abc import Callable

READY = b"ready"


def main() -> None:
    """Fork for every upload on standard input until the server closes it."""
    serve_forks(_warm_up, _serve)


def serve_forks(warm_up: Callable[[], None], serve: Callable[[list[int], Limits], None]) -> None:
    """Fork for every request on standard input until it closes; `serve` is called in the fork with the descriptors of the request.

    `warm_up` imports everything that a fork needs, because a confined fork cannot open files.
    """
    guard_standard_error()
    control = socket.socket(fileno=0)
    warm_up()
    gc.collect()
    gc.freeze()  # forks share these pages until the collector writes to them
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles it: it closes the socket
    control.send(READY)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, LONGEST_MESSAGE, 2)
        if not message:
            return
        try:
            if os.fork() == 0:
                _become_child(control, descriptors, msgspec.msgpack.decode(message, type=Limits), serve)
        except OSError as error:  # no more processes: the server sees the channel closed
            sys.stderr.write(f"the fork server cannot fork: {error}\n")
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def _become_child(control: socket.socket, descriptors: list[int], limits: Limits, serve: Callable[[list[int], Limits], None]) -> None:
    """Run the fork; never returns."""
    status = 1
    try:
        control.close()
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nothing, standard)
        serve(descriptors, limits)
        status = 0
    finally:
        # Not sys.exit: a fork must never run the loop, the handlers or the buffers of the fork server.
        os._exit(status)


def _serve(descriptors: list[int], limits: Limits) -> None:
    file, channel = descriptors
    with os.fdopen(file, "rb") as opened, socket.socket(fileno=channel) as connected:
        serve_one_file(opened, connected, limits)


def _warm_up() -> None:
    """Decode and fingerprint some silence, which imports everything: a confined fork cannot open files."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(2)
        written.setsampwidth(2)
        written.setframerate(4 * SAMPLE_RATE)
        written.writeframes(bytes(4 * 4 * SAMPLE_RATE * math.ceil(FIRST_ITEM_SECONDS)))
    with AudioFile(file) as audio:
        WindowReader(audio).answer(WindowRequest(0.0, MOST_SPEED))


if __name__ == "__main__":
    main()
