"""A receiver of webhooks on loopback: good, down, slow, trickling or lying. It keeps all messages in order."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from standardwebhooks import Webhook

from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

Behaviour = Callable[[socket.socket], None]
"""The behaviour of a receiver after it has read a request."""


@dataclass(frozen=True)
class Received:
    """A received request."""

    headers: dict[str, str]
    body: bytes

    @property
    def event_id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self, secret: str) -> Any:  # noqa: ANN401 -- JSON
        """Return the message as a receiver with the public library reads it; WebhookVerificationError."""
        return Webhook(secret).verify(self.body, self.headers)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, host: str, port: int, behaviour: Behaviour) -> None:
        super().__init__((host, port), _Handler)
        self.behaviour = behaviour
        self.received: list[Received] = []

    def handle_error(self, *_: object) -> None:
        """Ignore senders that disconnect in the middle; they are part of the tests."""


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        lines = iter(self.rfile.readline, b"\r\n")
        next(lines)
        pairs = [line.decode("latin-1").partition(":") for line in lines]
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = self.rfile.read(int(headers["content-length"]))
        self.server.received.append(Received(headers, body))
        self.server.behaviour(self.connection)


class Receiver:
    """A running receiver; `behaviour` may be changed while it runs."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self.url = f"http://{server.server_address[0]}:{server.server_address[1]}/hook"
        self.port = int(server.server_address[1])

    @property
    def received(self) -> list[Received]:
        return self._server.received

    def awaited(self, count: int) -> list[Received]:
        """Wait until `count` requests have come and return all of them; AssertionError when they do not come."""
        until(lambda: len(self.received) >= count, f"{count} messages")
        return list(self.received)

    def behaves(self, behaviour: Behaviour) -> None:
        self._server.behaviour = behaviour


@contextmanager
def receiving(behaviour: Behaviour | None = None, port: int = 0, host: str = "127.0.0.1") -> Iterator[Receiver]:
    with _Server(host, port, behaviour or answers(204)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Receiver(server)
        finally:
            server.shutdown()
            thread.join()


def answers(status: int, body: bytes = b"", *headers: str) -> Behaviour:
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}", *headers]
    return says("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def says(answer: bytes) -> Behaviour:
    """Return a behaviour that sends any bytes and then ends the connection."""
    return lambda connection: connection.sendall(answer)


def waits(seconds: float, then: Behaviour) -> Behaviour:
    def behave(connection: socket.socket) -> None:
        time.sleep(seconds)
        then(connection)

    return behave


def waits_for(event: threading.Event, then: Behaviour) -> Behaviour:
    def behave(connection: socket.socket) -> None:
        event.wait(PATIENCE_SECONDS)
        then(connection)

    return behave


def trickles(head: bytes, part: bytes, pause: float, times: int) -> Behaviour:
    def behave(connection: socket.socket) -> None:
        connection.sendall(head)
        for _ in range(times):
            time.sleep(pause)
            connection.sendall(part)

    return behave


def resets_after(answer: bytes) -> Behaviour:
    """Return a behaviour that sends `answer` and then tears the connection (RST)."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(answer)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    return behave
