"""The links of a recording to other platforms, in the contract's order (B12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from catalog_store.serving.stored_body import read_companion

if TYPE_CHECKING:
    from catalog_store.serving.store import ServingStore


class PlatformLink(NamedTuple):
    """One link. Its URL depends on the operator's templates, so the caller builds it."""

    source: str
    external_id: str
    slug: str | None


def list_links(store: ServingStore, recording_id: int) -> list[PlatformLink]:
    """Return the links of one recording in platform order; empty for none or an unknown recording."""
    body = store.read_tracks([recording_id]).get(recording_id)
    return [] if body is None else [PlatformLink(*link) for link in read_companion(body).links]
