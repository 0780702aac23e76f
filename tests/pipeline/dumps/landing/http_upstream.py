"""An HTTP upstream on loopback for tests, with adjustable validators, ranges, announced sizes, redirects and changes while it serves."""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class Upstream:
    """Files by path (`2026-09-01/a.csv`), and how they are served. `sent` lists the requests: (path, Range header, status)."""

    files: dict[str, bytes] = field(default_factory=dict)
    entity_tags: bool = False
    weak_tags: bool = False
    modified: str | None = None
    ranges: bool = True
    tell_range: Callable[[int, int], str] = lambda start, size: f"bytes {start}-{size - 1}/{size}"
    """The head of a partial answer, by its first byte and the size of the file."""
    announce: Callable[[str, bytes], int] = lambda _path, content: len(content)
    announce_length: bool = True
    encoding: str | None = None
    breaks: int = 0
    """Count of answers with more than `give` bytes that break off after `give` bytes."""
    give: int = 1000
    fails: int = 0
    """Count of requests that are answered 503 from now on."""
    broken_folders: set[str] = field(default_factory=set)
    moved: dict[str, str] = field(default_factory=dict)
    on_get: Callable[[str], None] = lambda _path: None
    sent: list[tuple[str, str | None, int]] = field(default_factory=list)
    address: str = ""

    def fetches(self, path: str) -> list[tuple[str | None, int]]:
        """Return the range and status of each GET of a file."""
        return [(range_, status) for sent, range_, status in self.sent if sent == path]

    def tag(self, path: str) -> str | None:
        """Return the entity tag of a file."""
        if self.weak_tags:
            return f'W/"{hashlib.md5(self.files[path]).hexdigest()}"'  # noqa: S324 - an entity tag
        return f'"{hashlib.md5(self.files[path]).hexdigest()}"' if self.entity_tags else None  # noqa: S324


@contextmanager
def serving(upstream: Upstream) -> Iterator[Upstream]:  # noqa: C901 - a handler is a class in the function that it answers for
    """Serve it, with its address set, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:  # noqa: C901, PLR0911 - every manner in the order in which a server decides
            path = self.path.lstrip("/")
            if path in upstream.moved:
                self._head(302, {"Location": upstream.moved[path], "Content-Length": "0"})
                return
            if path in upstream.broken_folders or upstream.fails:
                upstream.fails = max(0, upstream.fails - 1)
                self._head(503, {"Content-Length": "0"})
                return
            if path == "" or path.endswith("/"):
                self._index(path)
                return
            if any(file.startswith(f"{path}/") for file in (*upstream.files, *upstream.moved)):
                self._head(301, {"Location": f"/{path}/", "Content-Length": "0"})
                return
            if path not in upstream.files:
                self._head(404, {"Content-Length": "0"})
                return
            content = upstream.files[path]
            headers = {"Content-Type": "application/octet-stream"}
            headers |= {"ETag": tag} if (tag := upstream.tag(path)) else {}
            headers |= {"Last-Modified": upstream.modified} if upstream.modified else {}
            headers |= {"Content-Encoding": upstream.encoding} if upstream.encoding else {}
            asked = self.headers.get("Range") if upstream.ranges else None
            condition = self.headers.get("If-Range")
            if condition and condition not in (tag, upstream.modified):
                asked = None
            start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
            if asked and start >= len(content):
                self._head(416, {"Content-Length": "0"})
                return
            headers |= {"Content-Range": upstream.tell_range(start, len(content))} if asked else {}
            if upstream.announce_length:
                announced = upstream.announce(path, content) if not with_body else len(content) - start
                headers["Content-Length"] = str(announced)
            else:
                self.close_connection = True
            self._head(206 if asked else 200, headers)
            if not with_body:
                return
            upstream.sent.append((path, self.headers.get("Range"), 206 if asked else 200))
            body = content[start:]
            if upstream.breaks and len(body) > upstream.give:
                upstream.breaks -= 1
                self.wfile.write(body[: upstream.give])
                self.close_connection = True
            else:
                self.wfile.write(body)
            upstream.on_get(path)

        def _index(self, folder: str) -> None:
            names = {path.removeprefix(folder).partition("/") for path in (*upstream.files, *upstream.moved) if path.startswith(folder)}
            links = sorted(name + slash for name, slash, _ in names)
            page = "".join(f'<a href="{link}">{link}</a>\n' for link in links).encode()
            self._head(200, {"Content-Type": "text/html", "Content-Length": str(len(page))})
            self.wfile.write(page)

        def _head(self, status: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write no log, to keep tests quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    upstream.address = f"http://127.0.0.1:{server.server_address[1]}/"
    try:
        yield upstream
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
