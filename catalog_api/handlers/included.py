"""What a track is answered with when the caller includes it: all ISRCs, the links, the provenance (contract B1)."""

from __future__ import annotations

import msgspec

from catalog_api.answers import with_members
from catalog_api.platform_urls import written
from catalog_api.service import Service
from catalog_api.wire import FieldProvenance, Provenance, SourceRecord
from catalog_store.queries.evidence import Evidence
from catalog_store.reader import Catalog


def reads_tables(wanted: frozenset[str]) -> bool:
    """Whether including these asks the Parquet tables: for seconds, in a large catalog."""
    return bool(wanted & {"isrcs", "provenance"})


def included(service: Service, catalog: Catalog, track_id: int, body: bytes, wanted: frozenset[str]) -> bytes:
    """The stored track with the members of `wanted` (of parameters.INCLUDABLE)."""
    evidence = catalog.evidence(track_id) if reads_tables(wanted) else None
    members: dict[str, object] = {}
    if "isrcs" in wanted:
        members["isrcs"] = sorted({code for atom in evidence.atoms for code in atom.isrcs}) if evidence else []
    if "links" in wanted:
        members["links"] = written(catalog.links(track_id), service.settings.url_templates)
    if evidence is not None and "provenance" in wanted:
        members["provenance"] = _provenance(evidence)
    return with_members(body, {name: msgspec.json.encode(value) for name, value in members.items()})


def _provenance(evidence: Evidence) -> Provenance:
    fields = [
        FieldProvenance(field.name, field.value, field.platform, field.external_id, field.reason, field.agreed) for field in evidence.fields
    ]
    return Provenance(fields, [SourceRecord(member.platform, member.external_id) for member in evidence.members])
