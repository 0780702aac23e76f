"""HLS as a source of bytes: polls the media playlist, fetches its segments in order, and decrypts them if they have a key.

Each address (variant, segment, header, key, and every redirect) passes the outbound guard like that of the stream itself: `request_stream`
resolves, checks and connects. The decoder gets bytes only and opens nothing. A discontinuity ends a part, and another decoder goes on with
the next one. Out of scope: the syntax of playlists (hls_playlists.py), decoding (sound.py).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from stream_monitor.capture.errors import CaptureError, LastingCaptureError
from stream_monitor.capture.hls_playlists import Key, Resource, Segment, choose_variant, is_master, parse_media_playlist
from stream_monitor.capture.http import request_stream
from stream_monitor.capture.playlists import LARGEST_PLAYLIST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outbound_http import Outbound, Target
    from stream_monitor.capture.http import Response

LIVE_SEGMENTS: Final = 3
"""Segments before the end at which a live stream is joined, as players do."""
LARGEST_SEGMENT: Final = 32 * 1024 * 1024
"""Bytes of a segment: 10 s of video at 25 Mbit/s."""
_STALLED_TARGETS: Final = 6
"""Target durations without a new segment after which the source has stalled."""
_TRIES: Final = 2
"""Attempts to fetch a segment: edges of a network may lag behind the playlist."""
_FETCH_SECONDS: Final = 30.0
"""Limit of one playlist, segment or key. A server that is slower cannot be followed."""
_KEY_BYTES: Final = 16
_MP4_BOXES: Final = (b"ftyp", b"styp", b"moov")


class HlsSource:
    """The bytes of an HLS stream, part by part."""

    def __init__(self, outbound: Outbound, target: Target, body: str) -> None:
        """Begin with the playlist `body` that `target` answered. CaptureError."""
        self._outbound = outbound
        self._closing = threading.Event()
        self._response: Response | None = None
        if is_master(body):
            target, body = self._fetch_playlist(target.follow(choose_variant(body)))
            if is_master(body):
                raise LastingCaptureError("the HLS master playlist leads to another one; give the address of a media playlist")
        self._target = target
        self._playlist = parse_media_playlist(body)
        self._keys: dict[str, bytes] = {}
        self._head: Resource | None = None
        self._next_number = self._choose_first()
        self._waiting: Segment | None = None
        """The first segment of the next part."""
        self._has_begun = False
        self._read_at = self._added_at = time.monotonic()
        self._bytes = self._iterate_bytes()

    def read(self) -> bytes:
        """Return at least a byte; empty at the end of a part. CaptureError."""
        return next(self._bytes, b"")

    def begin_next(self) -> bool:
        """Begin the part behind the last one; return False when the stream has ended."""
        self._bytes = self._iterate_bytes()
        return self._waiting is not None

    def close(self) -> None:
        """End all reads, from any thread."""
        self._closing.set()
        response = self._response
        if response is not None:
            response.close()

    def _choose_first(self) -> int:
        count = len(self._playlist.segments)
        skipped = 0 if self._playlist.is_ended else max(0, count - LIVE_SEGMENTS)
        return self._playlist.first_number + skipped

    def _iterate_bytes(self) -> Iterator[bytes]:
        """Yield the bytes of a part."""
        while True:
            segment, self._waiting = self._waiting or self._await_segment(), None
            if segment is None:
                return
            if self._has_begun and self._is_new_part(segment):
                self._waiting, self._has_begun = segment, False
                return
            if segment.head is not None and segment.head != self._head:
                yield self._fetch_head(segment.head)
            self._has_begun, self._head, self._next_number = True, segment.head, segment.number + 1
            yield self._fetch_segment(segment)

    def _is_new_part(self, segment: Segment) -> bool:
        # The header of the last part is forgotten, so that the next part begins with its own.
        if segment.begins_anew:
            self._head = None
        return segment.begins_anew or segment.head != self._head

    def _await_segment(self) -> Segment | None:
        """Return the next segment as soon as it is listed; None at the end of the stream."""
        while not self._closing.is_set():
            at = self._next_number - self._playlist.first_number
            if at < 0:
                # Sound is missing: a new connection has a clock of its own, and the time between is a gap.
                raise CaptureError("the HLS playlist has moved on, and segments were missed")
            if at < len(self._playlist.segments):
                self._added_at = time.monotonic()
                return self._playlist.segments[at]
            if self._playlist.is_ended:
                return None
            self._reload()
        return None

    def _reload(self) -> None:
        target_seconds = self._playlist.target_seconds
        stalled = time.monotonic() - self._added_at
        if stalled > _STALLED_TARGETS * target_seconds:
            raise CaptureError(f"the HLS playlist has had no new segment for {stalled:.0f} s")
        # RFC 8216, 6.3.4: not before the target duration has passed, half of it when nothing was new.
        self._closing.wait(max(0.0, self._read_at + target_seconds / 2 - time.monotonic()))
        if self._closing.is_set():
            return
        _, body = self._fetch_playlist(self._target.url)
        self._read_at = time.monotonic()
        read = parse_media_playlist(body)
        end = read.first_number + len(read.segments)
        if end < self._next_number - len(read.segments):
            raise CaptureError("the HLS playlist began again; its source may have restarted")
        self._playlist = read

    def _fetch_segment(self, segment: Segment) -> bytes:
        for left in reversed(range(_TRIES)):
            try:
                data = self._fetch(segment.resource)
                break
            except CaptureError as error:
                if error.is_lasting or not left or self._closing.is_set():
                    raise
                self._closing.wait(self._playlist.target_seconds / 2)
        if not data:
            raise CaptureError(f"segment {segment.number} of the HLS stream is empty")
        return self._decrypt(segment.resource.key, segment.number, data, f"segment {segment.number}")

    def _fetch_head(self, head: Resource) -> bytes:
        data = self._fetch(head)
        # Some servers leave it in the clear behind a key.
        return data if data[4:8] in _MP4_BOXES else self._decrypt(head.key, 0, data, "the header")

    def _decrypt(self, key: Key | None, number: int, data: bytes, name: str) -> bytes:
        if key is None:
            return data
        if key.url not in self._keys:
            secret = self._fetch(Resource(key.url))
            if len(secret) != _KEY_BYTES:
                raise LastingCaptureError(
                    f"the key of the HLS stream has {len(secret)} bytes instead of {_KEY_BYTES}; it may need a password"
                )
            # One key: rotating ones come in order.
            self._keys = {key.url: secret}
        vector = number.to_bytes(_KEY_BYTES, "big") if key.vector is None else key.vector
        opened = Cipher(algorithms.AES(self._keys[key.url]), modes.CBC(vector)).decryptor()
        padding = PKCS7(8 * _KEY_BYTES).unpadder()
        try:
            return padding.update(opened.update(data) + opened.finalize()) + padding.finalize()
        except ValueError:
            raise CaptureError(f"{name} of the HLS stream cannot be decrypted with its key") from None

    def _fetch_playlist(self, url: str) -> tuple[Target, str]:
        with self._request(url, None) as response:
            return response.target, response.read_body(LARGEST_PLAYLIST, _FETCH_SECONDS).decode("utf-8", "replace")

    def _fetch(self, resource: Resource) -> bytes:
        with self._request(self._target.follow(resource.url), resource.part) as response:
            body = response.read_body(LARGEST_SEGMENT, _FETCH_SECONDS)
            if resource.part is None or response.is_partial:
                return body
        # The server ignores byte ranges and has sent all.
        start, length = resource.part
        return body[start : start + length]

    def _request(self, url: str, part: tuple[int, int] | None) -> Response:
        self._response = response = request_stream(self._outbound, url, part)
        # `close` may have come before the response was known to it.
        if self._closing.is_set():
            response.close()
        return response
