"""A GET with an endless answer, as radio servers understand it: HTTP/1.x or Shoutcast's `ICY 200 OK`, chunked or not.

`outbound_http` checks the address of the request and of each redirect. Standard clients refuse the ICY status line and resolve names by
themselves. Out of scope: the format of the body.
"""

from __future__ import annotations

import re
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from outbound_http import InvalidAddressError, RefusedAddressError, UnreachableError
from stream_monitor.capture.errors import CaptureError, LastingCaptureError

if TYPE_CHECKING:
    from types import TracebackType

    from outbound_http import Outbound, Target

MOST_REDIRECTS = 5
OPEN_SECONDS = 10.0
"""Limit of each step: connection, TLS handshake, head of the answer."""
READ_SECONDS = 20.0
"""Limit without a single byte, after which the source has stalled."""
_LARGEST_HEAD = 32 * 1024
_PIECE = 16 * 1024
_MOST_DIGITS = 18
# Shoutcast answers `ICY 200 OK`. The reason may be missing (RFC 9112, 4).
_STATUS = re.compile(rb"(?:HTTP/1\.[01]|ICY) +(\d{3})(?: +([^\r\n]*))?", re.IGNORECASE)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;|$)")
_PARTIAL = 206
_REDIRECTS = (301, 302, 303, 307, 308)
_LASTING = {401: "it asks for a password", 403: "it refuses us", 410: "it is gone for good", 451: "it refuses us"}
_REQUEST = (
    "GET {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: music-catalog-monitor/1\r\nAccept: */*\r\n"
    "Icy-MetaData: 1\r\nConnection: close\r\n{more}\r\n"
)


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an answer; header names in lower case."""

    status: int
    reason: str
    headers: dict[str, str]

    @property
    def media_type(self) -> str:
        """The media type without parameters, in lower case; empty when there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def read_number(self, name: str) -> int | None:
        """Return the number of bytes in a header; None if it is missing or no such number."""
        text = self.headers.get(name, "")
        # isdigit() alone accepts characters that int() refuses, such as superscripts; int() also refuses thousands of digits.
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


class Response:
    """An answer with its unread body. Close it from any thread: a pending read ends."""

    def __init__(self, target: Target, connection: socket.socket, head: Head, rest: bytes) -> None:
        """Begin the body with `rest`, which came with the head."""
        self.target = target
        self.head = head
        self._connection = connection
        self._rest = rest
        self._is_chunked = "chunked" in head.headers.get("transfer-encoding", "").lower()
        self._left = 0
        """Bytes left of the present chunk."""
        self._is_cut = False
        """The connection ended before the last chunk."""
        connection.settimeout(READ_SECONDS)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        # close() alone would not wake a thread that waits in recv().
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def read(self) -> bytes:
        """Return at least a byte; empty at the end. CaptureError: nothing comes, or the connection breaks."""
        if not self._is_chunked:
            return self._read_raw()
        if self._left == 0 and not self._read_chunk_length():
            return b""
        piece = self._read_raw()
        self._is_cut = not piece
        # The bytes after this chunk begin the next one.
        self._rest = piece[self._left :] + self._rest
        piece = piece[: self._left]
        self._left -= len(piece)
        return piece

    def read_all(self, most: int) -> bytes:
        """Return the body up to `most` bytes, within OPEN_SECONDS."""
        body = b""
        until = time.monotonic() + OPEN_SECONDS
        while len(body) < most and time.monotonic() < until and (piece := self.read()):
            body += piece
        return body[:most]

    @property
    def is_partial(self) -> bool:
        """The body is the part that was asked for."""
        return self.head.status == _PARTIAL

    def read_body(self, most: int, seconds: float) -> bytes:
        """Return the whole body. CaptureError: it is larger than `most` bytes, is cut short, or takes longer than `seconds`."""
        wanted = None if self._is_chunked else self.head.read_number("content-length")
        body = bytearray()
        until = time.monotonic() + seconds
        # A server may keep the connection open although it was asked to close it: the length tells where the body ends.
        while (wanted is None or len(body) < wanted) and len(body) <= most and (piece := self.read()):
            body += piece
            if time.monotonic() > until:
                raise CaptureError(f"{self.target.authority} sent {len(body)} bytes in {seconds:.0f} s; it is too slow to be followed")
        if len(body) > most:
            raise LastingCaptureError(f"{self.target.authority} sent more than {most // 2**20} MB where a part of an HLS stream should be")
        if wanted is not None and len(body) < wanted:
            raise CaptureError(f"{self.target.authority} hung up after {len(body)} of {wanted} bytes")
        if self._is_cut:
            raise CaptureError(f"{self.target.authority} hung up after {len(body)} bytes, before the end of its answer")
        return bytes(body)

    def _read_raw(self) -> bytes:
        if self._rest:
            piece, self._rest = self._rest, b""
            return piece
        try:
            return self._connection.recv(_PIECE)
        except TimeoutError:
            raise CaptureError(f"{self.target.authority} sent nothing for {READ_SECONDS:.0f} s") from None
        except OSError as error:
            raise CaptureError(f"the connection to {self.target.authority} broke: {error.strerror or error}") from error

    def _read_chunk_length(self) -> bool:
        """Read the length of the next chunk; return False after the last one."""
        line = self._read_line() or self._read_line()  # each chunk ends with an empty line
        length = _CHUNK.match(line)
        if length is None:
            raise CaptureError(f"{self.target.authority} sent a broken answer (chunk length {line[:20]!r})")
        self._left = int(length[1], 16)
        return self._left > 0

    def _read_line(self) -> bytes:
        received = b""
        until = time.monotonic() + READ_SECONDS
        while b"\n" not in received:
            piece = self._read_raw()
            # The limit of each read alone would let a server send such a line for hours, a byte now and then.
            if time.monotonic() > until:
                raise CaptureError(f"{self.target.authority} sent no sound for {READ_SECONDS:.0f} s")
            # A connection that ends here, or a line without an end, counts as the last chunk.
            if not piece or len(received) > _PIECE:
                self._is_cut = True
                return b"0"
            received += piece
        line, _, self._rest = received.partition(b"\n")
        return line.strip()


def request_stream(outbound: Outbound, url: str, part: tuple[int, int] | None = None) -> Response:
    """Request `url`, follow redirects, and return the answer 200. Each address is checked first. CaptureError says why there is none.

    `part` asks for bytes (offset, length); a server may send all instead (`Response.is_partial`).
    """
    for _hop in range(MOST_REDIRECTS + 1):
        response = _request(outbound, url, part)
        head, target = response.head, response.target
        if head.status == 200 or (part is not None and response.is_partial):  # noqa: PLR2004 -- OK
            return response
        response.close()
        if head.status not in _REDIRECTS or "location" not in head.headers:
            raise _build_refusal(target.authority, head)
        # The next round checks this address like the first one: a public server may redirect into our network.
        url = target.follow(head.headers["location"])
    raise LastingCaptureError(
        f"the address redirects more than {MOST_REDIRECTS} times, at last to {url[:200]}; give the address of the stream itself"
    )


def _request(outbound: Outbound, url: str, part: tuple[int, int] | None) -> Response:
    try:
        resolved = outbound.check(url)
        connection = outbound.connect(resolved, OPEN_SECONDS)
    except (RefusedAddressError, InvalidAddressError) as error:
        raise LastingCaptureError(f"the address is not allowed: {error}") from error
    except UnreachableError as error:
        raise CaptureError(str(error)) from error
    target = resolved.target
    more = "" if part is None else f"Range: bytes={part[0]}-{part[0] + part[1] - 1}\r\n"
    try:
        connection.sendall(_REQUEST.format(path=target.path, authority=target.authority, more=more).encode("ascii"))
        head, rest = _read_head(connection, target.authority)
    except BaseException as error:
        connection.close()
        if isinstance(error, OSError):
            raise CaptureError(f"{target.authority} did not answer: {error.strerror or error or 'timed out'}") from error
        raise
    return Response(target, connection, head, rest)


def _read_head(connection: socket.socket, authority: str) -> tuple[Head, bytes]:
    received = b""
    until = time.monotonic() + OPEN_SECONDS
    while (end := _find_head_end(received)) is None:
        left = until - time.monotonic()
        if left <= 0 or len(received) > _LARGEST_HEAD:
            raise CaptureError(f"{authority} did not send the head of an answer within {OPEN_SECONDS:.0f} s and {_LARGEST_HEAD // 1024} kB")
        # The rest of the deadline, not a limit for each read: a server that sends a byte now and then must not hold the thread.
        connection.settimeout(left)
        piece = connection.recv(_PIECE)
        if not piece:
            raise CaptureError(f"{authority} hung up before it answered")
        received += piece
    lines = received[: end[0]].splitlines()
    status = _STATUS.match(lines[0]) if lines else None
    if status is None:
        raise LastingCaptureError(f"{authority} is not a radio or web server: it answered {received[:40]!r}")
    fields = (line.decode("latin-1").partition(":") for line in lines[1:])
    headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    return Head(int(status[1]), (status[2] or b"").decode("latin-1").strip(), headers), received[end[1] :]


def _find_head_end(received: bytes) -> tuple[int, int] | None:
    """Return the end of the head and the start of the body. Some Shoutcast servers end lines with LF alone."""
    ends = [(at, at + len(mark)) for mark in (b"\r\n\r\n", b"\n\n") if (at := received.find(mark)) >= 0]
    return min(ends, default=None)


def _build_refusal(authority: str, head: Head) -> CaptureError:
    answer = f"{authority} answered {head.status} {head.reason}".rstrip()
    if head.status in _LASTING:
        return LastingCaptureError(f"{answer}: {_LASTING[head.status]}")
    if head.status == 404:  # noqa: PLR2004 -- Icecast answers so while a source is away
        return CaptureError(f"{answer}: there is no such mount point, or its source is not connected")
    return CaptureError(answer)
