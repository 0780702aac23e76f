"""The answers of a matcher."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from audio_recognition.matching.confidence import estimate_landmark_probability, estimate_probability


class Method(StrEnum):
    """The evidence for a match."""

    FINGERPRINT = "fingerprint"
    LANDMARKS = "landmarks"
    """Pairs of spectral peaks; the fingerprint alone was not close enough."""


class Reason(StrEnum):
    """Why there is no match."""

    TOO_SHORT = "too_short"
    """Fewer than FEWEST_ITEMS items, or fewer than SURE_ITEMS (about eight seconds) and no recording is close enough to be sure."""
    SILENCE = "silence"
    """Too large a share is digital silence."""
    LOW_DIVERSITY = "low_diversity"
    """A drone or a tone, which resembles too many recordings."""
    NOT_FOUND = "not_found"
    """No recording of the index is close enough."""


@dataclass(frozen=True, slots=True)
class Match:
    """One recognised recording."""

    recording_id: int
    confidence: float
    """1.0 when every bit is equal, 0.5 at the gate; lower values are not returned."""
    bit_error_rate: float
    """Share of the compared bits that differ; unrelated audio has about 0.5. 1 when landmarks alone overlap."""
    offset_seconds: float
    """Offset of the query's beginning in the recording; negative when the query begins before it."""
    overlap_items: int
    """Items of the query inside the recording's fingerprint."""
    speed: float = 1.0
    """Speed of the query as a share of the recording's."""
    pitch: float = 1.0
    """Pitch of the query as a share of the recording's."""
    method: Method = Method.FINGERPRINT

    @property
    def probability(self) -> float:
        """Return the probability that the query is of this recording, or of one that sounds alike."""
        if self.method is Method.LANDMARKS:
            return estimate_landmark_probability(self.confidence)
        return estimate_probability(self.confidence)


@dataclass(frozen=True, slots=True)
class Answer:
    """`matches` are best first, several only when they are hard to distinguish; `reason` is set when there is none."""

    matches: tuple[Match, ...] = ()
    reason: Reason | None = None
    has_landmarks: bool = False
    """Whether the index has landmarks: `Matcher.match_landmarks` may find what was not found."""
