"""An answer that is made while it is sent: one piece ahead of what is out, so that a slow caller costs no memory.

The first two pieces, a heading and what it heads, are made before the status is sent: what fails at once is answered as an error. What
fails later ends the connection without the end of the body, which every client takes for a failure. Pieces of all reports of a process are
made in one thread of their own, one after the other: the look-ups of keys need not wait for them.
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

_SENT_AT_ONCE = 256 * 1024
"""The server copies what it sends: small copies find memory that is at hand, those of megabytes get pages of the kernel each time."""
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="reports")


class StreamedAnswer(Answer):
    """See the module."""

    __slots__ = ("_first", "_rest")

    def __init__(self, first: bytes, rest: Iterator[bytes | memoryview], media_type: str, headers: dict[str, str]) -> None:
        """Use `begun`."""
        super().__init__(b"", headers, media_type=media_type)
        self._first = first
        self._rest = rest

    @classmethod
    async def start(cls, pieces: Iterator[bytes | memoryview], media_type: str, headers: dict[str, str]) -> StreamedAnswer:
        """With the first pieces made, the heading and what it heads; whatever making them raises."""
        heading = await _next(pieces) or b""
        return cls(b"".join((heading, await _next(pieces) or b"")), pieces, media_type, headers)

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a caller who went away is not worked for."""
        names = {**self.headers, "content-type": self.media_type}
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in names.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        gone = asyncio.ensure_future(_gone(receive))
        try:
            piece: bytes | memoryview | None = self._first
            while piece is not None and not gone.done():
                following = _next(self._rest)
                for start in range(0, len(piece), _SENT_AT_ONCE):
                    part: Any = {"type": "http.response.body", "body": memoryview(piece)[start : start + _SENT_AT_ONCE], "more_body": True}
                    await send(part)
                piece = await following
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()


def run_in_report_thread(work: Callable[[], Made]) -> asyncio.Future[Made]:
    """`work` done there, between the pieces of reports."""
    return asyncio.get_running_loop().run_in_executor(_THREAD, work)


def _next(pieces: Iterator[bytes | memoryview]) -> asyncio.Future[bytes | memoryview | None]:
    made = run_in_report_thread(partial(next, pieces, None))
    made.add_done_callback(lambda done: done.cancelled() or done.exception())  # of a caller who went away nobody asks any more
    return made


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
