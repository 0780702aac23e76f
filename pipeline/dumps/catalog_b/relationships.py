"""Relationships of the relational dump whose kind cannot be told: they say nothing to any reader and are rejected here, once for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.dumps.catalog_b.relations import Relations

_SERVES = {
    "l_artist_recording": "source_recording",
    "l_recording_recording": "source_recording",
    "l_recording_work": "source_work_recording",
}
"""Tables whose rows count only with a known kind -> what is the poorer without them. URLs are told by themselves."""


def reject_lost_relationships(relations: Relations) -> None:
    """A `field` reject per relationship whose `link` is not there or is of a type that is not."""
    relations.run("CREATE VIEW told_link AS SELECT k.id FROM link k SEMI JOIN link_type t ON k.link_type = t.id")
    for table, entity in _SERVES.items():
        relations.reject_dangling(entity, table, "link", "told_link")
