"""Timelines: every track of a long recording (a mix, a show, the side of an album), where it begins and ends, and the gaps between.

entries.py puts the answers about short slices together, slices.py asks about the slices of a file, sheets.py writes CSV and cue sheets.
"""

from audio_recognition.timeline.entries import Entry, Slice, list_entries

__all__ = ["Entry", "Slice", "list_entries"]
