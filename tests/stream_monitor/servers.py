"""A streaming server of our own, and a catalog with an index of the songs of shows.py, for tests of the monitor."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from catalog_store.publisher import publish
from tests.catalog_store.catalog_tables import make_tables
from tests.stream_monitor.shows import index_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Answer = "Callable[[socket.socket, str], None]"


@contextmanager
def serving(answer: Callable[[socket.socket, str], None], host: str = "127.0.0.1") -> Iterator[str]:
    """Serve on a free port and yield the address. `answer` is given each connection and the path asked for."""
    listening = socket.create_server((host, 0))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head and (piece := connection.recv(4096)):
                head += piece
            if head:
                answer(connection, head.split()[1].decode())

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{listening.getsockname()[1]}"
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)


def ok(media_type: str = "audio/mpeg", *headers: str) -> bytes:
    """Return the head of an answer whose body ends with the connection."""
    return "\r\n".join(["HTTP/1.0 200 OK", f"Content-Type: {media_type}", *headers, "", ""]).encode()


def publish_songs(lengths: dict[int, float], folder: Path) -> Path:
    """Return a catalog root whose recordings of those numbers sound like the songs; numbers from 1 to 60."""
    tables = make_tables(folder / "tables", 60)
    index = index_of(lengths, folder / "index")
    publish(tables, folder / "catalog", snapshot_id="first", next_ids={"recording": 1000, "artist": 50}, recognition=index)
    return folder / "catalog"
