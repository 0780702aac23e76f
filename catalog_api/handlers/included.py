"""What a track is answered with when the caller includes it: all ISRCs, the links, the provenance (contract B1)."""

from __future__ import annotations

import msgspec

from catalog_api.answers import with_members
from catalog_api.platform_urls import written
from catalog_api.service import Service
from catalog_api.wire.provenance import FieldProvenance, GenreProvenance, Provenance, SourceRecord
from catalog_store.queries.evidence import Evidence
from catalog_store.queries.genre_evidence import GenreEvidence
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
        members[PROVENANCE] = _provenance(evidence, catalog.genre_evidence(track_id))
    return with_members(body, {name: msgspec.json.encode(value) for name, value in members.items()})


def _provenance(evidence: Evidence, genres: list[GenreEvidence]) -> Provenance:
    fields = [FieldProvenance(one.name, one.value, one.platform, one.external_id, one.reason, one.agreed) for one in evidence.fields]
    records = [SourceRecord(member.platform, member.external_id) for member in evidence.members]
    return Provenance(fields, [GenreProvenance(*genre) for genre in genres], records)
