"""Artists, labels and their releases, releases with their tracks, new releases (contract F4, F5).

Lists of releases are newest first (a date known to the year or month only after all full dates of that period), undated last, ties by
popularity of the artist, then id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from catalog_store.cursors import Place
from catalog_store.lists.dates import compute_latest_stamp
from catalog_store.queries.entity_names import find_by_id
from catalog_store.queries.pages import BodyPage, check_limit
from catalog_store.queries.tracks import find_survivor
from catalog_store.serving.store import SET_LIMIT
from catalog_store.serving.stored_body import read_release_rest, restore_releases, restore_tracks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from catalog_store.cursors import CursorCodec
    from catalog_store.lists.rank_list import RankList
    from catalog_store.queries.entity_names import Named
    from catalog_store.serving.store import ServingStore
    from catalog_store.serving.stored_body import StoredBody

_LARGEST_ID = 2**63 - 1


class Artist(msgspec.Struct, frozen=True):
    """An artist; `id` differs from the requested one when that was merged into this artist."""

    id: int
    name: str
    release_count: int


class Label(msgspec.Struct, frozen=True):
    """A label; `id` as for artists."""

    id: int
    name: str
    release_count: int


class ReleaseBody(NamedTuple):
    """A release with its tracks as encoded wire JSON; `id` differs from the requested one when that was merged into this release.

    Members: those of an entry, release_type, catalog_number, gtin, and tracks[] in order, each a full track without `releases`, with
    `disc_number` and `track_number` (null when unknown).
    """

    id: int
    body: bytes


class _Rest(msgspec.Struct):
    release_type: str | None
    catalog_number: str | None
    gtin: str | None
    tracks: list[_Listed]


# Raw members are passed on as they are: only the ids and the new members need decoding.
class _Listed(msgspec.Struct):
    id: int
    title: msgspec.Raw
    artists: msgspec.Raw
    isrc: msgspec.Raw
    duration: msgspec.Raw
    genre: msgspec.Raw
    subgenre: msgspec.Raw
    disc_number: int | None = None
    track_number: int | None = None


_LISTED = msgspec.json.Decoder(_Listed)


def find_artist(store: ServingStore, artist_id: int) -> Artist | None:
    """Return the artist, or the one it was merged into."""
    found = find_by_id(store, "artist", artist_id)
    return None if found is None else Artist(found.id, found.name, found.releases)


def find_label(store: ServingStore, label_id: int) -> Label | None:
    """Return the label, or the one it was merged into."""
    found = find_by_id(store, "label", label_id)
    return None if found is None else Label(found.id, found.name, found.releases)


def list_releases(
    store: ServingStore, cursors: CursorCodec, kind: str, identifier: int, *, limit: int, cursor: str | None
) -> BodyPage | None:
    """Return one page of the releases of an artist or label (`kind`); None when it is unknown. InvalidQueryError, InvalidCursorError."""
    check_limit(limit)
    owner = find_by_id(store, kind, identifier)
    if owner is None:
        return None
    return _build_page(store, cursors, (f"{kind}_releases", str(owner.id)), _read_list(store, kind, owner), limit, cursor)


def list_new_releases(store: ServingStore, cursors: CursorCodec, *, today: date, limit: int, cursor: str | None) -> BodyPage:
    """Return one page of the releases dated `today` or before. InvalidQueryError, InvalidCursorError."""
    check_limit(limit)
    order = store.lists.releases
    listed = order.everything.slice(order.find_since(compute_latest_stamp(today)), order.undated)
    return _build_page(store, cursors, ("new_releases",), listed, limit, cursor)


def find_release(store: ServingStore, release_id: int) -> ReleaseBody | None:
    """Return the release with its tracks, or the one it was merged into."""
    found = _read_body(store, release_id)
    if found is None and (heir := find_survivor(store, "release", release_id)) is not None:
        found = _read_body(store, heir)
    if found is None:
        return None
    details = read_release_rest(found)
    ids = details.recording_ids
    shown: dict[int, bytes] = {}
    # A release may have more tracks than one set-based read allows.
    for start in range(0, len(ids), SET_LIMIT):
        bodies = store.read_tracks(ids[start : start + SET_LIMIT])
        shown.update(zip(bodies, restore_tracks(bodies.values()), strict=True))
    tracks = []
    for recording_id, disc, number in details.list_tracks():
        track = _LISTED.decode(shown[recording_id])
        track.disc_number, track.track_number = disc, number
        tracks.append(track)
    rest = msgspec.json.encode(_Rest(details.release_type, details.catalog_number, details.gtin, tracks))
    # Two JSON objects become one: the closing brace of the first and the opening one of the second give way to a comma.
    return ReleaseBody(found.id, restore_releases([found])[0][:-1] + b"," + rest[1:])


def _read_body(store: ServingStore, release_id: int) -> StoredBody | None:
    return store.read_releases([release_id]).get(release_id) if 0 < release_id <= _LARGEST_ID else None


def _read_list(store: ServingStore, kind: str, owner: Named) -> RankList:
    return store.lists.read_list(f"{kind}_releases", owner.id)


def _build_page(
    store: ServingStore, cursors: CursorCodec, query: Sequence[str], listed: RankList, limit: int, cursor: str | None
) -> BodyPage:
    """Return the page of `listed` after the cursor."""
    order = store.lists.releases
    if cursor is not None:
        place = cursors.decode(query, cursor)
        start = order.find_behind(int(place.score), int(place.popularity), place.id)
        listed = listed.slice(start, order.end)
    ranks = listed.read(limit + 1)
    ids = order.read_ids(ranks[:limit]).tolist()
    rest = None
    if len(ranks) > limit:
        last = int(ranks[limit - 1])
        rest = cursors.encode(query, Place(order.read_stamp(last), order.read_unheard(last), ids[-1]))
    return BodyPage(restore_releases(store.read_releases(ids).values()), rest)
