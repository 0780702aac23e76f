"""What was recognised in a piece of audio."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from catalog_api.wire.artists import TrackArtist


class RecognitionResult(msgspec.Struct):
    """A recording that was recognised. `offset_seconds`: where in the recording begins what was sent."""

    id: Annotated[str, Meta(pattern="^[1-9][0-9]*$")]
    title: str
    artists: list[TrackArtist]
    confidence: Annotated[float, Meta(ge=0.5, le=1)]
    offset_seconds: float


class Identified(msgspec.Struct, omit_defaults=True):
    """What was recognised, best first. `reason` when nothing was; `window_offset_seconds`: where in an upload begins what was."""

    matched: bool
    results: list[RecognitionResult]
    credits_charged: Annotated[int, Meta(ge=10)]
    reason: Literal["too_short", "silence", "low_diversity", "not_found"] | msgspec.UnsetType = msgspec.UNSET
    window_offset_seconds: Annotated[float, Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET
