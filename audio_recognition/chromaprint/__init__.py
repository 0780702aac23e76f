"""Acoustic fingerprints: Chromaprint's algorithm 2 in NumPy, bit for bit what libchromaprint answers for the same samples.

`fingerprint` and `fingerprints` take a piece of audio, `Incremental` a stream that never ends, `compressed` reads and writes the text form.
Samples are always mono int16 at `SAMPLE_RATE`: whoever has anything else resamples first (audio_recognition.decoding does). What an item
means to a search or a match is their business, not this package's.
"""

from audio_recognition.chromaprint.configuration import (
    FIRST_ITEM_SECONDS,
    FRAME_SAMPLES,
    HOP_SAMPLES,
    ITEMS_PER_SECOND,
    PHASES,
    SAMPLE_RATE,
    SILENCE_ITEM,
    item_count,
)
from audio_recognition.chromaprint.fingerprinter import Incremental, fingerprint, fingerprints

__all__ = [
    "FIRST_ITEM_SECONDS",
    "FRAME_SAMPLES",
    "HOP_SAMPLES",
    "ITEMS_PER_SECOND",
    "PHASES",
    "SAMPLE_RATE",
    "SILENCE_ITEM",
    "Incremental",
    "fingerprint",
    "fingerprints",
    "item_count",
]
