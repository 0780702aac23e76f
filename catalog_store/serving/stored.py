"""A track or release as read from `serving/bodies/`: its wire JSON put back together, what goes with it decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from catalog_store.platforms import LINK_SOURCES
from catalog_store.serving.bodies import SLUG_MARK
from catalog_store.serving.fragments import expand_release, expand_track

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Stored(msgspec.Struct, frozen=True, gc=False):
    """The text of a body, two lines: the wire JSON, condensed, behind the first quote of the title; what goes with it."""

    id: int
    text: bytes

    @property
    def rest(self) -> bytes:
        """What goes with it, JSON."""
        return self.text.partition(b"\n")[2]


class Companion(NamedTuple):
    """What goes with a track: display string of the artists, links as (source, external id, slug), other ISRCs, ISWCs as ten digits."""

    credit: str
    links: tuple[tuple[str, str, str | None], ...]
    isrcs: list[str]
    works: list[str]


class ReleaseRest(msgspec.Struct, frozen=True, array_like=True):
    """What goes with a release; `places`: disc and track number of each recording in turn, empty where all are on disc 1 in order."""

    release_type: str | None
    catalog_number: str | None
    gtin: str | None
    recording_ids: list[int]
    places: list[int | None]

    def tracks(self) -> list[tuple[int, int | None, int | None]]:
        """(recording id, disc number, track number) of each."""
        if not self.places:
            return [(recording_id, 1, number) for number, recording_id in enumerate(self.recording_ids, start=1)]
        return list(zip(self.recording_ids, self.places[::2], self.places[1::2], strict=True))


_BACKSLASH = ord("\\")
_DISPLAYED = len('\n["')
"""Where the display string begins, behind the first line."""
_ISWC_DIGITS = 10
_ENCODED = msgspec.json.Encoder().encode
_COMPANION = msgspec.json.Decoder(tuple[str, list[str], list[str], list[str]])
_RELEASE_REST = msgspec.json.Decoder(ReleaseRest)


def track_wire(stored: Stored) -> bytes:
    """The wire JSON of a track."""
    return b'{"id":%d,"title":"%b' % (stored.id, expand_track(stored.text.partition(b"\n")[0]))


def track_wires(many: Iterable[Stored]) -> list[bytes]:
    """The same of many at once, in a third of the time."""
    return _wires(many, expand_track)


def release_wires(many: Iterable[Stored]) -> list[bytes]:
    """The wire JSON of many releases."""
    return _wires(many, expand_release)


def _wires(many: Iterable[Stored], expanded: Callable[[bytes], bytes]) -> list[bytes]:
    together = b"\n".join([b'{"id":%d,"title":"%b' % (stored.id, stored.text) for stored in many])
    return expanded(together).split(b"\n")[::2] if together else []


def companion(stored: Stored) -> Companion:
    """What goes with a track."""
    credit, told, isrcs, works = _COMPANION.decode(stored.rest)
    links: list[tuple[str, str, str | None]] = []
    for text in told:
        if text[0] == SLUG_MARK:
            links[-1] = (*links[-1][:2], text[1:])
        else:
            links.append((LINK_SOURCES[int(text[0])], text[1:], None))
    return Companion(credit, tuple(links), isrcs, works)


def _stands(text: bytes, stored: Stored) -> bool:
    """Whether a text, encoded, is one of those behind the first of what goes with a track, the display string: looked for, not decoded.

    Of the others links begin with a digit, slugs with SLUG_MARK, ISRCs with a letter, and ISWCs have ten digits.
    """
    lines = stored.text
    at = lines.find(text, lines.find(b"\n") + _DISPLAYED)
    while at > 0 and lines[at - 1] == _BACKSLASH:  # a quote inside another text
        at = lines.find(text, at + 1)
    return at > 0


def carries(stored: Stored, isrc: str) -> bool:
    """Whether a track carries that ISRC (normalised), whichever of its codes it is."""
    code = isrc.encode()
    # The representative one stands between two pieces of fragments.py, of which the first is in no other place of a track.
    before = stored.text.find(b"\x04")
    return (before >= 0 and stored.text.startswith(code + b"\x05", before + 1)) or _stands(b'"%b"' % code, stored)


def is_linked(stored: Stored, source: int, external_id: str) -> bool:
    """Whether a track has that link; `source` is an index in LINK_SOURCES."""
    link = f"{source}{external_id}"
    if len(link) != _ISWC_DIGITS and _stands(_ENCODED(link), stored):
        return True
    return link in _COMPANION.decode(stored.rest)[1]


def release_rest(stored: Stored) -> ReleaseRest:
    """What goes with a release."""
    return _RELEASE_REST.decode(stored.rest)
