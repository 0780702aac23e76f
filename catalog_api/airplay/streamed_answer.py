"""An answer that is produced while it is sent, one piece ahead, so that a slow client costs no memory.

The heading and the first piece are made before the status is sent: an early failure is answered as an error. A later one ends the
connection without the end of the body, which every client takes for a failure. One thread makes the pieces of all reports of a process, so
that they do not delay the look-ups of keys.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from catalog_api.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from litestar.types import Receive, Scope, Send

Made = TypeVar("Made")

_SEND_SIZE = 256 * 1024
"""The server copies what it sends. Small copies reuse free memory, copies of megabytes get new pages from the kernel each time."""
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="reports")


class StreamedAnswer(Answer):
    """An answer in pieces; see the module."""

    __slots__ = ("_first", "_rest")

    def __init__(self, first: bytes, rest: Iterator[bytes | memoryview], media_type: str, headers: dict[str, str]) -> None:
        """Use `start`."""
        super().__init__(b"", headers, media_type=media_type)
        self._first = first
        self._rest = rest

    @classmethod
    async def start(cls, pieces: Iterator[bytes | memoryview], media_type: str, headers: dict[str, str]) -> StreamedAnswer:
        """Make the heading and the first piece; errors of making them are raised."""
        # Two pieces: the heading of CSV and JSON is made without the database, so it proves nothing.
        heading = await _make_piece(pieces) or b""
        return cls(b"".join((heading, await _make_piece(pieces) or b"")), pieces, media_type, headers)

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; stop when the client disconnects."""
        names = {**self.headers, "content-type": self.media_type}
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in names.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            piece: bytes | memoryview | None = self._first
            while piece is not None and not disconnected.done():
                # The next piece is made while this one is sent.
                following = _make_piece(self._rest)
                for start in range(0, len(piece), _SEND_SIZE):
                    part: Any = {"type": "http.response.body", "body": memoryview(piece)[start : start + _SEND_SIZE], "more_body": True}
                    await send(part)
                piece = await following
            # Not in `finally`: after an error the body must not end, so that the client sees a failure.
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            disconnected.cancel()


def run_in_report_thread(work: Callable[[], Made]) -> asyncio.Future[Made]:
    """Run `work` in that thread, between the pieces of reports."""
    return asyncio.get_running_loop().run_in_executor(_THREAD, work)


def _make_piece(pieces: Iterator[bytes | memoryview]) -> asyncio.Future[bytes | memoryview | None]:
    made = run_in_report_thread(partial(next, pieces, None))
    made.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody awaits the piece of a client that disconnected
    return made


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
