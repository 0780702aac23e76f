"""The HTTP protocol of a worker: limits on the bytes, seconds and connections that a client may use, whatever it sends or fails to send.

uvicorn's protocol does not limit how long a request takes to arrive, how large its head is, or how long a client takes to read. This
subclass does, and answers with problem documents. One round a second checks all connections (`sweep`), so a request costs no timers.

    client                                              answer
    sends no complete head in time, or nothing          408 (nothing, if it sent nothing), closed
    sends a head of too many bytes or fields            431, closed
    sends a body slower than the minimum pace           408, closed; the application sees a disconnect
    sends a body that nobody reads (refused request)    the answer, some seconds to read it, closed
    reads its answer too slowly                         aborted
    opens one connection too many                       closes an idle one (connection_registry.py); 503, closed, when none is idle
    sends no further request in time                    closed

Routes limit the size of bodies (request_bodies.py). What must not live here: paths, keys, accounts.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from catalog_api.answers import WHOLE
from catalog_api.problems import PROBLEM_TYPE, ApiError, problem
from catalog_api.server.connection_registry import Addresses

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

log = structlog.get_logger("catalog_api")

SWEEP_SECONDS = 1.0
_EXTENSIONS: dict[str, dict[object, object]] = {WHOLE: {}}


@dataclass(frozen=True)
class Limits:
    """Of one worker; seconds and bytes. An operator sets some of them (settings.py)."""

    head_seconds: float = 10.0
    """From the connection, or from a request's first byte, to the end of its head."""
    head_bytes: int = 64 * 1024
    head_fields: int = 100
    body_seconds: float = 10.0
    """Until a body must keep pace: bytes for every second since."""
    read_seconds: float = 20.0
    """After which a client must have kept pace in taking an answer that waits for it."""
    pace: int = 4 * 1024
    """Bytes a second, in both directions."""
    linger_seconds: float = 5.0
    """How long the rest of a body is thrown away after its request was answered, so that the client comes to read the answer."""
    idle_seconds: float = 65.0
    """Longer than the 60 seconds that load balancers keep connections: the one who sends closes them, and no request meets a closed one."""
    connections: int = 4096
    connections_per_address: int = 512


class GuardedProtocol(HttpToolsProtocol):
    """One connection. `deadline` is when `check` ends it, in the loop's time; None while the application works."""

    limits: ClassVar[Limits] = Limits()
    everyone: ClassVar[set[GuardedProtocol]] = set()
    """All open connections of the process."""
    addresses: ClassVar[Addresses[GuardedProtocol]] = Addresses()
    """The same by where they come from; this and `limits` are set before it serves."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """As uvicorn makes it."""
        super().__init__(config, server_state, app_state, _loop)
        self.deadline: float | None = None
        self._head_bytes = 0
        self._body_bytes = 0
        self._is_in_head = True
        self._is_over_limit = False
        self._unread: tuple[float, int] | None = None
        self._until_read = _UntilRead(self)

    # What the transport tells

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection; when there are too many, an idle one gives way, or this one is refused."""
        super().connection_made(transport)
        self.everyone.add(self)
        self.addresses.add(self, self.client[0] if self.client else None)
        self.deadline = self.loop.time() + self.limits.head_seconds
        limits, addresses = self.limits, self.addresses
        if addresses.held_beside(self) > limits.connections_per_address:
            self._make_room(addresses.idle_of_same(self), f"Your address holds {limits.connections_per_address} connections already.")
        elif len(self.everyone) > limits.connections:
            self._make_room(addresses.idle_of_most(self), f"This server holds {limits.connections} connections already.")

    def _make_room(self, idle: GuardedProtocol | None, otherwise: str) -> None:
        if idle is None:
            self._refuse("overloaded", otherwise, {"retry-after": "5"})
        else:
            self.everyone.discard(idle)
            self.addresses.remove(idle)
            idle.transport.close()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way and no answer waits to be read: closing it takes nothing from the client."""
        is_working = self.cycle is not None and not self.cycle.response_complete
        return self._is_in_head and not is_working and not self.transport.get_write_buffer_size()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.everyone.discard(self)
        self.addresses.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; no more than the limit of a head."""
        if self.transport.is_closing():
            return
        if self._is_in_head:
            if self._head_bytes == 0:
                self.deadline = self.loop.time() + self.limits.head_seconds
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_in_head and self._head_bytes > self.limits.head_bytes and not self.transport.is_closing():
            self._refuse_head()

    # What the parser tells

    def on_message_begin(self) -> None:
        """Tell the application what it may send."""
        super().on_message_begin()
        self.scope["extensions"] = _EXTENSIONS

    def on_headers_complete(self) -> None:
        """Refuse a head over the limit; else start the application as uvicorn does."""
        if self._head_bytes > self.limits.head_bytes or len(self.headers) > self.limits.head_fields:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > self.limits.head_bytes or len(self.headers) > self.limits.head_fields:
                self._is_over_limit = True
                raise ValueError("the head is too large")
        self._head_bytes = self._body_bytes = 0
        self._is_in_head = False
        self.deadline = self.loop.time() + self.limits.body_seconds
        super().on_headers_complete()
        self.cycle.__class__ = _Cycle  # uvicorn makes its own in the middle of a long method
        self.cycle.transport = self._until_read  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        """Note how far the body came."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is whole; when its answer is out already, wait for the next one."""
        self._is_in_head = True
        self.deadline = None
        super().on_message_complete()
        self.cycle.transport = self.transport
        if self.cycle.response_complete:
            self.cycle.more_body = False
            if self._until_read.is_closed:
                self.transport.close()
            self._wait_for_next()

    def on_response_complete(self) -> None:
        """The answer is out: on to what waits behind it, the rest of the body, or the next request. Without uvicorn's timer."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self.cycle.more_body:
            self.deadline = self.loop.time() + self.limits.linger_seconds
        else:
            self._wait_for_next()

    def _wait_for_next(self) -> None:
        self.addresses.note_use(self)
        seconds = self.limits.head_seconds if self._head_bytes else self.limits.idle_seconds
        self.deadline = self.loop.time() + seconds

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls when the parser gave up."""
        if self.transport.is_closing():
            return
        if self._is_over_limit:
            self._refuse_head()
        else:
            self._refuse("bad_request", msg)

    # Ending

    def check(self, now: float) -> None:
        """End the connection if its time is over."""
        if self._reads_too_slowly(now):
            self.transport.abort()
        elif self.deadline is not None and now > self.deadline and not self.transport.is_closing():
            self._end(now, now - self.deadline)

    def _reads_too_slowly(self, now: float) -> bool:
        """Whether the client took too little of what waits for it since `_unread` (when, how many bytes) was noted."""
        waiting = self.transport.get_write_buffer_size()
        if not waiting and not self.transport.is_closing():
            self._unread = None
        elif self._unread is None:
            self._unread = (now, waiting)
        elif now - self._unread[0] > self.limits.read_seconds:
            taken = self._unread[1] - waiting
            self._unread = (now, waiting)
            return taken < self.limits.pace * self.limits.read_seconds
        return False

    def _end(self, now: float, late: float) -> None:
        is_working = self.cycle is not None and not self.cycle.response_complete
        if self._is_in_head and is_working:
            self.deadline = None  # the head of a next request came early; it is not waited for yet
        elif self._is_in_head and self._head_bytes:
            self._refuse("request_timeout", f"The head of the request did not arrive within {self.limits.head_seconds:g} seconds.")
        elif not is_working:
            self.transport.close()
        elif self.flow.read_paused:
            self.deadline = now  # the application is the slow one
        elif self._body_bytes < self.limits.pace * late:
            self._refuse("request_timeout", f"The body arrives at less than {self.limits.pace} bytes a second.")

    def _refuse_head(self) -> None:
        limits = self.limits
        self._refuse("headers_too_large", f"The head of a request may have {limits.head_bytes} bytes and {limits.head_fields} fields.")

    def _refuse(self, code: str, detail: str, headers: dict[str, str] | None = None) -> None:
        """Answer with a problem and close; an application that works on the request sees a disconnect."""
        cycle = self.cycle
        is_answering = cycle is not None and cycle.response_started and not cycle.response_complete
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if not is_answering:
            path = self.scope["path"] if self.scope is not None and "path" in self.scope else "*"
            answer = problem({"path": path}, ApiError(code, detail, headers=headers))
            lines = [STATUS_LINE[answer.status], b"connection: close\r\ncontent-type: ", PROBLEM_TYPE.encode()]
            lines += [b"\r\n%b: %b" % (name.encode(), value.encode()) for name, value in answer.headers.items()]
            self.transport.write(b"".join([*lines, b"\r\ncontent-length: %d\r\n\r\n" % len(answer.body), answer.body]))
        self.transport.close()


class _Cycle(RequestResponseCycle):
    """One request and its answer. An answer that comes whole (`WHOLE`) leaves in one piece.

    uvicorn looks at every header with two regular expressions and writes head and body apart: a quarter of what it costs in all.
    """

    async def send(self, message: Any) -> None:  # noqa: ANN401 - an ASGI message
        """Whatever is not a whole answer, or cannot leave at once, goes uvicorn's way."""
        if message["type"] != WHOLE:
            await super().send(message)
        elif not self._sent_whole(message):
            headers = [tuple(line.split(b": ", 1)) for line in message["head"].split(b"\r\n")[:-1]]
            await super().send({"type": "http.response.start", "status": message["status"], "headers": headers})
            await super().send({"type": "http.response.body", "body": message["body"], "more_body": False})

    def _sent_whole(self, message: Any) -> bool:  # noqa: ANN401 - an ASGI message
        if self.flow.write_paused or self.disconnected or self.response_started or self.scope["method"] == "HEAD":
            return False
        self.response_started = self.response_complete = True
        self.message_event.set()
        _write_whole(self, message["status"], message["head"], message["body"])
        return True


def _write_whole(cycle: RequestResponseCycle, status: int, head: bytes, body: bytes) -> None:
    last = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
    cycle.transport.write(b"".join((STATUS_LINE[status], _lines(tuple(cycle.default_headers)), head, last, body)))
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()


@lru_cache(1)
def _lines(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """The server's own header fields, among them the date: others once a second."""
    return b"".join([b"%b: %b\r\n" % field for field in headers])


class _UntilRead:
    """The transport, as the application's side sees it while its request is not read to the end: closing waits for that.

    Closing a socket with unread bytes resets it, and a client that is still sending would lose the very answer that refuses it.
    """

    def __init__(self, connection: GuardedProtocol) -> None:
        self._connection = connection
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self._connection.transport.write(data)

    def is_closing(self) -> bool:
        return self._connection.transport.is_closing()

    def close(self) -> None:
        self.is_closed = True


async def sweep(connections: set[GuardedProtocol], seconds: float = SWEEP_SECONDS) -> None:
    """Look at all connections every so many seconds, for ever."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(seconds)
        now = loop.time()
        for connection in list(connections):
            try:
                connection.check(now)
            except Exception:
                # One connection's trouble must not leave all others without limits.
                log.exception("a connection could not be ended")
                connection.transport.abort()
