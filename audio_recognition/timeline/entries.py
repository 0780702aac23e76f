"""The tracks of a timeline, from answers about slices of the sound.

Slices of one track agree in the *anchor*: the place at which the recording would begin. It tells the true beginning of a track that plays
from its start, and keeps a track together across talk over it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from audio_recognition.matching import Match, Reason

SAME_ANCHOR_SECONDS: Final = 2.0
LONGEST_BRIDGE_SECONDS: Final = 45.0
"""Unmatched sound inside a track, as talk over it."""
SURE_ALONE: Final = 0.6
"""Least confidence of a track that one slice alone names."""


@dataclass(frozen=True)
class Slice:
    """A piece of the sound and its answer."""

    start_seconds: float
    end_seconds: float
    matches: tuple[Match, ...] = ()
    reason: Reason | None = None


@dataclass
class Entry:
    """A track, or a gap: `match` is the most confident answer about it, None for a gap."""

    start_seconds: float
    end_seconds: float
    match: Match | None = None
    slices: int = 1
    anchors: list[float] = field(default_factory=list)

    @property
    def anchor_seconds(self) -> float:
        """Return the place at which the recording would begin, the median of the slices."""
        return sorted(self.anchors)[len(self.anchors) // 2]


def list_entries(slices: Sequence[Slice]) -> list[Entry]:
    """Return tracks and gaps in order, without overlaps, over all slices. `slices` are in order, one after the other."""
    tracks: list[Entry] = []
    for one in slices:
        if one.matches and not _extend_track(tracks, one):
            best = one.matches[0]
            tracks.append(Entry(one.start_seconds, one.end_seconds, best, anchors=[_find_anchor(one, best)]))
    kept = [track for track in tracks if track.slices > 1 or (track.match is not None and track.match.confidence >= SURE_ALONE)]
    return _fill_gaps(_place_bounds(kept, slices), slices)


def _find_anchor(one: Slice, match: Match) -> float:
    return one.start_seconds - match.offset_seconds / match.speed


def _extend_track(tracks: list[Entry], one: Slice) -> bool:
    """Extend the track that a slice continues; False when it begins another."""
    for track in reversed(tracks):
        # Tracks may overlap by a fade, so the one before the last may still play.
        if track.match is None or one.start_seconds - track.end_seconds > LONGEST_BRIDGE_SECONDS:
            break
        for match in one.matches:
            anchor = _find_anchor(one, match)
            if match.recording_id == track.match.recording_id and abs(anchor - track.anchors[-1]) <= SAME_ANCHOR_SECONDS:
                track.end_seconds, track.slices = one.end_seconds, track.slices + 1
                track.anchors.append(anchor)
                track.match = max(track.match, match, key=lambda each: each.confidence)
                return True
    return False


def _place_bounds(tracks: list[Entry], slices: Sequence[Slice]) -> list[Entry]:
    """Move beginnings to the anchor where the recording begins within or just before the first slice; let no two tracks overlap."""
    for track in tracks:
        longest = max((one.end_seconds - one.start_seconds for one in slices), default=0.0)
        # A slice of which the track fills less than half names the one before it, or none.
        if abs(track.anchor_seconds - track.start_seconds) <= longest:
            track.start_seconds = max(slices[0].start_seconds, track.anchor_seconds)
    tracks.sort(key=lambda track: (track.start_seconds, track.end_seconds))
    placed: list[Entry] = []
    for track in tracks:
        if placed and placed[-1].end_seconds > track.start_seconds:
            placed[-1].end_seconds = track.start_seconds
        placed.append(track)
    return [track for track in placed if track.end_seconds > track.start_seconds]


def _fill_gaps(tracks: list[Entry], slices: Sequence[Slice]) -> list[Entry]:
    """Add an entry for all sound between the tracks."""
    if not slices:
        return []
    entries, at = [], slices[0].start_seconds
    for track in tracks:
        if track.start_seconds > at:
            entries.append(Entry(at, track.start_seconds))
        entries.append(track)
        at = track.end_seconds
    if slices[-1].end_seconds > at:
        entries.append(Entry(at, slices[-1].end_seconds))
    return entries
