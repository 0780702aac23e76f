"""Works of a track and tracks of a work (specification 4.4, 4.5)."""

from __future__ import annotations

from catalog_api.answers import Answer, encoded
from catalog_api.metering import Lookup, Question
from catalog_api.parameters import CURSOR, ISWC, OF_ID, OF_ISRC, WORK_LIMIT, ParameterValues
from catalog_api.problems import ApiError
from catalog_api.route_declaration import reads
from catalog_api.routes.tracks import body_of, ids_named, moved, shown
from catalog_api.service import Service
from catalog_api.wire.catalog_types import IswcEntry, RecordingEntry, TrackIswcs, WorkRecordings
from catalog_store.reader import Catalog

_ONE_OF = (OF_ID, OF_ISRC)


@reads(
    "/v1/tracks/iswc",
    TrackIswcs,
    tag="Works",
    summary="ISWCs of a track",
    parameters=_ONE_OF,
    exactly_one=_ONE_OF,
    failures=("not_found",),
)
def iswcs_of_track(asked: ParameterValues) -> Question:
    """The works that the track performs, which exactly one of `isrc` and `id` names; an empty list when none is known."""
    by = asked.the_one(_ONE_OF)

    def work(catalog: Catalog, _service: Service) -> Answer:
        named = ids_named(catalog, asked, by)[0]
        track_id, body = body_of(catalog, named)
        entries = [IswcEntry(iswc, title) for iswc, title in catalog.iswcs(track_id)]
        answer = encoded(TrackIswcs(track_id, shown(body).isrc, entries))
        answer.headers |= moved("/v1/tracks/iswc?id=", named, track_id)
        return answer

    return Lookup(work)


@reads(
    "/v1/tracks/iswc/{iswc:str}",
    WorkRecordings,
    tag="Works",
    summary="Tracks of an ISWC",
    parameters=(ISWC, WORK_LIMIT, CURSOR),
    failures=("not_found", "invalid_cursor"),
)
def tracks_of_iswc(asked: ParameterValues) -> Question:
    """The recordings of a work, most popular first, ties by id. `total` counts all, whatever the page."""
    code = asked[ISWC]

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.work(code, asked[WORK_LIMIT], asked[CURSOR])
        if found is None:
            raise ApiError("not_found", f"No recording of the ISWC {code} is known.")
        recordings = [RecordingEntry(*recording) for recording in found.recordings]
        return encoded(WorkRecordings(found.iswc, found.title, found.total, recordings, found.next_cursor))

    return Lookup(work)
