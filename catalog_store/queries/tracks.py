"""Tracks by id, ISRC and platform id, singly and in sets. Nothing here guesses: an unknown or malformed key finds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from catalog_store.identifiers import normalise_isrc
from catalog_store.platforms import CATALOG_B, LINK_SOURCES
from catalog_store.queries.links import PlatformLink
from catalog_store.serving.keys import external_key, isrc_code
from catalog_store.serving.schema import REDIRECT_KINDS
from catalog_store.serving.store import ServingStore, companion, wire_line

if TYPE_CHECKING:
    from collections.abc import Sequence

_RECORDING = REDIRECT_KINDS.index("recording")
_LARGEST_ID = 2**63 - 1


def track_body(store: ServingStore, recording_id: int) -> bytes | None:
    """The encoded wire JSON of the track of exactly that id (no redirects)."""
    if not 0 < recording_id <= _LARGEST_ID:
        return None
    body = store.body(recording_id)
    return None if body is None else wire_line(body)


def track_bodies(store: ServingStore, recording_ids: Sequence[int]) -> dict[int, bytes]:
    """The same for many ids at once, in one statement; unknown ids are absent."""
    wanted = [recording_id for recording_id in recording_ids if 0 < recording_id <= _LARGEST_ID]
    return {recording_id: wire_line(body) for recording_id, body in store.bodies(wanted).items()}


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


class _SlimTrack(msgspec.Struct):
    id: int
    title: str
    isrc: str | None
    releases: list[_SlimRelease]
    genre: list[str]


_SLIM = msgspec.json.Decoder(_SlimTrack)


def slim_bodies(store: ServingStore, recording_ids: Sequence[int]) -> dict[int, SlimBody]:
    """Slim tracks with their links, in one statement; unknown ids are absent."""
    wanted = [recording_id for recording_id in recording_ids if 0 < recording_id <= _LARGEST_ID]
    encode = msgspec.json.encode
    return {
        recording_id: SlimBody(encode(_SLIM.decode(wire_line(body))), [PlatformLink(*link) for link in companion(body).links])
        for recording_id, body in store.bodies(wanted).items()
    }


def resolve_id(store: ServingStore, recording_id: int) -> int | None:
    """The id under which the recording lives now: its own, that of the recording it was merged into, or None."""
    if not 0 < recording_id <= _LARGEST_ID:
        return None
    found: int | None = store.value(
        "SELECT recording_id FROM track WHERE recording_id = ?1 UNION ALL SELECT new_id FROM redirect WHERE kind = ?2 AND old_id = ?1",
        (recording_id, _RECORDING),
    )
    return found


def id_for_isrc(store: ServingStore, isrc: str) -> int | None:
    """The recording that carries the ISRC, in whatever spelling."""
    code = normalise_isrc(isrc)
    if code is None:
        return None
    found: int | None = store.value("SELECT recording_id FROM isrc WHERE code = ?", (isrc_code(code),))
    return found


def ids_for_isrcs(store: ServingStore, isrcs: Sequence[str]) -> dict[str, int]:
    """The same for many ISRCs at once, by the spelling given; unknown and malformed ones are absent."""
    codes = {isrc: isrc_code(code) for isrc in isrcs if (code := normalise_isrc(isrc))}
    found = dict(store.rows(f"SELECT code, recording_id FROM isrc WHERE code IN ({_marks(len(codes))})", tuple(codes.values())))
    return {isrc: found[code] for isrc, code in codes.items() if code in found}


def ids_for_external(store: ServingStore, source: str, external_id: str) -> list[int]:
    """Recordings that a platform's id stands for, most popular first, ties by id; ids the platform merged into others included."""
    return ids_for_externals(store, source, [external_id]).get(external_id, [])


def ids_for_externals(store: ServingStore, source: str, external_ids: Sequence[str]) -> dict[str, list[int]]:
    """The same for many ids of one platform at once, by the spelling given; unknown ones are absent. ValueError for an unknown platform."""
    if source not in LINK_SOURCES:
        raise ValueError(f"unknown platform {source!r}: one of {', '.join(LINK_SOURCES)}")
    spelling = str.lower if source == CATALOG_B else str
    keys = {external_id: external_key(spelling(external_id)) for external_id in external_ids}
    found: dict[int | str | bytes, list[int]] = {}
    for key, recording_id in store.rows(
        f"SELECT key, recording_id FROM external_id WHERE source = ? AND key IN ({_marks(len(keys))}) ORDER BY key, rank",
        (LINK_SOURCES.index(source), *keys.values()),
    ):
        found.setdefault(key, []).append(recording_id)
    return {external_id: found[key] for external_id, key in keys.items() if key in found}


def _marks(count: int) -> str:
    return ",".join("?" * count)
