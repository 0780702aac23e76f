"""Works of a track and tracks of a work (specification 4.4, 4.5)."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, get
from litestar.params import Parameter

from catalog_api.answers import answer, documented, find_track, stored_track
from catalog_api.live_catalog import LiveCatalog
from catalog_api.parameters import ISWC_LIMIT, Parameters
from catalog_api.problems import ApiError
from catalog_api.wire import IswcEntry, RecordingEntry, TrackIswcs, WorkRecordings

_LIMIT = f"{ISWC_LIMIT[0]} to {ISWC_LIMIT[1]}, default {ISWC_LIMIT[2]}."


@get("/v1/tracks/iswc", tags=["Works"], summary="ISWCs of a track", responses=documented(TrackIswcs, 400, 404), sync_to_thread=False)
def iswcs_of_track(
    catalog: LiveCatalog,
    isrc: Annotated[str | None, Parameter(description="Any ISRC of the track; exactly one of isrc and id.")] = None,
    id: Annotated[str | None, Parameter(description="Track id; exactly one of isrc and id.")] = None,  # noqa: A002 - the contract's name
) -> Response[bytes]:
    """The works that the track performs; an empty list when none is known."""
    parameters = Parameters()
    sent = parameters.exactly_one({"isrc": isrc, "id": id})
    wanted: str | int = ""
    if sent:
        wanted = parameters.isrc(sent[1]) if sent[0] == "isrc" else parameters.track_id(sent[1])
    parameters.check()
    live = catalog.get()
    found = live.id_for_isrc(wanted) if isinstance(wanted, str) else wanted
    if found is None:
        raise ApiError("not_found", f"No track carries the ISRC {wanted}.")
    track_id, body = find_track(live, found)
    entries = [IswcEntry(iswc, title) for iswc, title in live.iswcs(track_id)]
    return answer(TrackIswcs(track_id, stored_track(body)["isrc"], entries))


@get(
    "/v1/tracks/iswc/{iswc:str}",
    tags=["Works"],
    summary="Tracks of an ISWC",
    responses=documented(WorkRecordings, 400, 404),
    sync_to_thread=False,
)
def tracks_of_iswc(
    iswc: str,
    catalog: LiveCatalog,
    limit: Annotated[str | None, Parameter(description=_LIMIT)] = None,
) -> Response[bytes]:
    """The recordings of a work, most popular first."""
    parameters = Parameters()
    code = parameters.iswc(iswc)
    page_size = parameters.limit(limit, ISWC_LIMIT)
    parameters.check()
    work = catalog.get().work(code, page_size)
    if work is None:
        raise ApiError("not_found", f"No recording of the ISWC {code} is known.")
    recordings = [RecordingEntry(*recording) for recording in work.recordings]
    return answer(WorkRecordings(work.iswc, work.title, work.total, recordings))
