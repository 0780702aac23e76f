"""What a matcher answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why there is no match."""

    TOO_SHORT = "too_short"
    """Fewer than FEWEST_ITEMS items: about eight seconds of audio."""
    SILENCE = "silence"
    """Too much of it is digital silence."""
    LOW_DIVERSITY = "low_diversity"
    """A drone or a tone: it is like too many things."""
    NOT_FOUND = "not_found"
    """No recording of the index is near enough."""


@dataclass(frozen=True, slots=True)
class Match:
    """One recording that was recognised."""

    recording_id: int
    confidence: float
    """1.0 every bit is equal, 0.5 the gate: what is below is not returned."""
    bit_error_rate: float
    """Share of the compared bits that differ; unrelated audio has about 0.5."""
    offset_seconds: float
    """Where in the recording the query begins; negative when the query begins before."""
    overlap_items: int
    """Items of the query that lie within the recording's fingerprint."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`matches` best first, several only when they can hardly be told apart; without any, the reason why."""

    matches: tuple[Match, ...] = ()
    reason: Reason | None = None
