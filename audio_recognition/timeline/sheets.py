"""Timelines as text: CSV with a row for each track and gap, and cue sheets, which players and burners read."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from audio_recognition.timeline.entries import Entry

COLUMNS: Final = (
    "file",
    "start_seconds",
    "end_seconds",
    "track_id",
    "title",
    "artist",
    "confidence",
    "probability",
    "method",
    "offset_seconds",
)
_FRAMES_PER_SECOND: Final = 75
_MOST_TRACKS: Final = 99
"""The format of cue sheets has two digits for a track."""


class TrackNames(NamedTuple):
    """Title and artist of a track, as a reader sees them."""

    title: str
    artist: str


def render_csv(file: str, entries: Sequence[Entry], find_names: Callable[[int], TrackNames]) -> str:
    """Return the rows of one file without a heading; gaps have no track."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for entry in entries:
        bounds = (file, f"{entry.start_seconds:.1f}", f"{entry.end_seconds:.1f}")
        match = entry.match
        if match is None:
            writer.writerow((*bounds, *[""] * (len(COLUMNS) - len(bounds))))
            continue
        names = find_names(match.recording_id)
        offset = entry.start_seconds - entry.anchor_seconds
        rates = (f"{match.confidence:.4f}", f"{match.probability:.4f}", match.method.value, f"{offset:.1f}")
        writer.writerow((*bounds, match.recording_id, names.title, names.artist, *rates))
    return out.getvalue()


def render_cue(file: str, entries: Sequence[Entry], find_names: Callable[[int], TrackNames]) -> str:
    """Return the cue sheet of one file: its tracks, of at most 99; a gap is a part of the track before it."""
    lines = [f"FILE {_quote(file)} WAVE"]
    for number, entry in enumerate([one for one in entries if one.match is not None][:_MOST_TRACKS], start=1):
        assert entry.match is not None  # noqa: S101 - for the type checker
        names = find_names(entry.match.recording_id)
        lines += [
            f"  TRACK {number:02d} AUDIO",
            f"    TITLE {_quote(names.title)}",
            f"    PERFORMER {_quote(names.artist)}",
            f"    INDEX 01 {_format_cue_time(entry.start_seconds)}",
        ]
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    # Cue sheets have no escape for a quotation mark.
    return '"' + " ".join(text.replace('"', "'").split()) + '"'


def _format_cue_time(seconds: float) -> str:
    frames = round(seconds * _FRAMES_PER_SECOND)
    return f"{frames // _FRAMES_PER_SECOND // 60:02d}:{frames // _FRAMES_PER_SECOND % 60:02d}:{frames % _FRAMES_PER_SECOND:02d}"
