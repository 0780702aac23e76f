"""The edge of a worker: what a client may take of it in bytes, seconds and connections, whatever it sends or fails to send.

uvicorn's protocol bounds none of: how long a request takes to arrive, how large its head is, how long a reader takes to read. This one is
uvicorn's with those limits, told as problem documents. One round a second looks at all connections (`sweep`), so a request costs no timers.

    what a client does                                  what it gets
    sends no whole head in time, or nothing             408 (nothing, if it sent nothing), closed
    a head of too many bytes or fields                  431, closed
    a body slower than the least pace                   408, closed; the application sees a disconnect
    a body that nobody reads (refused request)          the answer, then some seconds to notice it, then closed
    does not read its answer                            cut off
    one connection too many                             503, closed
    no further request in time                          closed

How large a body may be is the route's business (bodies.py). What must not live here: anything that knows a path, a key, an account.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from catalog_api.problems import PROBLEM_TYPE, ApiError, problem

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

SWEEP_SECONDS = 1.0


@dataclass(frozen=True)
class Limits:
    """Of one worker; seconds and bytes. An operator sets some of them (settings.py)."""

    head_seconds: float = 10.0
    """From the connection, or from a request's first byte, to the end of its head."""
    head_bytes: int = 64 * 1024
    head_fields: int = 100
    body_seconds: float = 10.0
    """Until a body must keep pace; then it must have brought `body_pace` bytes for every second since."""
    body_pace: int = 4 * 1024
    read_seconds: float = 20.0
    """How long a client may take none of an answer that waits for it."""
    linger_seconds: float = 5.0
    """How long the rest of a body is thrown away after its request was answered, so that the client comes to read the answer."""
    idle_seconds: float = 65.0
    """Longer than the 60 seconds that load balancers keep connections: the one who sends closes them, and no request meets a closed one."""
    connections: int = 4096


class GuardedProtocol(HttpToolsProtocol):
    """One connection. `deadline` is when `check` ends it, in the loop's time; None while the application works."""

    limits: ClassVar[Limits] = Limits()
    """Of all connections of the process; set before it serves."""
    everyone: ClassVar[set[GuardedProtocol]] = set()
    """All open connections of the process."""

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
        self._stalled_since: float | None = None
        self._closing_since: float | None = None
        self._until_read = _UntilRead(self)

    # What the transport tells

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection; refuse it when there are too many."""
        super().connection_made(transport)
        self.everyone.add(self)
        self.deadline = self.loop.time() + self.limits.head_seconds
        if len(self.everyone) > self.limits.connections:
            self._refuse("overloaded", f"This server holds {self.limits.connections} connections already.", {"retry-after": "5"})

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.everyone.discard(self)
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

    def pause_writing(self) -> None:
        """The client does not read: remember since when."""
        self._stalled_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._stalled_since = None
        super().resume_writing()

    # What the parser tells

    def on_headers_complete(self) -> None:
        """Judge the head, then start the application as uvicorn does."""
        if self._head_bytes > self.limits.head_bytes or len(self.headers) > self.limits.head_fields:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > self.limits.head_bytes or len(self.headers) > self.limits.head_fields:
                self._is_over_limit = True
                raise ValueError("the head is too large")
        self._is_in_head = False
        self._head_bytes = self._body_bytes = 0
        self.deadline = self.loop.time() + self.limits.body_seconds
        super().on_headers_complete()
        self.cycle.transport = self._until_read  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        """Note how far the body came."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole: the application takes its time, or the answer is out already."""
        super().on_message_complete()
        self._is_in_head = True
        self.deadline = None
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
        limits = self.limits
        if self.transport.is_closing():
            self._closing_since = self._closing_since or now
            if now - self._closing_since > limits.read_seconds:
                self.transport.abort()
        elif self._stalled_since is not None and now - self._stalled_since > limits.read_seconds:
            self.transport.abort()
        elif self.deadline is not None and now > self.deadline:
            self._end(now, now - self.deadline)

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
        elif self._body_bytes < self.limits.body_pace * late:
            self._refuse("request_timeout", f"The body arrives at less than {self.limits.body_pace} bytes a second.")

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


async def sweep(connections: set[GuardedProtocol]) -> None:
    """Look at all connections every SWEEP_SECONDS, for ever."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        now = loop.time()
        for connection in list(connections):
            connection.check(now)
