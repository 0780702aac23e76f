"""One play of one recording, as far as it was heard, and what is written of it.

What must not live here: deciding what plays (tracker.py), when to write (scribe.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from account_store.streams.airings import SAME_AIRING_MS, Airing, Hearing, PlayedTrack, close, extend, start

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from stream_monitor.references import Place, Reference

LONGEST_FADE_MS = 7_000
"""For so long, at most, one track goes while the next one comes."""


@dataclass(eq=False)
class Play:
    """Times are Unix milliseconds on the air."""

    track: PlayedTrack
    references: list[Reference]
    anchor_ms: int
    """When the recording began, or would have."""
    started_ms: int
    heard_ms: int
    """Until when it was heard, or is taken to have played."""
    confidence: float
    detections: int = 1
    is_open: bool = True
    airing_id: int | None = None
    """Of its row, once that is written."""
    place: Place | None = None
    """Where it lies in the present connection; None until it is found there."""
    reference: Reference | None = None
    """Which of `references` that place is of."""
    sure_ms: int = 0
    """Until when it was heard for certain."""
    plays_on: bool = False
    """Heard to where its fingerprint ends, or into a gap: it is taken to play to its end, unless something else is heard."""

    @classmethod
    def of(cls, airing: Airing, references: list[Reference]) -> Play:
        """Go on with what another worker wrote."""
        known = airing.hearing
        times = (known.anchor_ms, known.started_ms, known.heard_ms, known.confidence, known.detection_count)
        play = cls(airing.track, references, *times, is_open=airing.is_open, airing_id=airing.airing_id)
        covered = max((one.covered_seconds for one in references), default=0.0)
        play.sure_ms = min(known.heard_ms, known.anchor_ms + round(covered * 1000))
        return play

    @property
    def end_ms(self) -> int:
        """When the recording is over, played to its end."""
        seconds = max((one.seconds for one in self.references), default=float(self.track.seconds or 0))
        return self.anchor_ms + round(seconds * 1000)

    def is_same(self, recording_id: int, anchor_ms: int) -> bool:
        """Whether a detection with that anchor is of this play: a recording is not played anew while it still plays.

        A later anchor is one of an edited or looped version, or of a player that stood still while the source was away. One shortly before
        the end of what was heard is a repeat that was faded in.
        """
        is_near = abs(anchor_ms - self.anchor_ms) <= SAME_AIRING_MS
        return recording_id == self.track.recording_id and (is_near or anchor_ms < self.heard_ms - LONGEST_FADE_MS)

    def take(self, reference: Reference, place: Place, anchor_ms: int) -> None:
        """It was found at that place. The first anchor stays, unless it is another one altogether."""
        self.reference, self.place = reference, place
        if abs(anchor_ms - self.anchor_ms) > SAME_AIRING_MS:
            self.anchor_ms = anchor_ms

    def hearing(self) -> Hearing:
        """As it is written."""
        return Hearing(self.anchor_ms, self.started_ms, max(self.heard_ms, self.started_ms), self.confidence, self.detections)

    def write_start(self, connection: Connection, stream_id: str) -> None:
        """Its row, new or found."""
        self.airing_id = start(connection, stream_id, self.track, self.hearing())

    def write_progress(self, connection: Connection, _stream_id: str) -> None:
        """It was heard until later."""
        if self.airing_id is not None:
            extend(connection, self.airing_id, self.hearing())

    def write_end(self, connection: Connection, _stream_id: str) -> None:
        """It is over, or was over before what was written."""
        if self.airing_id is not None:
            close(connection, self.airing_id, self.heard_ms)
