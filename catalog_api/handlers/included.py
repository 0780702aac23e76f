"""What a track is answered with when the caller includes it: all ISRCs, the links, the provenance (contract B1)."""

from __future__ import annotations

import msgspec

from catalog_api.answers import with_members
from catalog_api.platform_urls import written
from catalog_api.service import Service
from catalog_api.wire import FieldProvenance, Provenance, SourceRecord
from catalog_store.queries.evidence import Evidence
from catalog_store.reader import Catalog

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
        members[PROVENANCE] = _provenance(evidence)
    return with_members(body, {name: msgspec.json.encode(value) for name, value in members.items()})


def _provenance(evidence: Evidence) -> Provenance:
    fields = [
        FieldProvenance(field.name, field.value, field.platform, field.external_id, field.reason, field.agreed) for field in evidence.fields
    ]
    return Provenance(fields, [SourceRecord(member.platform, member.external_id) for member in evidence.members])
