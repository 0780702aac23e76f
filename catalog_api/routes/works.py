"""Works of a track and tracks of a work (specification 4.4, 4.5)."""

from __future__ import annotations

from catalog_api.answers import Answer, build_location_header, encode_answer
from catalog_api.metering import Lookup, Question
from catalog_api.parameters import CURSOR, ISWC, OF_ID, OF_ISRC, WORK_LIMIT, ParameterValues
from catalog_api.problems import ApiError
from catalog_api.route_declaration import get_route
from catalog_api.routes.tracks import find_body, find_ids, read_summary
from catalog_api.service import Service
from catalog_api.wire.catalog_types import IswcEntry, RecordingEntry, TrackIswcs, WorkRecordings
from catalog_store.reader import Catalog

_ONE_OF = (OF_ID, OF_ISRC)


@get_route(
    "/v1/tracks/iswc",
    TrackIswcs,
    tag="Works",
    summary="ISWCs of a track",
    parameters=_ONE_OF,
    exactly_one=_ONE_OF,
    failures=("not_found",),
)
def iswcs_of_track(values: ParameterValues) -> Question:
    """Return the works that the track performs; exactly one of `isrc` and `id` names it. The list is empty when none is known."""
    by = values.find_sent()

    def work(catalog: Catalog, _service: Service) -> Answer:
        named = find_ids(catalog, values, by)[0]
        track_id, body = find_body(catalog, named)
        entries = [IswcEntry(iswc, title) for iswc, title in catalog.list_iswcs(track_id)]
        answer = encode_answer(TrackIswcs(track_id, read_summary(body).isrc, entries))
        answer.headers |= build_location_header("/v1/tracks/iswc?id=", named, track_id)
        return answer

    return Lookup(work)


@get_route(
    "/v1/tracks/iswc/{iswc:str}",
    WorkRecordings,
    tag="Works",
    summary="Tracks of an ISWC",
    parameters=(ISWC, WORK_LIMIT, CURSOR),
    failures=("not_found", "invalid_cursor"),
)
def tracks_of_iswc(values: ParameterValues) -> Question:
    """Return the recordings of a work, most popular first, ties by id. `total` counts all, whatever the page."""
    code = values[ISWC]

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.find_work(code, values[WORK_LIMIT], values[CURSOR])
        if found is None:
            raise ApiError("not_found", f"No recording of the ISWC {code} is known.")
        recordings = [RecordingEntry(*recording) for recording in found.recordings]
        return encode_answer(WorkRecordings(found.iswc, found.title, found.total, recordings, found.next_cursor))

    return Lookup(work)
