"""ISRCs that two tracks claim: beyond contract B7, by which no two tracks share one."""

from __future__ import annotations

import msgspec

from catalog_api.answers import Answer, build_page
from catalog_api.metering import Execution, Lookup, Question
from catalog_api.parameters import CONFLICT_ISRC, CURSOR, LIMIT, ParameterValues
from catalog_api.route_declaration import get_route
from catalog_api.service import Service
from catalog_api.wire.matching_types import IsrcConflictPage
from catalog_store.queries.isrc_conflicts import IsrcConflict
from catalog_store.queries.tracks import SlimBody
from catalog_store.reader import Catalog


@get_route(
    "/v1/conflicts/isrc",
    IsrcConflictPage,
    tag="Catalog",
    summary="ISRCs that two tracks claim",
    parameters=(CONFLICT_ISRC, LIMIT, CURSOR),
    failures=("invalid_cursor", "provenance_unavailable"),
)
def isrc_conflicts(values: ParameterValues) -> Question:
    """List the codes that platforms give to two tracks, in order of the code: who keeps it, who claims it, why they are two.

    An ISRC belongs to one track. `reason` names the first difference that keeps the tracks apart: another version (`variant`), length
    (`duration`), artist or title, or more platforms that give the code to `kept_by` (`outvoted`).
    """

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.list_isrc_conflicts(isrc=values[CONFLICT_ISRC], limit=values[LIMIT], cursor=values[CURSOR])
        ids = {one for conflict in found.conflicts for one in (conflict.owner_recording_id, conflict.recording_id)}
        tracks = catalog.read_slim_bodies(sorted(ids))
        return build_page([_encode_conflict(conflict, tracks) for conflict in found.conflicts], found.next_cursor)

    return Lookup(work, Execution.IN_THREAD)


def _encode_conflict(conflict: IsrcConflict, tracks: dict[int, SlimBody]) -> bytes:
    facts = (conflict.isrc, conflict.reason, conflict.platforms, conflict.record_count)
    sides = (tracks[conflict.owner_recording_id].body, tracks[conflict.recording_id].body)
    return b'{"isrc":%b,"reason":%b,"platforms":%b,"record_count":%b,"kept_by":%b,"claimed_by":%b}' % (
        *map(msgspec.json.encode, facts),
        *sides,
    )
