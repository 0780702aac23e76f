"""The source records of a track with their values and their addresses on the platforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_api.platform_urls import build_links, list_templates
from catalog_api.wire.catalog_types import SourceRecord, SourceValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from catalog_store.queries.evidence import Member
    from catalog_store.queries.recorded_values import SourceValues as StoredValues
    from catalog_store.reader import Catalog


def build_source_records(catalog: Catalog, track_id: int, members: Iterable[Member], own: Mapping[str, str]) -> list[SourceRecord]:
    """Return the records, in the order of `members`; `own` are the operator's URL templates. Reads tables."""
    found = {(one.platform, one.external_id): one for one in catalog.read_source_values(track_id)}
    links = build_links(catalog.list_links(track_id), list_templates(catalog, own))
    urls = {(link.source, link.external_id): link.url for link in links}
    records = []
    for member in members:
        values = found.get((member.platform, member.external_id))
        # A platform whose links are those of releases has no page of the record.
        url = urls.get((member.platform, member.external_id)) or urls.get((member.platform, (values and values.release_id) or ""))
        records.append(SourceRecord(member.platform, member.external_id, url, None if values is None else _build_values(values)))
    return records


def _build_values(values: StoredValues) -> SourceValues:
    return SourceValues(
        values.title,
        values.version,
        values.artist_credit,
        values.isrcs,
        values.duration_ms,
        values.release_date,
        values.release_title,
        values.label_name,
        values.genres,
    )
