"""A mail server on loopback that keeps the messages it takes."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import EmailMessage


class MailServer(socketserver.ThreadingTCPServer):
    """SMTP without encryption or login. A recipient at `refused.example` is refused."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.messages: list[EmailMessage] = []

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.server_address[1]}"


class _Session(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say("220 here")
        while line := self.rfile.readline().decode().strip():
            verb = line.split()[0].upper()
            if verb == "QUIT":
                self._say("221 bye")
                return
            if verb == "DATA":
                self._say("354 go on")
                self._take()
            elif verb == "RCPT" and "@refused.example" in line:
                self._say("550 no such mailbox")
            else:
                self._say("250 ok")

    def _take(self) -> None:
        lines = iter(self.rfile.readline, b".\r\n")
        message = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
        self.server.messages.append(message)
        self._say("250 taken")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Yield a running server."""
    with MailServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
