"""Resolvers of rows of bulk requests, to tracks, artists and releases.

Out of scope: forms of rows (bulk_rows.py), queries (catalog_store/queries).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from catalog_api.bulk_rows import RowForm, RowResolver, encode_row
from catalog_api.parameters import normalise_external_id
from catalog_api.platform_urls import build_links, list_templates
from catalog_api.wire.catalog_types import Artist, Match
from catalog_store.identifiers import parse_gtin
from catalog_store.platforms import CATALOG_PLATFORMS, PLATFORMS
from catalog_store.reader import Catalog

BY_ID, BY_ISRC, BY_BARCODE, BY_TRACK, BY_ARTIST, BY_RELEASE = "id", "isrc", "barcode", "track_name", "artist_name", "release_name"
BY_PLATFORM = {f"{platform}_id": platform for platform in CATALOG_PLATFORMS}
LEAST_CLASS = "fuzzy"
"""The lowest class of a search answer that counts as matched."""
_NO_LINKS = b',"links":[]'
_CODES = dict.fromkeys(BY_PLATFORM, RowForm.CODE)


class _Found(NamedTuple):
    """The track of each row, and how well it matches where it was searched for."""

    ids: list[int | None]
    matches: list[Match | None]


def _resolve_tracks(catalog: Catalog, templates: Mapping[str, str], input_type: str, items: Sequence[Any]) -> list[bytes]:
    found = _TRACKS_BY_TYPE[input_type](catalog, input_type, items)
    # One read for all rows (contract D4); a repeated track is read once.
    slim = catalog.read_slim_bodies([one for one in dict.fromkeys(found.ids) if one is not None])
    rows, shown = [], list_templates(catalog, templates)
    for item, track_id, match in zip(items, found.ids, found.matches, strict=True):
        track = None if track_id is None else slim.get(track_id)
        if track is None:
            rows.append(encode_row(item, b"not_found", _NO_LINKS))
            continue
        fits = b"" if match is None else b',"match":' + msgspec.json.encode(match)
        links = msgspec.json.encode(build_links(track.links, shown))
        rows.append(encode_row(item, b"matched", b',"links":%s,"track":%s%s' % (links, track.body, fits)))
    return rows


def _find_tracks_by_isrc(catalog: Catalog, _input_type: str, items: Sequence[str]) -> _Found:
    found = catalog.find_ids_by_isrcs(items)
    return _build_unscored([found.get(item) for item in items])


def _find_tracks_on_platform(catalog: Catalog, input_type: str, items: Sequence[str]) -> _Found:
    platform = BY_PLATFORM[input_type]
    spellings = _read_spellings(platform, items) if platform in catalog.platforms else {}
    # An id in two spellings is looked up once.
    found = catalog.find_ids_by_externals(platform, list(dict.fromkeys(spellings.values()))) if spellings else {}
    return _build_unscored([next(iter(found.get(spellings.get(item, ""), ())), None) for item in items])


def _read_spellings(platform: str, items: Sequence[str]) -> dict[str, str]:
    """Return the stored spelling of each id that has the shape of the platform."""
    return {item: spelling for item in items if (spelling := _read_spelling(platform, item))}


def _read_spelling(platform: str, item: str) -> str | None:
    try:
        return normalise_external_id(PLATFORMS[platform], item)
    except ValueError:
        return None


def _build_unscored(ids: list[int | None]) -> _Found:
    return _Found(ids, [None] * len(ids))


def _search_tracks(catalog: Catalog, _input_type: str, items: Sequence[Mapping[str, str]]) -> _Found:
    found = _Found([], [])
    for item in items:
        # An answer that is only possible is no match: nobody looks at each row of a batch.
        hit = next(iter(catalog.search(artist=item["artist"], title=item["title"], limit=1, min_class=LEAST_CLASS).hits), None)
        found.ids.append(None if hit is None else hit.id)
        found.matches.append(None if hit is None else Match(hit.score, hit.match_class, list(hit.reasons)))
    return found


_TRACKS_BY_TYPE: dict[str, Callable[..., _Found]] = {
    BY_ISRC: _find_tracks_by_isrc,
    BY_TRACK: _search_tracks,
    **dict.fromkeys(BY_PLATFORM, _find_tracks_on_platform),
}


def _resolve_artists(catalog: Catalog, _templates: Mapping[str, str], input_type: str, items: Sequence[Any]) -> list[bytes]:
    if input_type == BY_ARTIST:
        found = [catalog.find_artist_ids_by_name(item) for item in items]
    else:
        found = _find_by_code(catalog, "artist", input_type, items)
    read = catalog.read_artists(_list_first(found))
    artists = {one.id: msgspec.json.encode(Artist(one.id, one.name, one.releases)) for one in read.values()}
    return [_encode_entity(item, b"artist", ids, artists) for item, ids in zip(items, found, strict=True)]


def _resolve_releases(catalog: Catalog, _templates: Mapping[str, str], input_type: str, items: Sequence[Any]) -> list[bytes]:
    if input_type == BY_RELEASE:
        found = [catalog.find_release_ids_by_name(item["artist"], item["title"]) for item in items]
    elif input_type == BY_BARCODE:
        codes = {item: code for item in items if (code := parse_gtin(item.strip()))}
        by_code = catalog.find_release_ids_by_barcodes(list(dict.fromkeys(codes.values())))
        found = [by_code.get(codes.get(item, ""), []) for item in items]
    else:
        found = _find_by_code(catalog, "release", input_type, items)
    releases = catalog.read_release_entries(_list_first(found))
    return [_encode_entity(item, b"release", ids, releases) for item, ids in zip(items, found, strict=True)]


def _find_by_code(catalog: Catalog, kind: str, input_type: str, items: Sequence[Any]) -> list[list[int]]:
    """Return the release or artist (`kind`) of each id, ours or a platform's, in a list that is empty for an unknown id."""
    if input_type == BY_ID:
        present = catalog.find_present_ids(kind, items)
        found = [present.get(item) for item in items]
    else:
        platform = BY_PLATFORM[input_type]
        spellings = _read_spellings(platform, items)
        known = catalog.find_entities_on_platform(kind, platform, list(dict.fromkeys(spellings.values())))
        found = [known.get(spellings.get(item, "")) for item in items]
    return [[] if one is None else [one] for one in found]


def _list_first(found: Sequence[Sequence[int]]) -> list[int]:
    return list(dict.fromkeys(ids[0] for ids in found if ids))


def _encode_entity(item: object, name: bytes, ids: Sequence[int], bodies: Mapping[int, bytes]) -> bytes:
    """Return the result of a row; `ids` are what it may mean, the likeliest first."""
    if not ids:
        return encode_row(item, b"not_found")
    others = b',"alternatives":' + msgspec.json.encode(ids[1:]) if ids[1:] else b""
    return encode_row(item, b"matched", b',"%s":%s%s' % (name, bodies[ids[0]], others))


TRACK_ROWS = RowResolver({BY_ISRC: RowForm.CODE, **_CODES, BY_TRACK: RowForm.ARTIST_AND_TITLE}, _resolve_tracks, _NO_LINKS)
ARTIST_ROWS = RowResolver({**_CODES, BY_ID: RowForm.ID, BY_ARTIST: RowForm.NAME}, _resolve_artists)
RELEASE_ROWS = RowResolver({BY_BARCODE: RowForm.CODE, **_CODES, BY_ID: RowForm.ID, BY_RELEASE: RowForm.ARTIST_AND_TITLE}, _resolve_releases)
ROW_KINDS = {"tracks": TRACK_ROWS, "artists": ARTIST_ROWS, "releases": RELEASE_ROWS}
"""Resolvers by the kind of entity."""
