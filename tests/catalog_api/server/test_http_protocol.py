"""Tests of the limits on clients: slow, greedy or silent sockets against a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from catalog_api.server.connection_registry import ConnectionRegistry
from catalog_api.server.http_protocol import GuardedProtocol, Limits, sweep
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

LIMITS = Limits(
    head_seconds=60, body_seconds=60, bytes_per_second=10_000, read_seconds=60, linger_seconds=60, idle_seconds=90, connections=8
)
"""Longer than a busy machine takes for any test: only `pass_seconds` lets it elapse."""
BIG = 16 * 2**20
ended: list[str] = []
"""Paths and queries that the application was asked to answer at once."""
ahead = [0.0]
"""Seconds by which the clock of the connections is ahead of the machine's."""
under_way: list[str] = []
"""Requests for `/late` that wait for `may_answer`."""
may_answer = threading.Event()


class LoopAhead:
    """The event loop with the clock of these tests."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a loop has
        return getattr(self._loop, name)

    def time(self) -> float:
        return self._loop.time() + ahead[0]


class Quick(GuardedProtocol):
    limits = LIMITS
    registry = ConnectionRegistry()
    open_connections = set()  # noqa: RUF012 - of this class alone, as in a process of its own

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(*arguments, **options)
        self.loop = LoopAhead(self.loop)  # type: ignore[assignment]


def the_connection() -> Quick:
    """Wait until the server has accepted the only connection, and return it."""
    return until(lambda: list(Quick.open_connections), "the connection")[0]  # type: ignore[return-value]


def pass_seconds(seconds: float) -> None:
    """Advance the clock of the connections, and have the server check all of them."""
    ahead[0] += seconds
    for connection in list(Quick.open_connections):
        looked = threading.Event()
        connection.loop.call_soon_threadsafe(_check, connection, looked)
        assert looked.wait(PATIENCE_SECONDS)


def _check(connection: GuardedProtocol, looked: threading.Event) -> None:
    connection.check(connection.loop.time())
    looked.set()


async def answer(send: Callable[..., Awaitable[None]], status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def echo(receive: Callable[[], Awaitable[dict[str, Any]]], send: Callable[..., Awaitable[None]]) -> None:
    """Answer with the length of the body."""
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
        under_way.append(path)
        await asyncio.to_thread(may_answer.wait, PATIENCE_SECONDS)
        await answer(send, 200, b"late")
    else:
        await answer(send, 200, b"hello")


@contextmanager
def serving(protocol: type[GuardedProtocol] = Quick) -> Iterator[uvicorn.Server]:
    options: dict[str, Any] = {"loop": "uvloop", "ws": "none", "lifespan": "off", "log_level": "critical", "proxy_headers": False}
    config = uvicorn.Config(application, port=0, http=protocol, **options)
    server = uvicorn.Server(config)

    async def serve() -> None:
        task = asyncio.create_task(sweep(protocol.open_connections, 0.05))
        await server.serve()
        task.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    until(lambda: server.started, "the server")
    yield server
    server.should_exit = True
    thread.join()
    assert not protocol.open_connections


def port_of(server: uvicorn.Server) -> int:
    return int(server.servers[0].sockets[0].getsockname()[1])


@pytest.fixture(scope="module")
def served() -> Iterator[int]:
    with serving() as server:
        yield port_of(server)


@pytest.fixture
def port(served: int) -> int:
    """Wait until the connections of the previous test are closed, and return the server's port."""
    until(lambda: not Quick.open_connections, "the connections of the test before")
    ahead[0] = 0.0
    may_answer.clear()
    under_way.clear()
    return served


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)


def until_closed(client: socket.socket) -> bytes:
    """Return all bytes until the server closes or resets. It resets when bytes arrive that it no longer reads."""
    parts = []
    with suppress(ConnectionResetError):
        while part := client.recv(65536):
            parts.append(part)
    return b"".join(parts)


def answer_to(port: int, sent: bytes) -> bytes:
    """Return all bytes of the answer until the server closes."""
    with closing(connect(port)) as client:
        client.sendall(sent)
        return until_closed(client)


def is_cut_off(client: socket.socket, piece: bytes, times: int) -> bool:
    """Return whether the server ends the connection while the piece is sent again and again."""
    try:
        for _ in range(times):
            client.sendall(piece)
    except OSError:
        return True
    return False


def waiting_bytes() -> int:
    """Return the bytes of an answer that the client has not taken yet; 0 when the connection is gone."""
    return sum(connection.transport.get_write_buffer_size() for connection in list(Quick.open_connections))


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


def test_silent_connection_is_closed_without_an_answer(port: int) -> None:
    with closing(connect(port)) as client:
        the_connection()
        pass_seconds(LIMITS.head_seconds + 1)
        assert until_closed(client) == b""


def test_sweep_ends_overdue_connections_and_survives_one_that_fails() -> None:
    class Broken(Quick):
        limits = Limits(head_seconds=0.05)
        open_connections = set()  # noqa: RUF012 - of this class alone

        def check(self, now: float) -> None:
            super().check(now)
            raise ValueError("a bug")

    ahead[0] = 0.0
    with serving(Broken) as server:
        for _ in range(2):
            with closing(connect(port_of(server))) as client:
                assert until_closed(client) == b""


def test_slow_head_is_408(port: int) -> None:
    sent = b"GET / HTTP/1.1\r\nhost: x\r\n"
    with closing(connect(port)) as client:
        client.sendall(sent)
        for _ in range(4):
            until(lambda: the_connection()._head_bytes == len(sent))  # noqa: B023 - called at once
            pass_seconds(0.3 * LIMITS.head_seconds)
            with suppress(ConnectionError):  # by the last one it is ended
                client.sendall(b"x-more: 1\r\n")
            sent += b"x-more: 1\r\n"
        assert problem(until_closed(client)) == (408, "request_timeout")


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
def test_head_that_is_too_large_is_431(port: int, flood: bytes) -> None:
    assert problem(answer_to(port, flood)) == (431, "headers_too_large")


def test_endless_head_takes_no_memory(port: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with closing(connect(port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nx: ")
        assert is_cut_off(client, b"y" * 65536, 1_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_bytes_that_are_not_http_are_400(port: int) -> None:
    assert problem(answer_to(port, b"\x16\x03\x01 hello\r\n\r\n")) == (400, "bad_request")


def test_body_that_stops_is_408_and_the_application_sees_a_disconnect(port: int) -> None:
    ended.clear()
    with closing(connect(port)) as client:
        client.sendall(post("/echo", 1_000) + b"begin")
        until(lambda: the_connection()._body_bytes == 5)
        pass_seconds(LIMITS.body_seconds + 1)
        assert problem(until_closed(client)) == (408, "request_timeout")
    until(lambda: ended == ["disconnect"])


def test_body_at_the_minimum_rate_may_exceed_the_time_limit(port: int) -> None:
    pieces, seconds = 4, 25
    piece = b"x" * (seconds * LIMITS.bytes_per_second)
    with closing(connect(port)) as client:
        client.sendall(post("/echo", pieces * len(piece), "connection: close"))
        for number in range(1, pieces + 1):
            client.sendall(piece)
            if number < pieces:
                until(lambda number=number: the_connection()._body_bytes == number * len(piece))
                pass_seconds(seconds)
        answer = until_closed(client)
    assert pieces * seconds > LIMITS.body_seconds
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"%d" % (pieces * len(piece)))


def test_chunked_body_is_read(port: int) -> None:
    request = b"POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    assert answer_to(port, request).endswith(b"\r\n\r\n5")


def test_client_of_a_refused_upload_reads_the_answer_while_it_still_sends(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(post("/refuse", 8 * 2**20))
        for _ in range(128):
            client.sendall(b"x" * 65536)
        answer = until_closed(client)
    assert answer.startswith(b"HTTP/1.1 413")
    assert answer.endswith(b"too large")


def test_upload_that_continues_after_its_refusal_is_aborted(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(post("/refuse", 10**12))
        until(lambda: the_connection().cycle is not None and the_connection().cycle.response_complete)
        pass_seconds(LIMITS.linger_seconds + 1)
        assert is_cut_off(client, b"x" * 1_000, 100_000)


def test_client_that_does_not_read_is_aborted(port: int) -> None:
    received = 0
    with closing(connect(port)) as client:
        client.sendall(get("/big"))
        until(waiting_bytes)
        until(lambda: pass_seconds(LIMITS.read_seconds + 1) or not Quick.open_connections)  # type: ignore[func-returns-value]
        with suppress(ConnectionResetError):
            while part := client.recv(2**20):
                received += len(part)
    assert received < BIG


def test_client_that_reads_slowly_gets_the_whole_answer(port: int) -> None:
    enough = round(1.5 * LIMITS.bytes_per_second * LIMITS.read_seconds)
    """To take of the answer in the time after which it is looked at again."""
    received = b""
    with closing(connect(port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.sendall(get("/big", "connection: close"))
        while len(received) < BIG // 2:
            before = until(waiting_bytes)
            pass_seconds(LIMITS.read_seconds / 2)
            while waiting_bytes() > before - enough:
                received += client.recv(65536)
            pass_seconds(LIMITS.read_seconds / 2 + 1)
        received += until_closed(client)
    assert len(received.partition(b"\r\n\r\n")[2]) == BIG


def test_connection_serves_many_requests_and_is_closed_when_idle(port: int) -> None:
    with closing(connect(port)) as client:
        for _ in range(3):
            client.sendall(get("/"))
            received = b""
            while not received.endswith(b"\r\n\r\nhello"):  # head and body may come apart
                part = client.recv(1000)
                assert part
                received += part
            until(lambda: the_connection().is_idle)
            pass_seconds(LIMITS.idle_seconds / 2)
        pass_seconds(LIMITS.idle_seconds / 2 + 1)
        assert client.recv(1000) == b""


def test_pipelined_requests_are_answered_in_order(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(get("/late") + post("/echo", 3) + b"abc" + get("/", "connection: close"))
        until(lambda: under_way)
        pass_seconds(1.5 * LIMITS.head_seconds)
        may_answer.set()
        answer = until_closed(client)
    assert answer.count(b"200 OK") == 3
    assert answer.index(b"late") < answer.index(b"\r\n\r\n3") < answer.index(b"hello")


def test_slow_application_is_not_timed_out(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(get("/late", "connection: close"))
        until(lambda: under_way)
        pass_seconds(1.5 * LIMITS.idle_seconds)
        may_answer.set()
        assert until_closed(client).endswith(b"late")


def test_answers_without_a_length_and_answers_to_head_are_complete(port: int) -> None:
    assert answer_to(port, get("/stream", "connection: close")).endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
    answer = answer_to(port, b"HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert b"content-length: 5" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_line_break_in_a_header_is_never_sent(port: int) -> None:
    assert answer_to(port, get("/split")) == b""


def test_answer_to_a_client_that_disconnected_is_dropped(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(get("/late"))
        until(lambda: under_way)
    until(lambda: not Quick.open_connections)
    may_answer.set()
    assert answer_to(port, get("/", "connection: close")).endswith(b"hello")


def test_stopping_server_answers_requests_under_way(port: int) -> None:  # noqa: ARG001 - it sets the scene back
    def is_listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", own)) == 0

    with serving() as server, closing(connect(own := port_of(server))) as client:
        client.sendall(get("/late"))
        until(lambda: under_way)
        server.should_exit = True
        until(lambda: not is_listening())
        may_answer.set()
        assert until_closed(client).endswith(b"late")
