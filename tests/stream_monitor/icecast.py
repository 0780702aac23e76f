"""A real Icecast server and real sources (ffmpeg), for tests: on a free port of 127.0.0.1, with the sound given as samples.

All sources are fed in real time by one clock: a source that returns continues where the show is by then.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.ports import free_port
from tests.stream_monitor.shows import RATE
from tests.waiting import until

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PROGRAMS = ("icecast2", "ffmpeg")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
_OGG = ("-content_type", "application/ogg", "-page_duration", "100000", "-f", "ogg")
"""Pages of a tenth of a second. The usual ones delay the sound by a second, which would count against the monitor."""
CODECS = {
    "mp3": ("-ar", "44100", "-c:a", "libmp3lame", "-b:a", "96k", "-content_type", "audio/mpeg", "-f", "mp3"),
    "aac": ("-ar", "44100", "-c:a", "aac", "-b:a", "96k", "-content_type", "audio/aac", "-f", "adts"),
    "ogg": ("-ar", "44100", "-c:a", "libvorbis", "-b:a", "96k", *_OGG),
    "opus": ("-ar", "48000", "-c:a", "libopus", "-b:a", "64k", *_OGG),
}
"""Options of ffmpeg for each codec."""
_PASSWORD = "hackme"  # noqa: S105 -- of a server that lives as long as the test
_CONFIGURATION = """<icecast>
  <limits><clients>200</clients><sources>50</sources><source-timeout>5</source-timeout><burst-size>65536</burst-size></limits>
  <authentication><source-password>{password}</source-password><admin-password>{password}</admin-password></authentication>
  <hostname>localhost</hostname>
  <listen-socket><port>{port}</port><bind-address>127.0.0.1</bind-address></listen-socket>
  <paths><basedir>{folder}</basedir><logdir>{folder}</logdir><webroot>{folder}</webroot><adminroot>{folder}</adminroot></paths>
  <logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog><loglevel>2</loglevel></logging>
  <security><chroot>0</chroot>{owner}</security>
</icecast>
"""
_OWNER = "<changeowner><user>nobody</user><group>nogroup</group></changeowner>"
"""Icecast refuses to run as root."""
_PIECE_SECONDS = 0.1


class Icecast:
    """`start`, `kill`, `start` again on the same port; `close` at the end."""

    def __init__(self) -> None:
        is_root = os.geteuid() == 0
        self._folder = Path(tempfile.mkdtemp(prefix="icecast"))
        if is_root:
            os.chown(self._folder, pwd.getpwnam("nobody").pw_uid, -1)
        self.port = free_port()
        text = _CONFIGURATION.format(password=_PASSWORD, port=self.port, folder=self._folder, owner=_OWNER if is_root else "")
        self._file = self._folder / "icecast.xml"
        self._file.write_text(text)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["icecast2", "-c", str(self._file)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self._folder)
        until(self._is_listening, "Icecast", self._process)

    def _is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, mount: str) -> str:
        return f"http://127.0.0.1:{self.port}/{mount}"

    def has(self, mount: str) -> bool:
        """Return whether a source sends to the mount."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(f"GET /{mount} HTTP/1.0\r\n\r\n".encode())
            connection.settimeout(1)
            return b" 200 " in connection.recv(64)
        return False


class Source:
    """Sends a show to a mount, second by second of the clock that began at `began` (time.time)."""

    def __init__(
        self,
        server: Icecast,
        mount: str,
        samples: NDArray[np.int16],
        began: float,
        *,
        rate: int = RATE,
    ) -> None:
        """`samples`: mono, so many a second."""
        self._target = f"icecast://source:{_PASSWORD}@127.0.0.1:{server.port}/{mount}"
        self._samples = samples
        self._began = began
        self._rate = rate
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    def start(self, codec: str) -> None:
        """Send from where the show is now."""
        sound = ("-f", "s16le", "-ar", str(self._rate), "-ac", "1", "-i", "-")
        command = ["ffmpeg", "-v", "error", *sound, *CODECS[codec], "-flush_packets", "1"]
        self._process = process = subprocess.Popen([*command, self._target], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._thread = threading.Thread(target=self._feed, args=(process,), daemon=True)
        self._thread.start()

    def kill(self) -> None:
        if self._process is not None and self._thread is not None:
            self._process.kill()
            self._process.wait()
            self._thread.join()

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        at = time.time() - self._began
        with suppress(OSError, ValueError):
            while at < len(self._samples) / self._rate and process.poll() is None:
                piece = self._samples[round(at * self._rate) : round((at + _PIECE_SECONDS) * self._rate)]
                process.stdin.write(piece.tobytes())
                process.stdin.flush()
                at += _PIECE_SECONDS
                time.sleep(max(0.0, self._began + at - time.time()))
        with suppress(OSError):
            process.stdin.close()
