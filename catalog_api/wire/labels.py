"""Labels as `/v1` tells them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Id


class LabelRef(msgspec.Struct):
    """A label by id and name."""

    id: Id
    name: str


class Label(msgspec.Struct):
    """A label."""

    id: Id
    name: str
    release_count: Annotated[int, Meta(ge=0)]
