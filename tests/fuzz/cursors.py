"""Fuzz targets of page cursors: their text, and the places in them.

The key that seals a cursor is in the source (catalog_store/cursors.py), so a caller can seal any place. So a
place is a stranger's as well, and every list must take it, or refuse the cursor.
"""

from __future__ import annotations

import base64
from functools import cache

from catalog_api.route_declaration import build_path_template
from catalog_store.cursors import CursorCodec, Place
from catalog_store.errors import InvalidCursorError
from tests.contract.awkward import SHARED_BARCODE
from tests.fuzz import Target, chosen
from tests.fuzz.service import OPERATIONS, judge, service

QUERY = ("search", "someone", "one")
LISTS = {
    "search": "?artist=Daft+Trunk&title=Glass+City&limit=1",
    "browse": "?limit=1",
    "browse_random": "?limit=1&randomize=true",
    "browse_genre": "?limit=1&genre=Trance&randomize=true",
    "new_releases": "?limit=1",
    "artists": "?name=Meridian&limit=1",
    "artist_releases": "?limit=1",
    "releases": f"?barcode={SHARED_BARCODE}&limit=1",
    "labels": "?name=Amber+Records&limit=1",
    "label_releases": "?limit=1",
    "tracks_of_iswc": "?limit=1",
    "changes": "?since=first&limit=1",
    "isrc_conflicts": "?limit=1",
    "suggestions": "?limit=1",
    "suggestions_of_track": "?limit=1",
    "audit": "?limit=1",
    "jobs": "?limit=1",
    "streams": "?limit=1",
    "stream_history": "?limit=1",
    "webhook_deliveries": "?limit=1",
}
"""All lists in pages: the operation, after a `_` a case of it, and a query that has more than one page."""
_HEAD_BYTES, _PLACE_BYTES = 8, 24
"""Version and digest of the query; the place behind them."""


def read_text(content: bytes) -> None:
    """Require that a cursor's text is refused or written back unchanged, and that any place is read back."""
    codec, text = CursorCodec(), content.decode("utf-8", "surrogateescape")
    try:
        place = codec.decode(QUERY, text)
    except InvalidCursorError:
        pass
    else:
        assert codec.encode(QUERY, place) == text


def go_on_behind(content: bytes) -> None:
    """Request the page of a list after a place (`<list> <place>`), with a correctly sealed cursor."""
    text, _, place = content.partition(b" ")
    name = chosen(text, LISTS)
    cursor = _sealed(_head(name) + place[:_PLACE_BYTES].ljust(_PLACE_BYTES, b"\0"))
    judge(service().ask("GET", f"{_first_page(name)}&cursor={cursor}"), OPERATIONS[operation_of(name)])


def operation_of(name: str) -> str:
    """Return the operation that answers the list."""
    return name if name in OPERATIONS else name.rpartition("_")[0]


def _first_page(name: str) -> str:
    return service().fill(build_path_template(OPERATIONS[operation_of(name)].path)) + LISTS[name]


@cache
def _head(name: str) -> bytes:
    return _raw(_cursor(name))[:_HEAD_BYTES]


def _cursor(name: str) -> str:
    """Return the cursor of the second page, as the service gave it."""
    return str(service().ask("GET", _first_page(name)).json()["next_cursor"])


def _raw(cursor: str) -> bytes:
    return base64.urlsafe_b64decode(cursor)


def _sealed(content: bytes) -> str:
    return base64.urlsafe_b64encode(content + CursorCodec()._seal(content)).rstrip(b"=").decode()


def _texts() -> list[bytes]:
    places = [Place(0.75, 0.5, 1), Place(20_260_801, 0, 2**63 - 1), Place(0, 0, 0)]
    return [CursorCodec().encode(QUERY, place).encode() for place in places]


def _places() -> list[bytes]:
    return [name.encode() + b" " + _raw(_cursor(name))[_HEAD_BYTES : _HEAD_BYTES + _PLACE_BYTES] for name in LISTS]


TARGETS = (
    Target("cursors", read_text, _texts),
    Target("cursor_places", go_on_behind, _places, lambda: [name.encode() + b" " for name in LISTS]),
)
