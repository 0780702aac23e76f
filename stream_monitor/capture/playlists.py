"""Playlists that lead to a stream: M3U and PLS, as broadcasters publish them.

HLS (an M3U of media segments) is another protocol. `is_hls` detects it; hls.py follows it.
"""

from __future__ import annotations

import re

LARGEST_PLAYLIST = 2 * 1024 * 1024
"""Bytes; an HLS playlist of a day is that long."""
MEDIA_TYPES = frozenset(
    {"audio/x-mpegurl", "audio/mpegurl", "application/x-mpegurl", "application/vnd.apple.mpegurl", "audio/x-scpls", "application/pls+xml"}
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_PLS_FILE = re.compile(r"^\s*File\d*\s*=\s*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)


def is_playlist(media_type: str, path: str, head: bytes) -> bool:
    """Return whether an answer is a playlist: by its first bytes, its type, or its name where the type is vague."""
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:10].lower().startswith((b"#extm3u", b"[playlist]")):
        return True
    if media_type in MEDIA_TYPES:
        return True
    # A name alone decides only here: a stream may end in .m3u and still be sound.
    is_vague = media_type in ("", "text/plain", "application/octet-stream")
    return is_vague and path.partition("?")[0].lower().endswith((".m3u", ".m3u8", ".pls"))


def is_hls(body: str) -> bool:
    """Return whether an M3U belongs to HLS."""
    return "#EXT-X-" in body


def parse_entries(body: str) -> list[str]:
    """Return the addresses of a playlist, in order, unchanged."""
    if "[playlist]" in body[:200].lower():
        return _PLS_FILE.findall(body)
    return [line for line in list_lines(body) if not line.startswith("#")]


def list_lines(body: str) -> list[str]:
    """Return the lines of a playlist that are not empty. `splitlines` would also cut titles, at characters such as U+2028."""
    return [line for one in _LINE_END.split(body) if (line := one.strip().lstrip("\ufeff"))]
