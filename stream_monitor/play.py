"""One play of one recording, as far as it was heard, and its writes.

Out of scope: deciding what plays (tracker.py), when to write (write_queue.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from account_store.streams.airings import SAME_AIRING_MS, Airing, Hearing, PlayedTrack, close, extend, has_row, move, start
from stream_monitor.fades import LONGEST_FADE_MS

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from stream_monitor.references import Place, Reference


@dataclass(eq=False)
class Play:
    """Times are Unix milliseconds on the air."""

    track: PlayedTrack
    references: list[Reference]
    anchor_ms: int
    """Air time of the recording's first sample, played or not."""
    started_ms: int
    heard_ms: int
    """End of what was heard, or is presumed to have played."""
    confidence: float
    detections: int = 1
    is_open: bool = True
    airing_id: int | None = None
    """Id of its row; None until that is written."""
    place: Place | None = None
    """Its place in the present connection; None until it is found there."""
    reference: Reference | None = None
    """The one of `references` that `place` belongs to."""
    confirmed_ms: int = 0
    """End of what was heard for certain."""
    is_presumed: bool = False
    """Heard to the end of its fingerprint, or into a gap: presumed to play to its end unless something else is heard."""

    @classmethod
    def of(cls, airing: Airing, references: list[Reference]) -> Play:
        """Continue an airing that another worker wrote."""
        known = airing.hearing
        times = (known.anchor_ms, known.started_ms, known.heard_ms, known.confidence, known.detection_count)
        play = cls(airing.track, references, *times, is_open=airing.is_open, airing_id=airing.airing_id)
        covered = max((one.covered_seconds for one in references), default=0.0)
        # After the end of the fingerprint the row was extended by presumption only.
        play.confirmed_ms = min(known.heard_ms, known.anchor_ms + round(covered * 1000))
        return play

    @property
    def end_ms(self) -> int:
        """Air time of the recording's end, if it plays so far."""
        return self.anchor_ms + self._length_ms

    @property
    def longest_ms(self) -> int:
        """Latest end of the airing: a player that pauses, or a clock that jumps, makes no airing longer than its file."""
        return self.started_ms + self._length_ms

    @property
    def _length_ms(self) -> int:
        return round(1000 * max((one.seconds for one in self.references), default=float(self.track.seconds or 0)))

    def is_same(self, recording_id: int, anchor_ms: int) -> bool:
        """Return whether a detection with that anchor belongs to this play: nobody plays a recording again while it still plays.

        A later anchor comes from an edited or looped version, or from a player that paused while the source was away. An anchor shortly
        before the end of what was heard is a repeat that was faded in.
        """
        is_near = abs(anchor_ms - self.anchor_ms) <= SAME_AIRING_MS
        return recording_id == self.track.recording_id and (is_near or anchor_ms < self.heard_ms - LONGEST_FADE_MS)

    def take(self, reference: Reference, place: Place, anchor_ms: int) -> None:
        """Note that it was found at that place. The first anchor stays, unless the new one is far from it."""
        self.reference, self.place = reference, place
        # The anchor of each find differs a little. Following them would let the anchor drift away from the written row.
        if abs(anchor_ms - self.anchor_ms) > SAME_AIRING_MS:
            self.anchor_ms = anchor_ms

    def move_back(self, by_ms: int) -> None:
        """Move all its times back."""
        self.anchor_ms -= by_ms
        self.started_ms -= by_ms
        self.heard_ms -= by_ms
        self.confirmed_ms -= by_ms

    def build_hearing(self) -> Hearing:
        """Return its present state in the form of the store."""
        return Hearing(self.anchor_ms, self.started_ms, max(self.heard_ms, self.started_ms), self.confidence, self.detections)

    def write_start(self, connection: Connection, stream_id: str) -> None:
        """Make its row, or find the one that it continues."""
        # The id is known when this write runs, some time after it is posted: the writes below read it then.
        self.airing_id = start(connection, stream_id, self.track, self.build_hearing())

    def write_progress(self, connection: Connection, stream_id: str) -> None:
        """Extend its row to the last hearing."""
        extend(connection, self._find_row(connection, stream_id), self.build_hearing())

    def write_end(self, connection: Connection, stream_id: str) -> None:
        """End its row, which may have been extended too far."""
        close(connection, self._find_row(connection, stream_id), self.heard_ms)

    def write_times(self, connection: Connection, stream_id: str) -> None:
        """Move its row to its times."""
        move(connection, self._find_row(connection, stream_id), self.build_hearing())

    def _find_row(self, connection: Connection, stream_id: str) -> int:
        """Return the id of its row; make the row again if a fault undid the transaction that made it."""
        if self.airing_id is None or not has_row(connection, self.airing_id, stream_id, self.track.recording_id):
            self.airing_id = start(connection, stream_id, self.track, self.build_hearing())
        return self.airing_id
