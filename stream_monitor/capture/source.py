"""Opens the source behind a stream's address: follows playlists, HLS and redirects, removes ICY titles."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stream_monitor.capture.errors import CaptureError, LastingCaptureError
from stream_monitor.capture.hls import HlsSource
from stream_monitor.capture.http import request_stream
from stream_monitor.capture.icy import MetadataStripper
from stream_monitor.capture.playlists import LARGEST_PLAYLIST, is_hls, is_playlist, parse_entries

if TYPE_CHECKING:
    from outbound_http import Outbound
    from stream_monitor.capture.http import Response

TITLE_SECONDS = 20.0
"""Longest time in which titles alone may arrive: a server that sends a long one slowly has stalled."""
MOST_PLAYLISTS = 3
"""Playlists that lead to one another."""
_MOST_ENTRIES = 8
_LARGEST_INTERVAL = 1 << 20


class Source:
    """The bytes of a stream's sound, as they arrive."""

    def __init__(self, response: Response, first: bytes) -> None:
        """Begin with `first`, the part of the body that was read already."""
        self._response = response
        self._first = first
        interval = response.head.read_number("icy-metaint")
        # A wrong interval would cut holes into the sound. Without one the titles stay in, as packets that do not decode.
        self._stripper = MetadataStripper(interval) if interval is not None and 0 < interval <= _LARGEST_INTERVAL else None

    def read(self) -> bytes:
        """Return at least a byte of sound; empty at the end. CaptureError."""
        until = time.monotonic() + TITLE_SECONDS
        while True:
            data, self._first = self._first or self._response.read(), b""
            sound = self._stripper.feed(data) if self._stripper else data
            if sound or not data:
                return sound
            if time.monotonic() > until:
                raise CaptureError(f"{self._response.target.authority} sent only titles for {TITLE_SECONDS:.0f} s")

    def begin_next(self) -> bool:
        """Return False: the bytes have one part."""
        return False

    def close(self) -> None:
        """Close the connection, from any thread."""
        self._response.close()


def open_source(outbound: Outbound, url: str) -> Source | HlsSource:
    """Open the first stream behind an address that answers. The message of a CaptureError names the remedy."""
    return _open(outbound, url, MOST_PLAYLISTS)


def _open(outbound: Outbound, url: str, playlists_left: int) -> Source | HlsSource:
    response = request_stream(outbound, url)
    try:
        first = response.read()
        if not is_playlist(response.head.media_type, response.target.path, first):
            return Source(response, first)
        body = (first + response.read_all(LARGEST_PLAYLIST)).decode("utf-8", "replace")
    except BaseException:
        response.close()
        raise
    response.close()
    if is_hls(body):
        return HlsSource(outbound, response.target, body)
    if not playlists_left:
        raise LastingCaptureError(f"playlists lead to playlists more than {MOST_PLAYLISTS} times; give the address of the stream itself")
    failure: CaptureError = LastingCaptureError("the playlist names no address; give the address of the stream itself")
    for entry in parse_entries(body)[:_MOST_ENTRIES]:
        try:
            # Entries may be relative, and each is checked again: a playlist is a redirect by another name.
            return _open(outbound, response.target.follow(entry), playlists_left - 1)
        except CaptureError as error:
            failure = error
    raise failure
