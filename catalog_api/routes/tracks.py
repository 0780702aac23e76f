"""Tracks by id and by ISRC, and their links (specification 4.2, 4.3, 4.6, contract B1).

Other routes that begin with a track use the functions at the top.
"""

from __future__ import annotations

from typing import Any

import msgspec

from catalog_api.answers import Answer, encoded, with_members
from catalog_api.metering import Lookup, Pace, Question
from catalog_api.parameters import INCLUDE, ISRC, OF_ID, OF_ISRC, OF_PLATFORM, OF_URL, TRACK_ID, Parameter, ParameterValues
from catalog_api.platform_urls import Named, read_url, written
from catalog_api.problems import ApiError
from catalog_api.route_declaration import reads
from catalog_api.service import Service
from catalog_api.wire.catalog_types import FieldProvenance, GenreProvenance, Provenance, SourceRecord, Track, TrackLinks
from catalog_store.queries.evidence import Evidence
from catalog_store.queries.genre_evidence import GenreEvidence
from catalog_store.reader import Catalog


class Shown(msgspec.Struct):
    """What other answers repeat of a track."""

    title: str
    isrc: str | None


_SHOWN = msgspec.json.Decoder(Shown)


def body_of(catalog: Catalog, track_id: int) -> tuple[int, bytes]:
    """The id that a track has now, merges followed, and its stored JSON; ApiError `not_found`."""
    body = catalog.track_body(track_id)
    if body is not None:
        return track_id, body
    survivor = catalog.resolve_id(track_id)
    body = None if survivor is None else catalog.track_body(survivor)
    if survivor is None or body is None:
        raise ApiError("not_found", f"There is no track {track_id}.")
    return survivor, body


def moved(path: str, asked_id: int, track_id: int) -> dict[str, str]:
    """Headers of an answer about `track_id` that was asked for as `asked_id`: where it stands, if the id was merged (contract B16)."""
    return {} if asked_id == track_id else {"content-location": f"{path}{track_id}"}


def unknown_isrc(isrc: str) -> ApiError:
    """What to raise when no track carries the code."""
    return ApiError("not_found", f"No track carries the ISRC {isrc}.")


def ids_of_external(catalog: Catalog, named: Named) -> list[int]:
    """The tracks that a platform's id stands on, most popular first; ApiError `not_found`."""
    found = catalog.ids_for_external(named.platform, named.external_id)
    if not found:
        raise ApiError("not_found", f"No track is known as {named.external_id} on {named.platform}.")
    return found


def ids_named(catalog: Catalog, asked: ParameterValues, by: Parameter[Any]) -> list[int]:
    """The tracks that the lookup parameter names, most popular first; ApiError `not_found`."""
    if by is OF_ID:
        return [asked[OF_ID]]
    if by is OF_ISRC:
        found = catalog.id_for_isrc(asked[OF_ISRC])
        if found is None:
            raise unknown_isrc(asked[OF_ISRC])
        return [found]
    platform = next(name for name, parameter in OF_PLATFORM.items() if parameter is by)
    return ids_of_external(catalog, Named(platform, asked[OF_PLATFORM[platform]]))


def shown(body: bytes) -> Shown:
    """Title and ISRC of a stored track."""
    return _SHOWN.decode(body)


PROVENANCE = "provenance"
"""Read from the tables of the snapshot, which takes up to seconds in a large catalog: not on the event loop."""


def included(service: Service, catalog: Catalog, track_id: int, body: bytes, wanted: frozenset[str]) -> bytes:
    """The stored track with the members of `wanted` (of parameters.INCLUDABLE)."""
    members: dict[str, object] = {}
    if "isrcs" in wanted:
        members["isrcs"] = catalog.isrcs(track_id)
    if "links" in wanted:
        members["links"] = written(catalog.links(track_id), service.settings.url_templates)
    if PROVENANCE in wanted and (evidence := catalog.evidence(track_id)) is not None:
        members[PROVENANCE] = _provenance(evidence, catalog.genre_evidence(track_id))
    return with_members(body, {name: msgspec.json.encode(value) for name, value in members.items()})


def _provenance(evidence: Evidence, genres: list[GenreEvidence]) -> Provenance:
    fields = [FieldProvenance(one.name, one.value, one.platform, one.external_id, one.reason, one.agreed) for one in evidence.fields]
    records = [SourceRecord(member.platform, member.external_id) for member in evidence.members]
    return Provenance(fields, [GenreProvenance(*genre) for genre in genres], records)


@reads("/v1/tracks/{id:str}", Track, tag="Tracks", summary="A track by id", parameters=(TRACK_ID, INCLUDE), failures=("not_found",))
def track_by_id(asked: ParameterValues) -> Question:
    """The full track. An id that was merged answers with its survivor, which Content-Location names."""
    track_id, wanted = asked[TRACK_ID], asked[INCLUDE]

    def work(catalog: Catalog, service: Service) -> Answer:
        survivor, body = body_of(catalog, track_id)
        if wanted:
            body = included(service, catalog, survivor, body, wanted)
        return Answer(body, moved("/v1/tracks/", track_id, survivor))

    return Lookup(work, Pace.ASIDE if PROVENANCE in wanted else Pace.AT_ONCE)


@reads("/v1/tracks/isrc/{isrc:str}", Track, tag="Tracks", summary="A track by ISRC", parameters=(ISRC, INCLUDE), failures=("not_found",))
def track_by_isrc(asked: ParameterValues) -> Question:
    """The track that carries the code, whichever of its codes it is; `matched_isrc` is the code that was asked for."""
    code, wanted = asked[ISRC], asked[INCLUDE]

    def work(catalog: Catalog, service: Service) -> Answer:
        found = catalog.track_by_isrc(code)
        if found is None:
            raise unknown_isrc(code)
        track_id, body = found
        if wanted:
            body = included(service, catalog, track_id, body, wanted)
        return Answer(b'%s,"matched_isrc":"%s"}' % (body[:-1], code.encode()))

    return Lookup(work, Pace.ASIDE if PROVENANCE in wanted else Pace.AT_ONCE)


_ONE_OF: tuple[Parameter[Any], ...] = (OF_ID, OF_ISRC, *OF_PLATFORM.values(), OF_URL)


@reads(
    "/v1/tracks/links",
    TrackLinks,
    tag="Tracks",
    summary="Links of a track",
    parameters=_ONE_OF,
    exactly_one=_ONE_OF,
    failures=("not_found",),
)
def links(asked: ParameterValues) -> Question:
    """All links of the track that exactly one parameter names, in a fixed order of platforms.

    An id that stands on several tracks (a release of catalog_a) answers the most popular; `alternatives` names the others. `url` takes the
    address of a track on a platform.
    """
    by = asked.the_one(_ONE_OF)

    def work(catalog: Catalog, service: Service) -> Answer:
        if by is OF_URL:
            named = read_url(asked[OF_URL], service.settings.url_templates)
            if named is None:
                raise ApiError("not_found", "The address names no track of a platform that the catalog links to.")
            candidates = ids_of_external(catalog, named)
        else:
            candidates = ids_named(catalog, asked, by)
        track_id, body = body_of(catalog, candidates[0])
        track = shown(body)
        found = written(catalog.links(track_id), service.settings.url_templates)
        answer = encoded(TrackLinks(track_id, track.title, track.isrc, found, candidates[1:]))
        answer.headers |= moved("/v1/tracks/links?id=", candidates[0], track_id)
        return answer

    return Lookup(work)
