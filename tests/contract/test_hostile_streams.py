"""Tests of a whole server with hostile radio streams beside a good one: the good one is recognised, and the server answers."""

from __future__ import annotations

import gzip
import itertools
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.audio_recognition.audio import encoded
from tests.contract.awkward import song
from tests.contract.conftest import RECEIVERS, Api, memory_of_servers, serving
from tests.contract.stream_callers import STREAMS, with_card
from tests.processes import children
from tests.stream_monitor import servers
from tests.stream_monitor.hostile_bytes import HOSTILE
from tests.waiting import until

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

MEBIBYTE = 2**20
MOST_MEMORY = 400 * MEBIBYTE
"""Memory that all hostile streams together may add. They take 50 MB."""
GOOD = encoded(song(2), "mp3", rate=11025, kbps=64)
_FRAME_HEADS = b"\xff\xfb\x90\x64"
TITLE_OF_4_KB = b"\xff" + b"StreamTitle='" + b"x" * (255 * 16 - 13)
ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "a head without end": (b"HTTP/1.0 200 OK\r\n", b"X-A: b\r\n" * 500),
    "a head line without end": (b"HTTP/1.0 200 OK\r\nX-A: ", b"b" * 4000),
    "a chunk length without end": (servers.ok("audio/mpeg", "Transfer-Encoding: chunked"), b"0" * 4000),
    "titles of 4 kB behind each byte of sound": (servers.ok("audio/mpeg", "icy-metaint: 1"), b"\xff" + TITLE_OF_4_KB),
    "an empty title behind each byte of sound": (
        servers.ok("audio/mpeg", "icy-metaint: 1"),
        bytes(itertools.chain.from_iterable(zip(_FRAME_HEADS * 1000, bytes(4000), strict=True))),
    ),
    "zeros that were packed a thousandfold": (servers.ok("audio/mpeg", "Content-Encoding: gzip"), gzip.compress(bytes(10 * MEBIBYTE))),
    "a packet of Ogg without end": (
        servers.ok("application/ogg") + b"OggS\0\x02" + bytes(20) + b"\x01\x1e\x01vorbis",
        b"OggS\0\x01" + bytes(20) + b"\xff" + b"\xff" * 255 + bytes(65_025),
    ),
    "a redirect to itself": (b"HTTP/1.0 302 Found\r\nLocation: /a-redirect-to-itself\r\n\r\n", b""),
    "a playlist of itself": (servers.ok("audio/x-mpegurl") + b"#EXTM3U\n" + b"/a-playlist-of-itself\n" * 100, b""),
    **{name: (servers.ok(), data) for name, data in HOSTILE.items()},
}
"""Head of each stream, and the bytes that follow it for ever."""
KILLED = "a stream whose decoder dies"


class HostileRadio:
    """A server with a path for each of ENDLESS. All other paths play the song. `asked` holds the requested paths."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.is_over = threading.Event()

    def answer(self, connection: socket.socket, path: str) -> None:
        self.asked.add(path)
        sent = {path_of(name): what for name, what in ENDLESS.items()}
        head, piece = sent.get(path, (servers.ok(), GOOD))
        connection.settimeout(0.2)
        connection.sendall(head)
        while piece and not self.is_over.is_set():
            try:
                connection.sendall(piece)
            except TimeoutError:
                return  # the monitor has stopped reading


def path_of(name: str) -> str:
    return "/" + name.replace(" ", "-")


@pytest.fixture(scope="module")
def radio() -> Iterator[tuple[str, HostileRadio]]:
    hostile = HostileRadio()
    with servers.serving(hostile.answer, RECEIVERS) as address:
        yield address, hostile
        hostile.is_over.set()


@pytest.fixture(scope="module")
def server(awkward_catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    place = tmp_path_factory.mktemp("hostile_streams")
    with serving(awkward_catalog, f"sqlite:///{place}/accounts.db", place, matcher="true", monitors="1") as api:
        yield api


def decoders(server: Api) -> list[int]:
    """Return the processes that decode a stream each."""
    found, waiting = [], [server.pid]
    while waiting:
        below = children(process := waiting.pop())
        is_decoder_server = b"decoder_server" in Path(f"/proc/{process}/cmdline").read_bytes()
        (found if is_decoder_server else waiting).extend(below)
    return found


def registered(caller: Api, url: str, name: str) -> str:
    answer = caller.post(STREAMS, {"url": url, "name": name})
    assert answer.status_code == 200, answer.text
    identity: str = answer.json()["id"]
    return identity


def shown(caller: Api, stream_id: str) -> dict[str, Any]:
    found: dict[str, Any] = caller.ask(f"{STREAMS}/{stream_id}")
    return found


@pytest.mark.slow
def test_good_stream_is_recognised_beside_streams_that_mean_harm(server: Api, radio: tuple[str, HostileRadio]) -> None:
    address, hostile = radio
    caller = with_card(server)
    killed = registered(caller, address + path_of(KILLED), KILLED)
    until(lambda: shown(caller, killed)["runtime_status"] == "running", "the stream that is killed")
    [victim] = decoders(server)
    before = memory_of_servers(server)
    ids = {name: registered(caller, address + path_of(name), name) for name in ENDLESS}
    until(lambda: {path_of(name) for name in ENDLESS} <= hostile.asked, "the monitor to come to all")
    os.kill(victim, signal.SIGSEGV)
    good = registered(caller, address + "/good", "good")
    until(lambda: shown(caller, good)["now_playing"], "the good stream")
    assert shown(caller, good)["now_playing"]["track"]["id"] == "2"
    assert memory_of_servers(server) - before < MOST_MEMORY
    until(lambda: "decoder ended" in str(shown(caller, killed)["last_error"]), "the end of the killed decoder")
    until(lambda: shown(caller, killed)["runtime_status"] == "running", "the stream whose decoder was killed")
    for name, stream_id in ids.items():
        until(lambda one=stream_id: shown(caller, one)["last_error"], name)
        assert shown(caller, stream_id)["runtime_status"] in ("failed", "reconnecting")
    assert shown(caller, good)["runtime_status"] == "running"
