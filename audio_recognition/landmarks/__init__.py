"""Landmarks of audio: peaks of its spectrum, and codes of pairs of peaks. A second witness beside Chromaprint.

An equaliser, a telephone or a room changes the energies of notes, but most peaks stay where they are. peaks.py finds them, pairs.py makes
codes of them. The index and the search do not belong here.
"""

from audio_recognition.landmarks.pairs import CODE_BITS, PAIRS_PER_PEAK, PairedPeaks, pair_peaks
from audio_recognition.landmarks.peaks import HOP_SAMPLES, PeakFinder, are_ordered, cut_peaks, find_peaks

__all__ = [
    "CODE_BITS",
    "HOP_SAMPLES",
    "PAIRS_PER_PEAK",
    "PairedPeaks",
    "PeakFinder",
    "are_ordered",
    "cut_peaks",
    "find_peaks",
    "pair_peaks",
]
