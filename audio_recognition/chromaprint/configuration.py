"""The constants of Chromaprint's algorithm 2 that several modules use: rates, frame, hop, phases, number of items.

They come from the published algorithm (libchromaprint 1.5, fingerprinter configuration): another value gives another fingerprint. Constants
of a single step are in the module of that step.
"""

from __future__ import annotations

from typing import Final

SAMPLE_RATE: Final = 11025
"""Samples a second, mono."""
FRAME_SAMPLES: Final = 4096
HOP_SAMPLES: Final = 1365
"""From one frame to the next: 123.8 ms, the length of one item."""

SMOOTHED_ROWS: Final = 5
"""Neighbouring chroma rows that the filter over time weighs."""
WINDOW_ROWS: Final = 16
"""Chroma rows that one item covers."""
ROWS_BEFORE_FIRST_ITEM: Final = SMOOTHED_ROWS + WINDOW_ROWS - 2
"""Frames before the frame that completes the first item."""

PHASES: Final = (0, 341, 682, 1024)
"""Samples to skip at the start: quarters of a hop. A clip is cut anywhere, but a recording's items start at its beginning. One of four
phases is at most an eighth of a hop away from the recording's own grid."""

ITEMS_PER_SECOND: Final = SAMPLE_RATE / HOP_SAMPLES
FIRST_ITEM_SECONDS: Final = (FRAME_SAMPLES + ROWS_BEFORE_FIRST_ITEM * HOP_SAMPLES) / SAMPLE_RATE
"""The audio needed for one item, and the audio that each item covers: 2.72 s."""

SILENCE_ITEM: Final = 627964279
"""The item of digital silence."""


def count_items(samples: int, *, phase: int = 0) -> int:
    """Return the number of items in that many samples."""
    frames = (samples - phase - FRAME_SAMPLES) // HOP_SAMPLES + 1
    return max(0, frames - ROWS_BEFORE_FIRST_ITEM)
