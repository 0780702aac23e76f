"""What became of ids from build to build."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Id


class Change(msgspec.Struct):
    """What became of an id in a build: merged into `new_id`, split (`new_id` took a part of it), removed, or restored."""

    build: str
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["track", "artist", "release", "label"]})]
    change: Annotated[str, Meta(extra_json_schema={"enum": ["merged", "split", "removed", "restored"]})]
    id: Id
    new_id: Id | None


class Changes(msgspec.Struct):
    """Changes after the build asked about, oldest first; `build` is the one that answered: ask with it next time."""

    since: str | None
    build: str
    results: list[Change]
    next_cursor: str | None
