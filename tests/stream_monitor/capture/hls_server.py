"""HLS of our own for tests: sound cut into MPEG-TS or fragmented MP4 by FFmpeg's libraries, and a server of named answers."""

from __future__ import annotations

import io
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING

import av
import numpy as np
from av.audio.frame import AudioFrame

from tests.stream_monitor.servers import ok, serving

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from numpy.typing import NDArray

PLAYLIST = "application/vnd.apple.mpegurl"
_FRAME = 1024


def cut_ts(samples: NDArray[np.int16], rate: int, frames: int) -> list[bytes]:
    """Return `int16[n]`, mono, as segments of `frames` AAC frames, each a transport stream."""
    return [_encode(samples[at : at + frames * _FRAME], rate, "mpegts", at) for at in range(0, len(samples), frames * _FRAME)]


def cut_mp4(samples: NDArray[np.int16], rate: int, frames: int) -> tuple[bytes, list[bytes]]:
    """Return the header and the segments of a fragmented MP4."""
    options = {"movflags": "empty_moov+default_base_moof", "frag_duration": str(frames * _FRAME * 1_000_000 // rate)}
    whole = _encode(samples, rate, "mp4", 0, options)
    boxes: list[tuple[bytes, bytes]] = []
    at = 0
    while at < len(whole):
        size = int.from_bytes(whole[at : at + 4], "big")
        boxes.append((whole[at + 4 : at + 8], whole[at : at + size]))
        at += size
    head = b"".join(data for kind, data in boxes if kind in (b"ftyp", b"moov"))
    moofs = [number for number, (kind, _) in enumerate(boxes) if kind == b"moof"]
    return head, [boxes[number][1] + boxes[number + 1][1] for number in moofs]


def _encode(samples: NDArray[np.int16], rate: int, form: str, start: int, options: dict[str, str] | None = None) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=form, options=options or {}) as container:
        stream = container.add_stream("aac", rate=rate)
        context = stream.codec_context
        context.layout, context.format, context.bit_rate = "mono", "fltp", 96_000
        context.open()
        for at in range(0, len(samples), _FRAME):
            piece = np.ascontiguousarray(samples[at : at + _FRAME])[None].astype(np.float32) / 32768
            frame = AudioFrame.from_ndarray(piece, format="fltp", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = rate, start + at, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


@contextmanager
def serving_named(answers: dict[str, tuple[str, bytes]], asked: list[str] | None = None, host: str = "127.0.0.1") -> Iterator[str]:
    """Serve (media type, body) by path; a path that is missing is 404. `answers` may change meanwhile; `asked` collects paths."""

    def answer(connection: socket.socket, path: str) -> None:
        if asked is not None:
            asked.append(path)
        if path not in answers:
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        kind, body = answers[path]
        head = ok(kind, f"Content-Length: {len(body)}") if not kind.startswith("HTTP") else kind.encode()
        connection.sendall(head + body)

    with serving(answer, host) as address:
        yield address


def media(names: list[str], *more: str, first: int = 0, target: int = 2, ended: bool = True) -> bytes:
    """Return a media playlist; a name that starts with `#` is a tag."""
    head = ["#EXTM3U", "#EXT-X-VERSION:7", f"#EXT-X-TARGETDURATION:{target}", f"#EXT-X-MEDIA-SEQUENCE:{first}", *more]
    lines = [line for name in names for line in ([name] if name.startswith("#") else [f"#EXTINF:{target}.0,", name])]
    return "\n".join([*head, *lines, *(["#EXT-X-ENDLIST"] if ended else [])]).encode()
