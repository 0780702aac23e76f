"""Tests of decoding in confined processes: equal sound, and faults of a stream or process that cost only its own connection."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.uploads.limits import MEGABYTE, Limits
from stream_monitor.capture.decoder_messages import BytesRequest, Ended, Format, Samples, decode_message, encode_message
from stream_monitor.capture.decoders import Decoders, _Decoder
from stream_monitor.capture.errors import CaptureError, DecoderError, LastingCaptureError
from stream_monitor.capture.sound import decode_sound
from tests.processes import children
from tests.stream_monitor.capture.test_sound import FORMS, Bytes, made
from tests.stream_monitor.hostile_bytes import HOSTILE
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def decoders() -> Iterator[Decoders]:
    opened = Decoders()
    yield opened
    opened.close()


class Endless:
    """A station that plays the same seconds again and again, until it is closed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.is_closed = False

    def read(self) -> bytes:
        return b"" if self.is_closed else self._data

    def begin_next(self) -> bool:
        return False


def forks() -> list[int]:
    """Return the processes that decode a stream: children of the fork servers below this process."""
    return [fork for server in children(os.getpid(), b"decoder_server") for fork in children(server)]


@pytest.mark.parametrize("form", FORMS)
def test_sound_of_a_confined_process_is_that_of_the_decoder(decoders: Decoders, form: str) -> None:
    formats: list[list[str]] = [[], []]
    confined = np.concatenate(list(decoders.decode(Bytes(made(form)), formats[0].append)))
    assert np.array_equal(confined, np.concatenate(list(decode_sound(Bytes(made(form)), formats[1].append))))
    assert formats[0] == formats[1]


def test_decoder_of_a_stream_has_given_everything_up(decoders: Decoders) -> None:
    playing = decoders.decode(Endless(made("mp3")))
    next(playing)
    [process] = forks()
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":\t" in line)
    limits = Path(f"/proc/{process}/limits").read_text()
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")
    for name in ("Max open files", "Max file size", "Max core file size"):
        [line] = [one for one in limits.splitlines() if one.startswith(name)]
        assert line.split()[len(name.split()) : len(name.split()) + 2] == ["0", "0"]
    open_files = {path.name: path.readlink() for path in Path(f"/proc/{process}/fd").iterdir()} if os.geteuid() == 0 else {}
    assert sum(str(path).startswith("socket:") for path in open_files.values()) <= 1
    playing.close()
    until(lambda: process not in forks())


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bytes_end_their_stream_and_the_next_one_is_heard(decoders: Decoders, data: bytes) -> None:
    with suppress(CaptureError):
        for _ in decoders.decode(Bytes(data)):
            pass
    assert sum(map(len, decoders.decode(Bytes(made("mp3"))))) > 7 * SAMPLE_RATE


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_decoder_that_dies_ends_its_own_stream_alone(decoders: Decoders, how: signal.Signals) -> None:
    other = decoders.decode(Endless(made("mp3")))
    next(other)
    before = set(forks())
    playing = decoders.decode(Endless(made("aac")))
    next(playing)
    [process] = set(forks()) - before
    os.kill(process, how)
    with pytest.raises(DecoderError, match="decoder ended"):
        for _ in playing:
            pass
    assert len(next(other)) > 0
    other.close()


def test_decoder_that_hangs_is_ended() -> None:
    decoders = Decoders(slowest_seconds=4.0)  # longer than a busy machine stands still
    playing = decoders.decode(Endless(made("mp3")))
    next(playing)
    [process] = forks()
    os.kill(process, signal.SIGSTOP)
    with pytest.raises(DecoderError, match="busy"):
        for _ in playing:
            pass
    until(lambda: process not in forks())
    decoders.close()


@pytest.mark.long
def test_stream_that_takes_more_memory_than_allowed_is_refused_and_the_worker_lives() -> None:
    decoders = Decoders(Limits(cpu_seconds=20, memory_bytes=MEGABYTE))
    with pytest.raises(CaptureError):
        for _ in decoders.decode(Endless(made("opus"))):
            pass
    decoders.close()


def test_fork_server_that_died_is_replaced(decoders: Decoders) -> None:
    decoders.start()
    server = decoders._server
    assert server is not None
    server._process.kill()
    assert sum(map(len, decoders.decode(Bytes(made("mp3"))))) > 7 * SAMPLE_RATE


def test_decoder_reports_the_fault_of_a_stream(decoders: Decoders) -> None:
    with pytest.raises(LastingCaptureError, match="web page"):
        list(decoders.decode(Bytes(b"<!doctype html><html>" + b" " * 5000)))
    with pytest.raises(CaptureError, match="ended before any sound"):
        list(decoders.decode(Bytes(b"")))


def test_error_of_the_source_passes_through_the_decoder(decoders: Decoders) -> None:
    class Broken:
        def read(self) -> bytes:
            raise CaptureError("the connection broke")

    with pytest.raises(CaptureError, match="the connection broke"):
        list(decoders.decode(Broken()))
    until(lambda: not forks())


@pytest.mark.parametrize(
    "packet",
    [
        b"\xff" * 100,
        b"",
        encode_message(Samples(b"\0" * 3)),
        encode_message(Samples(b"")),
        encode_message(Samples(b"\0" * 60_000)),
        encode_message(Format("x" * 101)),
        encode_message(Format("mp3\n")),
        encode_message(Ended("y" * 501)),
        encode_message(Ended("a\0b")),
    ],
)
def test_message_of_a_decoder_that_breaks_the_protocol_is_refused(packet: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        decode_message(packet)


def test_decoder_that_takes_bytes_for_ever_and_gives_no_sound_is_ended() -> None:
    import socket  # noqa: PLC0415 - one test of many

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def take() -> None:
        while True:
            try:
                theirs.send(encode_message(BytesRequest()))
                theirs.recv(65_536)
            except OSError:
                return

    thread = threading.Thread(target=take)
    thread.start()
    decoder = _Decoder(ours, os.open("/dev/null", os.O_RDONLY), 20.0)
    with pytest.raises(DecoderError, match="gave no sound"):
        for _ in decoder.decode(Endless(bytes(32_000)), lambda _: None):
            pass
    ours.close()
    theirs.close()
    thread.join()
