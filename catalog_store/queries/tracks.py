"""Tracks by id, ISRC and platform id, singly and in sets. Nothing is guessed: an unknown or malformed key finds nothing.

Keys lead to candidates (key_index.py), and each candidate is compared with the track's own data.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from catalog_store.identifiers import normalise_isrc
from catalog_store.queries.platform_links import PlatformLink
from catalog_store.serving.lookup_keys import ISRC, hash_key, normalize_key, number_key_space, number_source
from catalog_store.serving.schema import REDIRECT_KINDS
from catalog_store.serving.stored_body import has_isrc, is_linked, read_companion, restore_track, restore_tracks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from catalog_store.serving.store import ServingStore
    from catalog_store.serving.stored_body import StoredBody

_LARGEST_ID = 2**63 - 1
_ISRC_SPACE = number_key_space(ISRC)
_BARE_ISRC = re.compile(r"[A-Z]{2}[A-Z0-9]{3}(?!0{7})[0-9]{7}")
"""An ISRC that `normalise_isrc` returns unchanged."""


class SlimBody(NamedTuple):
    """A slim track (contract B10) as encoded wire JSON, and its links."""

    body: bytes
    links: list[PlatformLink]


class _SlimLabel(msgspec.Struct):
    name: str


class _SlimRelease(msgspec.Struct):
    title: str
    label: _SlimLabel | None
    release_date: str | None


# The decoder skips members that the struct does not name.
class _SlimTrack(msgspec.Struct):
    id: int
    title: str
    isrc: str | None
    releases: list[_SlimRelease]
    genre: list[str]


_SLIM = msgspec.json.Decoder(_SlimTrack)


def _normalise_isrc(isrc: str) -> str | None:
    return isrc if _BARE_ISRC.fullmatch(isrc) else normalise_isrc(isrc)


def read_track_body(store: ServingStore, recording_id: int) -> bytes | None:
    """Return the encoded wire JSON of the track of exactly that id (no redirects)."""
    body = store.read_track(recording_id) if 0 < recording_id <= _LARGEST_ID else None
    return None if body is None else restore_track(body)


def read_track_bodies(store: ServingStore, recording_ids: Sequence[int]) -> dict[int, bytes]:
    """Return the encoded wire JSON of many tracks in one call; unknown ids are absent."""
    found = store.read_tracks(_clip_ids(recording_ids))
    return dict(zip(found, restore_tracks(found.values()), strict=True))


def read_slim_bodies(store: ServingStore, recording_ids: Sequence[int]) -> dict[int, SlimBody]:
    """Return slim tracks with their links in one call; unknown ids are absent."""
    found = store.read_tracks(_clip_ids(recording_ids))
    encode, decode = msgspec.json.encode, _SLIM.decode
    return {
        body.id: SlimBody(encode(decode(wire)), [PlatformLink(*link) for link in read_companion(body).links])
        for body, wire in zip(found.values(), restore_tracks(found.values()), strict=True)
    }


def list_isrcs(store: ServingStore, recording_id: int) -> list[str]:
    """Return every ISRC of the track, the displayed one first; empty for none or an unknown track."""
    body = store.read_track(recording_id)
    if body is None:
        return []
    shown = _SLIM.decode(restore_track(body)).isrc
    return [*([shown] if shown else []), *read_companion(body).isrcs]


def _clip_ids(recording_ids: Sequence[int]) -> list[int]:
    return [recording_id for recording_id in recording_ids if 0 < recording_id <= _LARGEST_ID]


def resolve_id(store: ServingStore, recording_id: int) -> int | None:
    """Return the id under which the recording lives now: its own, that of the recording it was merged into, or None."""
    if not 0 < recording_id <= _LARGEST_ID:
        return None
    if store.read_track(recording_id) is not None:
        return recording_id
    return find_survivor(store, "recording", recording_id)


def find_survivor(store: ServingStore, kind: str, old_id: int) -> int | None:
    """Return the id that replaces a merged id of that kind (REDIRECT_KINDS); None when it was not merged or left the catalog."""
    if not 0 < old_id <= _LARGEST_ID:
        return None
    found: int | None = store.fetch_value("SELECT new_id FROM redirect WHERE kind = ? AND old_id = ?", (REDIRECT_KINDS.index(kind), old_id))
    return found


def find_track_by_isrc(store: ServingStore, isrc: str) -> tuple[int, bytes] | None:
    """Return (id, encoded wire JSON) of the track with the ISRC, in any spelling."""
    code = _normalise_isrc(isrc)
    if code is None:
        return None
    # A hash proves nothing: the track itself must carry the code.
    for candidate in store.keys.find_candidates((hash_key(_ISRC_SPACE, code),))[0]:
        body = store.read_track(candidate)
        if body is not None and has_isrc(body, code):
            return candidate, restore_track(body)
    return None


def find_id_by_isrc(store: ServingStore, isrc: str) -> int | None:
    """Return the recording with the ISRC, in any spelling."""
    return find_ids_by_isrcs(store, [isrc]).get(isrc)


def find_ids_by_isrcs(store: ServingStore, isrcs: Sequence[str]) -> dict[str, int]:
    """Return the recordings of many ISRCs at once, by the spelling given; unknown and malformed ones are absent."""
    # `_normalise_isrc` without its call, which counts for a hundred codes.
    is_bare = _BARE_ISRC.fullmatch
    codes = {isrc: code for isrc in isrcs if (code := isrc if is_bare(isrc) else normalise_isrc(isrc))}
    candidates = _find_candidates(store, _ISRC_SPACE, codes.values())
    bodies = _read_tracks(store, candidates)
    found = {code: one for code, ids in candidates.items() for one in ids if one in bodies and has_isrc(bodies[one], code)}
    return {isrc: found[code] for isrc, code in codes.items() if code in found}


def find_ids_by_external(store: ServingStore, source: str, external_id: str) -> list[int]:
    """Return the recordings of a platform's id, most popular first, ties by id; ids that the platform merged count too."""
    key = normalize_key(source, external_id)
    found = []
    for candidate in dict.fromkeys(store.keys.find_candidates((hash_key(number_key_space(source), key),))[0]):
        body = store.read_track(candidate)
        if body is not None and is_linked(body, source, key):
            found.append(candidate)
    return found or find_ids_by_externals(store, source, [external_id]).get(external_id, [])


def find_ids_by_externals(store: ServingStore, source: str, external_ids: Sequence[str]) -> dict[str, list[int]]:
    """Return the recordings of many ids of one platform, by the spelling given.

    Unknown ids are absent.
    """
    keys = {external_id: normalize_key(source, external_id) for external_id in external_ids}
    found = _find_linked(store, source, keys.values())
    if unknown := [key for key in keys.values() if key not in found]:
        marks = ",".join("?" * len(unknown))
        # Ids that the platform merged lead to their survivors. They are rare, so only keys without a recording are looked up.
        retired = dict(
            store.fetch_rows(
                f"SELECT key, new_key FROM retired_key WHERE source = ? AND key IN ({marks})", (number_source(source), *unknown)
            )
        )
        heirs = _find_linked(store, source, retired.values()) if retired else {}
        found |= {key: heirs[heir] for key, heir in retired.items() if heir in heirs}
    return {external_id: found[key] for external_id, key in keys.items() if key in found}


def _find_linked(store: ServingStore, source: str, keys: Iterable[str]) -> dict[str, list[int]]:
    """Return the recordings whose links hold each key; keys without any are absent."""
    candidates = _find_candidates(store, number_key_space(source), keys)
    bodies = _read_tracks(store, candidates)
    found: dict[str, list[int]] = {}
    for key, ids in candidates.items():
        for one in dict.fromkeys(ids):
            body = bodies.get(one)
            if body is not None and is_linked(body, source, key):
                found.setdefault(key, []).append(one)
    return found


def _find_candidates(store: ServingStore, space: int, keys: Iterable[str]) -> dict[str, list[int]]:
    distinct = dict.fromkeys(keys)
    return dict(zip(distinct, store.keys.find_candidates([hash_key(space, key) for key in distinct]), strict=True))


def _read_tracks(store: ServingStore, candidates: Mapping[str, list[int]]) -> Mapping[int, StoredBody]:
    return store.read_tracks(one for ids in candidates.values() for one in ids)
