"""Acoustic fingerprints: Chromaprint's algorithm 2 in NumPy, bit for bit equal to libchromaprint for the same samples.

`fingerprint` and `fingerprint_phases` take a piece of audio, `Incremental` an endless stream, `compressed` reads and writes the text form.
Samples are always mono int16 at `SAMPLE_RATE`; the caller resamples other audio (audio_recognition.decoding does). The meaning of an item
to a search or a match does not belong here.
"""

from audio_recognition.chromaprint.classifiers import WEAK_BITS
from audio_recognition.chromaprint.configuration import (
    FIRST_ITEM_SECONDS,
    FRAME_SAMPLES,
    HOP_SAMPLES,
    ITEMS_PER_SECOND,
    PHASES,
    SAMPLE_RATE,
    SILENCE_ITEM,
    count_items,
)
from audio_recognition.chromaprint.fingerprinter import (
    Incremental,
    SoftFingerprint,
    fingerprint,
    fingerprint_phases,
    fingerprint_phases_softly,
)

__all__ = [
    "FIRST_ITEM_SECONDS",
    "FRAME_SAMPLES",
    "HOP_SAMPLES",
    "ITEMS_PER_SECOND",
    "PHASES",
    "SAMPLE_RATE",
    "SILENCE_ITEM",
    "WEAK_BITS",
    "Incremental",
    "SoftFingerprint",
    "count_items",
    "fingerprint",
    "fingerprint_phases",
    "fingerprint_phases_softly",
]
