"""What clients may take of a worker: sockets that are slow, greedy or silent against a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import threading
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from catalog_api.server.connection_registry import ConnectionRegistry
from catalog_api.server.http_protocol import GuardedProtocol, Limits, sweep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

LIMITS = Limits(
    head_seconds=0.4, body_seconds=0.4, bytes_per_second=10_000, read_seconds=0.4, linger_seconds=0.5, idle_seconds=0.6, connections=8
)
BIG = 16 * 2**20
ended: list[str] = []
"""Path and query of what the application was asked to answer at once."""


class Quick(GuardedProtocol):
    limits = LIMITS
    registry = ConnectionRegistry()
    open_connections = set()  # noqa: RUF012 - of this class alone, as in a process of its own


async def answer(send: Callable[..., Awaitable[None]], status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def echo(receive: Callable[[], Awaitable[dict[str, Any]]], send: Callable[..., Awaitable[None]]) -> None:
    """Answers how long the body is."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            ended.append("disconnect")
            return
        size += len(message["body"])
        more = message["more_body"]
    await answer(send, 200, str(size).encode())


async def application(
    scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]], send: Callable[..., Awaitable[None]]
) -> None:
    path = scope["path"]
    if path == "/echo":
        await echo(receive, send)
    elif path == "/refuse":
        await answer(send, 413, b"too large", (b"connection", b"close"))
    elif path == "/big":
        await answer(send, 200, b"x" * BIG)
    elif path == "/stream":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})
    elif path == "/split":
        await answer(send, 200, b"x", (b"location", b"here\r\nset-cookie: stolen"))
    elif path == "/late":
        await asyncio.sleep(1.5 * LIMITS.head_seconds)
        await answer(send, 200, b"late")
    else:
        await answer(send, 200, b"hello")


@contextmanager
def serving() -> Iterator[uvicorn.Server]:
    options: dict[str, Any] = {"loop": "uvloop", "ws": "none", "lifespan": "off", "log_level": "critical", "proxy_headers": False}
    config = uvicorn.Config(application, port=0, http=Quick, **options)
    server = uvicorn.Server(config)

    async def serve() -> None:
        task = asyncio.create_task(sweep(Quick.open_connections, 0.05))
        await server.serve()
        task.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server
    server.should_exit = True
    thread.join()
    assert not Quick.open_connections


def port_of(server: uvicorn.Server) -> int:
    return int(server.servers[0].sockets[0].getsockname()[1])


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as server:
        yield port_of(server)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def until_closed(client: socket.socket) -> bytes:
    parts = []
    while part := client.recv(65536):
        parts.append(part)
    return b"".join(parts)


def answer_to(port: int, *pieces: bytes, pause: float = 0) -> bytes:
    """Send the pieces with pauses between them; everything that comes back until the server closes."""
    with closing(connect(port)) as client:
        for piece in pieces:
            client.sendall(piece)
            time.sleep(pause)
        return until_closed(client)


def is_cut_off(client: socket.socket, piece: bytes, times: int, pause: float = 0) -> bool:
    """Whether the server ends the connection while the piece is sent again and again."""
    try:
        for _ in range(times):
            client.sendall(piece)
            time.sleep(pause)
    except OSError:
        return True
    return False


def read_too_late(port: int, path: str) -> int:
    """How many bytes a client gets who reads long after it asked."""
    received = 0
    with closing(connect(port)) as client:
        client.sendall(get(path))
        time.sleep(4 * LIMITS.read_seconds)
        with suppress(ConnectionResetError):
            while part := client.recv(2**20):
                received += len(part)
    return received


def problem(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    document = json.loads(body)
    assert document["status"] == int(head.split()[1])
    return document["status"], document["code"]


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "host: x", *headers, "", ""]).encode()


def post(path: str, length: int, *headers: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "host: x", f"content-length: {length}", *headers, "", ""]).encode()


def test_a_silent_connection_is_closed_without_a_word(port: int) -> None:
    assert answer_to(port) == b""


def test_a_head_that_trickles_in_is_ended(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n")
        assert is_cut_off(client, b"x-more: 1\r\n", 100, 0.05)
    assert problem(answer_to(port, b"GET / HTTP/1.1\r\nhost: x\r\nx-mo")) == (408, "request_timeout")


@pytest.mark.parametrize(
    "flood",
    [
        b"GET / HTTP/1.1\r\n" + b"".join(b"x-%d: 1\r\n" % number for number in range(200)) + b"\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"y" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"y" * 100_000,
    ],
    ids=["many fields", "long field", "long path", "no end"],
)
def test_a_head_too_large_is_431(port: int, flood: bytes) -> None:
    assert problem(answer_to(port, flood)) == (431, "headers_too_large")


def test_an_endless_head_takes_no_memory(port: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with closing(connect(port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nx: ")
        assert is_cut_off(client, b"y" * 65536, 1_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_what_is_not_http_is_400(port: int) -> None:
    assert problem(answer_to(port, b"\x16\x03\x01 hello\r\n\r\n")) == (400, "bad_request")


def test_a_body_that_stops_is_408_and_the_application_sees_a_disconnect(port: int) -> None:
    ended.clear()
    assert problem(answer_to(port, post("/echo", 1_000), b"begin")) == (408, "request_timeout")
    until = time.monotonic() + 5
    while not ended and time.monotonic() < until:
        time.sleep(0.01)
    assert ended == ["disconnect"]


def test_a_body_that_keeps_pace_may_take_its_time(port: int) -> None:
    pieces = [b"x" * 5_000] * 12
    answer = answer_to(port, post("/echo", 60_000, "connection: close"), *pieces, pause=0.08)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"60000")


def test_a_chunked_body_is_read(port: int) -> None:
    request = b"POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    assert answer_to(port, request).endswith(b"\r\n\r\n5")


def test_a_refused_upload_reads_why_although_it_is_still_sending(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(post("/refuse", 8 * 2**20))
        for _ in range(128):
            client.sendall(b"x" * 65536)
        answer = until_closed(client)
    assert answer.startswith(b"HTTP/1.1 413")
    assert answer.endswith(b"too large")


def test_an_upload_that_goes_on_for_ever_after_its_refusal_is_cut_off(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(post("/refuse", 10**12))
        assert is_cut_off(client, b"x" * 1_000, 300, 0.02)


def test_a_client_that_does_not_read_is_cut_off(port: int) -> None:
    assert read_too_late(port, "/big") < BIG


def test_a_client_that_reads_slowly_gets_everything(port: int) -> None:
    with closing(connect(port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.sendall(get("/big", "connection: close"))
        received = b""
        while part := client.recv(2**20):
            received += part
            time.sleep(0.002)
    assert len(received.partition(b"\r\n\r\n")[2]) == BIG


def test_a_connection_serves_many_requests_and_is_closed_when_idle(port: int) -> None:
    with closing(connect(port)) as client:
        for _ in range(3):
            client.sendall(get("/"))
            received = b""
            while not received.endswith(b"\r\n\r\nhello"):  # head and body may come apart
                part = client.recv(1000)
                assert part
                received += part
        started = time.monotonic()
        assert client.recv(1000) == b""
    assert time.monotonic() - started > LIMITS.idle_seconds / 2


def test_pipelined_requests_are_answered_in_order(port: int) -> None:
    answer = answer_to(port, get("/late") + post("/echo", 3) + b"abc" + get("/", "connection: close"))
    assert [part[-5:] for part in answer.split(b"HTTP/1.1 200 OK")[1:]] == [b"\nlate", b"\r\n\r\n3", b"hello"] or answer.count(
        b"200 OK"
    ) == 3
    assert answer.index(b"late") < answer.index(b"\r\n\r\n3") < answer.index(b"hello")


def test_an_application_that_takes_its_time_is_waited_for(port: int) -> None:
    assert answer_to(port, get("/late", "connection: close")).endswith(b"late")


def test_answers_without_a_length_and_answers_to_head_are_whole(port: int) -> None:
    assert answer_to(port, get("/stream", "connection: close")).endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
    answer = answer_to(port, b"HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert b"content-length: 5" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_a_line_break_in_a_header_is_never_sent(port: int) -> None:
    assert answer_to(port, get("/split")) == b""


def test_an_answer_to_a_client_that_left_is_dropped(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(get("/late"))
        time.sleep(0.02)
    time.sleep(2 * LIMITS.head_seconds)
    assert answer_to(port, get("/", "connection: close")).endswith(b"hello")


def test_a_server_that_ends_answers_first_what_it_took() -> None:
    with serving() as server, closing(connect(port_of(server))) as client:
        client.sendall(get("/late"))
        time.sleep(0.03)
        server.should_exit = True
        assert until_closed(client).endswith(b"late")
