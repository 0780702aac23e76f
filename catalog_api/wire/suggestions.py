"""Proposed corrections."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Id, Timestamp


class Suggestion(msgspec.Struct):
    """A proposed correction of a track."""

    id: Id
    status: Annotated[str, Meta(extra_json_schema={"enum": ["pending", "approved", "rejected"]})]
    track_id: Id
    field: str
    value: str
    note: str | None
    source_url: str | None
    created_at: Timestamp


class SuggestionPage(msgspec.Struct):
    """The caller's suggestions, oldest first."""

    results: list[Suggestion]
    next_cursor: str | None
