"""Parses HLS playlists (RFC 8216): master playlists name variants, media playlists name segments.

Only what sound needs is read: an audio rendition or the variant with the lowest bit rate, the segments with their keys, headers and byte
ranges. Out of scope: fetching anything (hls.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from stream_monitor.capture.errors import CaptureError, LastingCaptureError
from stream_monitor.capture.playlists import list_lines

_ATTRIBUTE: Final = re.compile(r'([A-Z0-9-]+)=("[^"]*"|[^",]*)')
_LONGEST_SECONDS: Final = 60
"""Target durations are 2 to 10 s."""
_KEY_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Key:
    """An AES-128 key; `url` as the playlist has it. `vector` None: the segment's number."""

    url: str
    vector: bytes | None


@dataclass(frozen=True, slots=True)
class Resource:
    """An address as the playlist has it, the bytes of it (offset, length; None: all), and the key that opens them."""

    url: str
    part: tuple[int, int] | None = None
    key: Key | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """A few seconds of the stream."""

    number: int
    """Its media sequence number."""
    resource: Resource
    seconds: float
    begins_anew: bool
    """A discontinuity: another encoder, or another programme, begins here."""
    head: Resource | None
    """The initialization section of fragmented MP4."""


@dataclass
class MediaPlaylist:
    """A list of segments, oldest first."""

    segments: list[Segment] = field(default_factory=list)
    target_seconds: float = 6.0
    first_number: int = 0
    is_ended: bool = False
    """Nothing will be added."""


def is_master(body: str) -> bool:
    """Return whether a playlist names variants."""
    return "#EXT-X-STREAM-INF" in body


def choose_variant(body: str) -> str:
    """Return the address of the sound in a master playlist: an audio rendition, else the variant with the lowest bit rate.

    LastingCaptureError: it names none.
    """
    renditions: dict[str, list[dict[str, str]]] = {}
    variants: list[tuple[float, str, str]] = []
    described: dict[str, str] | None = None
    for line in list_lines(body):
        if line.startswith("#EXT-X-MEDIA:"):
            found = _read_attributes(line)
            if found.get("TYPE") == "AUDIO":
                renditions.setdefault(found.get("GROUP-ID", ""), []).append(found)
        elif line.startswith("#EXT-X-STREAM-INF:"):
            described = _read_attributes(line)
        elif not line.startswith("#") and described is not None:
            bandwidth = described.get("BANDWIDTH", "")
            is_number = bandwidth.isascii() and bandwidth.isdigit()
            variants.append((float(bandwidth) if is_number else float("inf"), described.get("AUDIO", ""), line))
            described = None
    if not variants:
        raise LastingCaptureError("the HLS master playlist names no variant; give the address of another one")
    _, group, address = min(variants)
    # The chosen variant may hold pictures alone, with its sound in a rendition.
    sounds = renditions.get(group, []) if group else []
    preferred = [one for one in sounds if one.get("DEFAULT") == "YES"] or sounds
    # RFC 8216, 4.3.4.2.1: the sound of a rendition without an address is in the variant itself.
    return (preferred[0].get("URI") if preferred else None) or address


def parse_media_playlist(body: str) -> MediaPlaylist:
    """Return the segments of a media playlist. LastingCaptureError: its encryption is not supported; CaptureError: it is broken."""
    read = MediaPlaylist()
    seconds, begins_anew, part, key, head = 0.0, False, None, None, None
    ends: dict[str, int] = {}
    """End of the last byte range by address: the next one may leave its offset out."""
    for line in list_lines(body):
        name, _, value = line.partition(":")
        if name == "#EXTINF":
            seconds = _read_number(value.partition(",")[0])
        elif name == "#EXT-X-DISCONTINUITY":
            begins_anew = True
        elif name == "#EXT-X-BYTERANGE":
            part = value
        elif name == "#EXT-X-KEY":
            key = _read_key(line)
        elif name == "#EXT-X-MAP":
            found = _read_attributes(line)
            address = found.get("URI", "")
            # RFC 8216, 4.3.2.5: an encrypted one needs a key with a vector, because it has no number.
            head_key = key if key is not None and key.vector is not None else None
            head = Resource(address, _read_range(found["BYTERANGE"], address, ends) if "BYTERANGE" in found else None, head_key)
        elif line.startswith("#"):
            _read_header(read, name, value)
        else:
            resource = Resource(line, None if part is None else _read_range(part, line, ends), key)
            number = read.first_number + len(read.segments)
            read.segments.append(Segment(number, resource, seconds, begins_anew, head))
            begins_anew, part = False, None
    return read


def _read_header(read: MediaPlaylist, name: str, value: str) -> None:
    """Read a line about the playlist as a whole."""
    if name == "#EXT-X-TARGETDURATION":
        read.target_seconds = min(_LONGEST_SECONDS, max(1.0, _read_number(value)))
    elif name == "#EXT-X-MEDIA-SEQUENCE":
        read.first_number = int(_read_number(value))
    elif name == "#EXT-X-ENDLIST":
        read.is_ended = True


def _read_attributes(line: str) -> dict[str, str]:
    return {name: value.strip('"') for name, value in _ATTRIBUTE.findall(line.partition(":")[2])}


def _read_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    # The upper bound also refuses infinity, and not-a-number compares as false.
    if not 0 <= number < 2**53:
        raise CaptureError(f"the HLS playlist is broken: {text[:40]!r} is not a number")
    return number


def _read_range(text: str, url: str, ends: dict[str, int]) -> tuple[int, int]:
    length, _, offset = text.partition("@")
    start = int(_read_number(offset)) if offset else ends.get(url, 0)
    ends[url] = start + int(_read_number(length))
    return start, int(_read_number(length))


def _read_key(line: str) -> Key | None:
    found = _read_attributes(line)
    method = found.get("METHOD", "NONE")
    if method == "NONE":
        return None
    if method != "AES-128" or found.get("KEYFORMAT", "identity") != "identity" or not found.get("URI"):
        raise LastingCaptureError(
            f"the HLS stream is encrypted ({method[:40]}, {found.get('KEYFORMAT', 'identity')[:60]}), and only AES-128 with a key at an "
            "address is supported; give the address of a stream without this protection"
        )
    vector = found.get("IV")
    if vector is None:
        return Key(found["URI"], None)
    try:
        return Key(found["URI"], int(vector, 16).to_bytes(_KEY_BYTES, "big"))
    except (ValueError, OverflowError):
        raise CaptureError(f"the HLS playlist is broken: {vector[:40]!r} is not an initialization vector") from None
