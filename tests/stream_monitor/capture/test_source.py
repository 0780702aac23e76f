from __future__ import annotations

import threading
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest

from outbound_http import Outbound
from outbound_http.allow_list import parse_allow_list
from stream_monitor.capture import http, source
from stream_monitor.capture.errors import CaptureError
from stream_monitor.capture.source import open_source
from tests.stream_monitor.servers import ok, serving
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

LOOPBACK = Outbound(parse_allow_list("127.0.0.1:*"))
SOUND = bytes(range(256)) * 40


def everything(url: str) -> bytes:
    read = b""
    with closing(open_source(LOOPBACK, url)) as opened:
        while piece := opened.read():
            read += piece
    return read


def always(*pieces: bytes) -> Callable[[socket.socket, str], None]:
    def answer(connection: socket.socket, _path: str) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return answer


def by_path(**answers: bytes) -> Callable[[socket.socket, str], None]:
    return lambda connection, path: connection.sendall(answers[path.strip("/").partition(".")[0]])


@pytest.mark.parametrize(
    "head",
    [
        ok(),
        b"HTTP/1.1 200 OK\r\ncontent-type:audio/mpeg\r\n\r\n",
        b"ICY 200 OK\r\nicy-name: Old Radio\r\n\r\n",
        b"ICY 200 OK\nicy-br:128\n\n",
    ],
)
def test_web_servers_and_old_shoutcast_are_understood(head: bytes) -> None:
    with serving(always(head + SOUND[:10], SOUND[10:])) as address:
        assert everything(address) == SOUND


def test_titles_are_taken_out_wherever_pieces_are_cut() -> None:
    interval = 1000
    body = b""
    for start in range(0, len(SOUND), interval):
        title = b"StreamTitle='x';".ljust(32, b"\0") if start % 3000 == 0 else b""
        chunk = SOUND[start : start + interval]
        body += chunk + (bytes([len(title) // 16]) + title if len(chunk) == interval else b"")
    for size in (1, 7, 1000, 1033, len(body)):
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        with serving(always(ok("audio/mpeg", f"icy-metaint: {interval}"), *pieces)) as address:
            assert everything(address) == SOUND


@pytest.mark.parametrize("size", [1, 16, 5000])
def test_chunked_answers_are_put_together(size: int) -> None:
    chunks = b"".join(
        f"{len(piece):x};note=1\r\n".encode() + piece + b"\r\n" for at in range(0, len(SOUND), 333) if (piece := SOUND[at : at + 333])
    )
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    with serving(always(*(whole[at : at + size] for at in range(0, len(whole), size)))) as address:
        assert everything(address) == SOUND


@pytest.mark.parametrize("number", [b"\xb2", b"9" * 5000, b"-1", b""])
def test_number_that_is_none_is_ignored(number: bytes) -> None:
    with serving(always(ok().replace(b"\r\n\r\n", b"\r\nicy-metaint: " + number + b"\r\n\r\n") + SOUND)) as address:
        assert everything(address) == SOUND


@pytest.mark.parametrize(
    "playlist",
    [
        ok("audio/x-mpegurl") + b"#EXTM3U\r\n#EXTINF:-1,Radio\r\nlive.mp3\r\n",
        ok("text/plain") + b"\xef\xbb\xbf# first\n\n/live.mp3\n",
        ok("audio/x-mpegurl") + "#EXTM3U\nhttp://[none/\n//ex\u2100mple.com/\nlive.mp3\n".encode(),
        ok("audio/x-scpls") + b"[playlist]\r\nNumberOfEntries=2\r\nFile1=/away.mp3\r\nTitle1=Radio\r\nFile2=/live.mp3\r\n",
    ],
)
def test_playlists_lead_to_the_first_stream_that_answers(playlist: bytes) -> None:
    answers = {"list": playlist, "live": ok() + SOUND, "away": b"HTTP/1.0 404 Not Found\r\n\r\n"}
    with serving(by_path(**answers)) as address:
        assert everything(f"{address}/list.m3u") == SOUND


def test_name_of_a_playlist_counts_when_its_type_is_vague() -> None:
    with serving(by_path(list=ok("text/plain") + b"/live.mp3\n", live=ok() + SOUND)) as address:
        assert [everything(f"{address}/list.{end}") == SOUND for end in ("m3u", "m3u8", "M3U8?a=1")] == [True] * 3


def test_redirects_are_followed() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /list.pls\r\n\r\n"
    with serving(by_path(old=moved, list=ok("audio/x-scpls") + b"[playlist]\nFile1=live.mp3\n", live=ok() + SOUND)) as address:
        assert everything(f"{address}/old") == SOUND


INSIDE = ("http://10.0.0.7/live.mp3", "http://169.254.169.254/latest/meta-data", "http://[::1]:8000/live")


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("kind", ["redirect", "playlist"])
def test_no_hop_leads_into_our_own_network(inside: str, kind: str) -> None:
    playlist = ok("audio/x-mpegurl") + f"#EXTM3U\n{inside}\n".encode()
    redirect = f"HTTP/1.1 301 Moved\r\nLocation: {inside}\r\n\r\n".encode()
    with serving(always(redirect if kind == "redirect" else playlist)) as address, pytest.raises(CaptureError) as refused:
        everything(address)
    assert refused.value.is_lasting
    assert "not allowed" in str(refused.value)


REFUSALS = {
    "no such mount point": (b"HTTP/1.0 404 File Not Found\r\n\r\n", False),
    "asks for a password": (b"HTTP/1.0 401 Unauthorized\r\n\r\n", True),
    "answered 503 Busy": (b"HTTP/1.0 503 Busy\r\n\r\n", False),
    "redirects": (b"HTTP/1.0 302 Found\r\nLocation: /again\r\n\r\n", True),
    "not a radio or web server": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", True),
    "an http or https address": (b"HTTP/1.0 302 Found\r\nLocation: http://[::1\r\n\r\n", True),
    "chunk length b'-5'": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n" + SOUND, False),
    "hung up": (b"HTTP/1.0 200 OK\r\nContent-", False),
    "names no address": (ok("audio/x-scpls") + b"[playlist]\nNumberOfEntries=0\n", True),
    "playlists lead to playlists": (ok("audio/x-mpegurl") + b"#EXTM3U\n/again\n", True),
    "within 10 s and 32 kB": (b"HTTP/1.0 200 OK\r\n" + b"X-Much: yes\r\n" * 4000, False),
}


@pytest.mark.parametrize("message", REFUSALS)
def test_error_of_a_source_names_the_remedy(message: str) -> None:
    sent, is_lasting = REFUSALS[message]
    with serving(always(sent)) as address, pytest.raises(CaptureError, match=message) as error:
        everything(address)
    assert error.value.is_lasting == is_lasting


def test_refused_connection_and_unresolved_name_are_no_lasting_errors() -> None:
    with serving(always(b"")) as address:
        pass
    for url in (address, "http://radio.invalid/live"):
        with pytest.raises(CaptureError) as error:
            everything(url)
        assert not error.value.is_lasting


def test_stalled_server_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def stall(connection: socket.socket, path: str) -> None:
        connection.sendall(ok() + SOUND if path == "/sound" else b"HTTP/1.0 200")
        over.wait(PATIENCE_SECONDS)

    with serving(stall) as address:
        monkeypatch.setattr(http, "READ_SECONDS", 0.2)
        with pytest.raises(CaptureError, match="sent nothing"):
            everything(f"{address}/sound")
        monkeypatch.setattr(http, "OPEN_SECONDS", 0.2)
        with pytest.raises(CaptureError, match="did not"):
            everything(f"{address}/head")
        over.set()


TRICKLES = {
    "sent only titles": ok("audio/mpeg", "icy-metaint: 10") + SOUND[:10] + b"\xff",
    "sent no sound": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n" + SOUND[:10] + b"\r\n",
}


@pytest.mark.parametrize("message", TRICKLES)
def test_server_that_trickles_what_is_no_sound_is_disconnected(monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    monkeypatch.setattr(http, "READ_SECONDS", 0.5)
    monkeypatch.setattr(source, "TITLE_SECONDS", 0.5)

    def trickle(connection: socket.socket, _path: str) -> None:
        connection.sendall(TRICKLES[message])
        for _ in range(60):
            time.sleep(0.05)
            connection.sendall(b"0")

    with serving(trickle) as address, pytest.raises(CaptureError, match=message):
        everything(address)


def test_closing_from_another_thread_ends_a_read() -> None:
    over = threading.Event()

    def hold(connection: socket.socket, _path: str) -> None:
        connection.sendall(ok() + SOUND[:10])
        over.wait(PATIENCE_SECONDS)

    with serving(hold) as address:
        opened = open_source(LOOPBACK, address)
        assert opened.read() == SOUND[:10]
        timer = threading.Timer(0.2, opened.close)
        timer.start()
        with suppress(CaptureError):  # an end or an error, as the system likes it
            assert opened.read() == b""
        timer.join()
        over.set()
