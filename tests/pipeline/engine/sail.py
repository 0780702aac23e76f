"""A Sail server on loopback: an engine that speaks Spark's protocol."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.ports import free_port
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
"""Folder of the project."""


@contextmanager
def start_sail(log: Path) -> Iterator[str]:
    """Start a server, yield its URL, and stop it."""
    port = free_port()
    with log.open("wb") as output:
        command = [sys.executable, "-m", "pysail", "spark", "server", "--ip", "127.0.0.1", "--port", str(port)]
        server = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
    try:
        until(lambda: listens(port))
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(PATIENCE_SECONDS)


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
