"""Tracks by id and by ISRC, and their links (specification 4.2, 4.3, 4.6, contract B1).

Other routes that begin with a track use the functions at the top.
"""

from __future__ import annotations

from typing import Any

import msgspec

from catalog_api.answers import Answer, append_members, build_location_header, encode_answer
from catalog_api.metering import Execution, Lookup, Question
from catalog_api.parameters import (
    INCLUDE,
    ISRC,
    OF_ID,
    OF_ISRC,
    OF_PLATFORM,
    OF_URL,
    TRACK_ID,
    Parameter,
    ParameterValues,
    PlatformParameter,
)
from catalog_api.platform_urls import PlatformId, build_links, list_templates, parse_platform_url
from catalog_api.problems import ApiError
from catalog_api.route_declaration import get_route
from catalog_api.service import Service
from catalog_api.source_records import build_source_records
from catalog_api.wire.catalog_types import FieldProvenance, GenreProvenance, Provenance, SourceRecord, Track, TrackLinks
from catalog_store.queries.evidence import Evidence
from catalog_store.queries.genre_evidence import GenreEvidence
from catalog_store.reader import Catalog


class TrackSummary(msgspec.Struct):
    """The members of a track that other answers repeat."""

    title: str
    isrc: str | None


_SHOWN = msgspec.json.Decoder(TrackSummary)


def find_body(catalog: Catalog, track_id: int) -> tuple[int, bytes]:
    """Return the present id of a track, merges followed, and its stored JSON; ApiError `not_found`."""
    body = catalog.read_track_body(track_id)
    if body is not None:
        return track_id, body
    # Only an id without a body can be a merged one, so most lookups end above.
    survivor = catalog.resolve_id(track_id)
    body = None if survivor is None else catalog.read_track_body(survivor)
    if survivor is None or body is None:
        raise ApiError("not_found", f"There is no track {track_id}.")
    return survivor, body


def build_unknown_isrc_error(isrc: str) -> ApiError:
    """Return the error for a code that no track carries."""
    return ApiError("not_found", f"No track carries the ISRC {isrc}.")


def find_ids_on_platform(catalog: Catalog, named: PlatformId) -> list[int]:
    """Return the tracks with this id on a platform, most popular first; ApiError `not_found`."""
    # The snapshot may have changed since the parameters were read.
    found = catalog.find_ids_by_external(named.platform, named.external_id) if named.platform in catalog.platforms else []
    if not found:
        raise ApiError("not_found", f"No track is known as {named.external_id} on {named.platform}.")
    return found


def find_ids(catalog: Catalog, values: ParameterValues, by: Parameter[Any]) -> list[int]:
    """Return the tracks that the lookup parameter names, most popular first; ApiError `not_found`."""
    if by is OF_ID:
        # Not looked up here: `find_body` follows merges, and raises not_found.
        return [values[OF_ID]]
    if by is OF_ISRC:
        found = catalog.find_id_by_isrc(values[OF_ISRC])
        if found is None:
            raise build_unknown_isrc_error(values[OF_ISRC])
        return [found]
    platform = by.platform if isinstance(by, PlatformParameter) else ""
    return find_ids_on_platform(catalog, PlatformId(platform, values[by]))


def read_summary(body: bytes) -> TrackSummary:
    """Read title and ISRC of a stored track."""
    return _SHOWN.decode(body)


PROVENANCE = "provenance"
"""It comes from the tables of the snapshot. In a large catalog that takes up to seconds, so it must not run on the event loop."""


def include_members(service: Service, catalog: Catalog, track_id: int, body: bytes, wanted: frozenset[str]) -> bytes:
    """Add the members of `wanted` (of parameters.INCLUDABLE) to the stored track."""
    members: dict[str, object] = {}
    if "isrcs" in wanted:
        members["isrcs"] = catalog.list_isrcs(track_id)
    if "links" in wanted:
        members["links"] = build_links(catalog.list_links(track_id), list_templates(catalog, service.settings.url_templates))
    if PROVENANCE in wanted and (evidence := catalog.collect_evidence(track_id)) is not None:
        records = build_source_records(catalog, track_id, evidence.members, service.settings.url_templates)
        members[PROVENANCE] = _build_provenance(evidence, catalog.read_genre_evidence(track_id), records)
    return append_members(body, {name: msgspec.json.encode(value) for name, value in members.items()})


def _build_provenance(evidence: Evidence, genres: list[GenreEvidence], records: list[SourceRecord]) -> Provenance:
    fields = [FieldProvenance(one.name, one.value, one.platform, one.external_id, one.reason, one.agreed) for one in evidence.fields]
    return Provenance(fields, [GenreProvenance(*genre) for genre in genres], records)


@get_route(
    "/v1/tracks/{id:str}",
    Track,
    tag="Tracks",
    summary="A track by id",
    parameters=(TRACK_ID, INCLUDE),
    failures=("not_found", "provenance_unavailable"),
)
def track_by_id(values: ParameterValues) -> Question:
    """Return the full track. A merged id answers with its survivor, which Content-Location names."""
    track_id, wanted = values[TRACK_ID], values[INCLUDE]

    def work(catalog: Catalog, service: Service) -> Answer:
        survivor, body = find_body(catalog, track_id)
        if wanted:
            body = include_members(service, catalog, survivor, body, wanted)
        return Answer(body, build_location_header("/v1/tracks/", track_id, survivor))

    return Lookup(work, Execution.IN_THREAD if PROVENANCE in wanted else Execution.INLINE)


@get_route(
    "/v1/tracks/isrc/{isrc:str}",
    Track,
    tag="Tracks",
    summary="A track by ISRC",
    parameters=(ISRC, INCLUDE),
    failures=("not_found", "provenance_unavailable"),
)
def track_by_isrc(values: ParameterValues) -> Question:
    """Return the track with this code among its codes; `matched_isrc` is the requested code."""
    code, wanted = values[ISRC], values[INCLUDE]

    def work(catalog: Catalog, service: Service) -> Answer:
        found = catalog.find_track_by_isrc(code)
        if found is None:
            raise build_unknown_isrc_error(code)
        track_id, body = found
        if wanted:
            body = include_members(service, catalog, track_id, body, wanted)
        # The code is shaped: it holds no character that JSON would escape.
        return Answer(b'%s,"matched_isrc":"%s"}' % (body[:-1], code.encode()))

    return Lookup(work, Execution.IN_THREAD if PROVENANCE in wanted else Execution.INLINE)


_ONE_OF: tuple[Parameter[Any], ...] = (OF_ID, OF_ISRC, *OF_PLATFORM.values(), OF_URL)


@get_route(
    "/v1/tracks/links",
    TrackLinks,
    tag="Tracks",
    summary="Links of a track",
    parameters=_ONE_OF,
    exactly_one=_ONE_OF,
    failures=("not_found",),
)
def links(values: ParameterValues) -> Question:
    """Return all links of the track that exactly one parameter names, in a fixed order of platforms.

    For an id of several tracks (a release of catalog_a) the answer is the most popular; `alternatives` names the others. `url` takes the
    address of a track on a platform.
    """
    by = values.find_sent()

    def work(catalog: Catalog, service: Service) -> Answer:
        if by is OF_URL:
            # The templates are the operator's, so they are read for each request and not at import.
            named = parse_platform_url(values[OF_URL], service.settings.url_templates, catalog.platforms)
            if named is None:
                raise ApiError(
                    "not_found",
                    "The address is not that of a track on a platform of the catalog. If it is a short link, send the one it leads to.",
                )
            candidates = find_ids_on_platform(catalog, named)
        else:
            candidates = find_ids(catalog, values, by)
        track_id, body = find_body(catalog, candidates[0])
        track = read_summary(body)
        found = build_links(catalog.list_links(track_id), list_templates(catalog, service.settings.url_templates))
        answer = encode_answer(TrackLinks(track_id, track.title, track.isrc, found, candidates[1:]))
        answer.headers |= build_location_header("/v1/tracks/links?id=", candidates[0], track_id)
        return answer

    return Lookup(work)
