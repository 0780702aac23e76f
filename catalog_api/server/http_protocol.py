"""The HTTP protocol of a worker: limits on the bytes, seconds and connections that a client may use, whatever it sends or fails to send.

uvicorn's protocol does not limit how long a request takes to arrive, how large its head is, or how long a client takes to read. This
subclass does, and answers with problem documents. One round a second checks all connections (`sweep`), so a request costs no timers.

    client                                              answer
    sends no complete head in time, or nothing          408 (nothing, if it sent nothing), closed
    sends a head of too many bytes or fields            431, closed
    sends a body slower than the minimum rate           408, closed; the application sees a disconnect
    sends a body that nobody reads (refused request)    the answer, some seconds to read it, closed
    reads its answer too slowly                         aborted
    opens one connection too many                       closes an idle one (connection_registry.py); 503, closed, when none is idle
    sends no further request in time                    closed

uvicorn does not document this class as public. Only this module and process_supervisor.py use such parts of uvicorn, and
tests/catalog_api/server/test_uvicorn_internals.py fails when uvicorn changes them. Routes limit the size of bodies (request_bodies.py).
Out of scope: paths, keys, accounts.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from catalog_api.problems import PROBLEM_TYPE, ApiError, render_problem
from catalog_api.server.connection_registry import ConnectionRegistry

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

log = structlog.get_logger("catalog_api")

SWEEP_SECONDS = 1.0


@dataclass(frozen=True)
class Limits:
    """Limits of one worker, in seconds and bytes. Operators can set most of them (settings.py)."""

    head_seconds: float = 10.0
    """From the connection, or from the first byte of a request, to the end of its head."""
    head_bytes: int = 64 * 1024
    head_fields: int = 100
    body_seconds: float = 10.0
    """Time within which a body must arrive. A later one must keep `bytes_per_second`."""
    read_seconds: float = 20.0
    """Time after which a client must have read `bytes_per_second` of the waiting answer."""
    bytes_per_second: int = 4 * 1024
    """The minimum rate, in both directions."""
    linger_seconds: float = 5.0
    """Time for which the rest of a body is discarded after its request was answered, so that the client can read the answer."""
    idle_seconds: float = 65.0
    """Load balancers keep connections for 60 seconds. A server that keeps them longer never closes one that a request is under way to."""
    connections: int = 4096
    connections_per_address: int = 512


class GuardedProtocol(HttpToolsProtocol):
    """One connection. `deadline` is the time of the loop at which `check` ends it; None while the application works."""

    limits: ClassVar[Limits] = Limits()
    open_connections: ClassVar[set[GuardedProtocol]] = set()
    """All open connections of the process."""
    registry: ClassVar[ConnectionRegistry[GuardedProtocol]] = ConnectionRegistry()
    """The same connections by address. The worker sets this and `limits` before it serves."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """Take the arguments that uvicorn passes."""
        super().__init__(config, server_state, app_state, _loop)
        self.deadline: float | None = None
        self._head_bytes = 0
        self._body_bytes = 0
        self._is_in_head = True
        self._is_over_limit = False
        self._unread: tuple[float, int] | None = None
        """When bytes of an answer began to wait for the client, and how many."""
        self._deferred_close = _DeferredClose(self)

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection. When there are too many, close an idle one, or refuse this one if none is idle."""
        super().connection_made(transport)
        self.open_connections.add(self)
        # Add it first: the counts below include this connection.
        self.registry.add(self, self.client[0] if self.client else None)
        self.deadline = self.loop.time() + self.limits.head_seconds
        limits, registry = self.limits, self.registry
        if registry.count_same_address(self) > limits.connections_per_address:
            refusal = f"Your address holds {limits.connections_per_address} connections already."
            self._make_room(registry.find_idle_of_address(self), refusal)
        elif len(self.open_connections) > limits.connections:
            self._make_room(registry.find_idle_of_largest(self), f"This server holds {limits.connections} connections already.")

    def _make_room(self, idle: GuardedProtocol | None, refusal: str) -> None:
        if idle is None:
            self._refuse("overloaded", refusal, {"retry-after": "5"})
        else:
            # `connection_lost` forgets a connection too, but in a later round of the loop. Until then a burst of new
            # connections would choose the same idle one again.
            self.open_connections.discard(idle)
            self.registry.remove(idle)
            idle.transport.close()

    @property
    def is_idle(self) -> bool:
        """Return whether a close takes nothing from the client: no request is under way, no answer waits to be read."""
        # uvicorn keeps the cycle of the last request; it is None before the first.
        is_working = self.cycle is not None and not self.cycle.response_complete
        return self._is_in_head and not is_working and not self.transport.get_write_buffer_size()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.open_connections.discard(self)
        self.registry.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, with no more than the limit of a head."""
        if self.transport.is_closing():
            return
        if self._is_in_head:
            if self._head_bytes == 0:
                self.deadline = self.loop.time() + self.limits.head_seconds
            self._head_bytes += len(data)
        super().data_received(data)
        # A head that never ends does not reach `on_headers_complete`, and the parser's callbacks keep all that they were given.
        if self._is_in_head and self._head_bytes > self.limits.head_bytes and not self.transport.is_closing():
            self._refuse_head()

    # Callbacks of the parser

    def on_headers_complete(self) -> None:
        """Refuse a head over the limit; else start the application as uvicorn does."""
        # The count of bytes may include the beginning of a body. So only a head near the limit is measured exactly: 4 bytes a field are the
        # colon, the blank and the line end.
        if self._head_bytes > self.limits.head_bytes or len(self.headers) > self.limits.head_fields:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > self.limits.head_bytes or len(self.headers) > self.limits.head_fields:
                # Only an exception stops the parser. It makes a parser error of it, for which uvicorn calls
                # `send_400_response`; the flag keeps the reason.
                self._is_over_limit = True
                raise ValueError("the head is too large")
        self._head_bytes = self._body_bytes = 0
        self._is_in_head = False
        self.deadline = self.loop.time() + self.limits.body_seconds
        super().on_headers_complete()
        # The application runs in a task, which starts in a later round of the loop: it never sees the transport itself.
        self.cycle.transport = self._deferred_close  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        """Count the bytes of the body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is complete. When its answer is out already, wait for the next request."""
        self._is_in_head = True
        self.deadline = None
        super().on_message_complete()
        self.cycle.transport = self.transport
        if self.cycle.response_complete:
            # uvicorn ignores the end of a request that is answered already, and `more_body` would stay set.
            self.cycle.more_body = False
            if self._deferred_close.is_closed:
                self.transport.close()
            self._wait_for_next()

    def on_response_complete(self) -> None:
        """Go on to the pipelined request, the rest of the body, or the next request."""
        # uvicorn's method is not called: it starts a timer for each answer, and `sweep` checks the deadlines instead.
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            # uvicorn adds on the left, so the oldest request is on the right.
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self.cycle.more_body:
            # The parser must read the rest of the body before the next head can begin.
            self.deadline = self.loop.time() + self.limits.linger_seconds
        else:
            self._wait_for_next()

    def _wait_for_next(self) -> None:
        self.registry.note_use(self)
        # Part of the next head may have arrived while the application worked.
        seconds = self.limits.head_seconds if self._head_bytes else self.limits.idle_seconds
        self.deadline = self.loop.time() + seconds

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser could not read; uvicorn calls this."""
        if self.transport.is_closing():
            return
        if self._is_over_limit:
            self._refuse_head()
        else:
            self._refuse("bad_request", msg)

    # The end of a connection

    def check(self, now: float) -> None:
        """End the connection if its time is over."""
        if self._is_reading_too_slowly(now):
            # A close would wait until the client has read what is buffered.
            self.transport.abort()
        elif self.deadline is not None and now > self.deadline and not self.transport.is_closing():
            self._end(now, now - self.deadline)

    def _is_reading_too_slowly(self, now: float) -> bool:
        """Return whether the client read too little since `_unread` was noted."""
        waiting = self.transport.get_write_buffer_size()
        if not waiting and not self.transport.is_closing():
            self._unread = None
        elif self._unread is None:
            self._unread = (now, waiting)
        elif now - self._unread[0] > self.limits.read_seconds:
            taken = self._unread[1] - waiting
            self._unread = (now, waiting)
            return taken < self.limits.bytes_per_second * self.limits.read_seconds
        return False

    def _end(self, now: float, late: float) -> None:
        is_working = self.cycle is not None and not self.cycle.response_complete
        if self._is_in_head and is_working:
            self.deadline = None  # the head of the next request came early; nobody waits for it yet
        elif self._is_in_head and self._head_bytes:
            self._refuse("request_timeout", f"The head of the request did not arrive within {self.limits.head_seconds:g} seconds.")
        elif not is_working:
            self.transport.close()
        elif self.flow.read_paused:
            self.deadline = now  # the application is slow, not the client
        # The deadline stays, so each round checks again. `late` counts from the end of `body_seconds`: the rate is an average
        # since then.
        elif self._body_bytes < self.limits.bytes_per_second * late:
            self._refuse("request_timeout", f"The body arrives at less than {self.limits.bytes_per_second} bytes a second.")

    def _refuse_head(self) -> None:
        limits = self.limits
        self._refuse("headers_too_large", f"The head of a request may have {limits.head_bytes} bytes and {limits.head_fields} fields.")

    def _refuse(self, code: str, detail: str, headers: dict[str, str] | None = None) -> None:
        """Answer with a problem and close. An application that works on the request sees a disconnect."""
        cycle = self.cycle
        # A second head after a started answer would be read as part of its body.
        is_answering = cycle is not None and cycle.response_started and not cycle.response_complete
        if cycle is not None and not cycle.response_complete:
            # The application waits for this event in `receive`, which then returns http.disconnect.
            cycle.disconnected = True
            cycle.message_event.set()
        if not is_answering:
            # uvicorn sets the path once the head is complete.
            path = self.scope["path"] if self.scope is not None and "path" in self.scope else "*"
            answer = render_problem({"path": path}, ApiError(code, detail, headers=headers))
            phrase = HTTPStatus(answer.status).phrase.encode()
            lines = [b"HTTP/1.1 %d %b\r\nconnection: close\r\ncontent-type: %b" % (answer.status, phrase, PROBLEM_TYPE.encode())]
            lines += [b"\r\n%b: %b" % (name.encode(), value.encode()) for name, value in answer.headers.items()]
            self.transport.write(b"".join([*lines, b"\r\ncontent-length: %d\r\n\r\n" % len(answer.body), answer.body]))
        self.transport.close()


class _DeferredClose:
    """The transport as the application sees it while its request is not read to the end: a close waits for that end.

    The kernel resets a socket that is closed with unread bytes. A client that is still sending would lose the answer that refuses it.
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
    """Check all connections at this interval, forever."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(seconds)
        now = loop.time()
        for connection in list(connections):
            try:
                connection.check(now)
            except Exception:
                # A fault of one connection must not leave all others without limits.
                log.exception("a connection could not be ended")
                connection.transport.abort()
