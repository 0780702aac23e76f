"""The canonical genre tree."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Id


class Genre(msgspec.Struct):
    """A node of the canonical tree; `parent` is the name of its main genre, null for mains."""

    id: Id
    name: str
    type: Annotated[str, Meta(extra_json_schema={"enum": ["main", "subgenre"]})]
    parent: str | None


class GenreTree(msgspec.Struct):
    """The whole tree as a flat list."""

    genres: list[Genre]
