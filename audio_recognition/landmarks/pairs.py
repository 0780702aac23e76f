"""Pairs of peaks and their codes: the bin of the first peak, and how many bins and frames away the second is.

All pairs within a zone are formed, and one in sixteen is kept, chosen by its code. A clip chooses the same ones wherever it begins, and
further peaks of noise take nothing away: they only add pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from audio_recognition.landmarks.peaks import BIN_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FRAME_BITS: Final = 6
_BIN_STEP_BITS: Final = 9
_MOST_FRAMES: Final = (1 << _FRAME_BITS) - 1
"""From the first peak to the second: 2.9 s."""
_MOST_BINS: Final = (1 << (_BIN_STEP_BITS - 1)) - 1
"""1,373 Hz up or down."""
CODE_BITS: Final = BIN_BITS + _BIN_STEP_BITS + _FRAME_BITS
_SAMPLED_BELOW: Final = np.uint32(1 << 28)
"""One pair in sixteen is kept, some 33 a second."""
_SAMPLE_FACTORS: Final = (np.uint32(0x9E3779B1), np.uint32(0x85EBCA77), np.uint32(0xC2B2AE3D))
"""For the bins of both peaks and the frames between them; the upper bits of their sum are as good as random."""
PAIRS_PER_PEAK: Final = 1.6
"""Kept pairs, on average: an estimate by which an index is divided into buckets."""
LONGEST_FRAMES: Final = 1 << 16
"""Peaks after 50 minutes are left out: a place has 16 bits."""
_MOST_NEIGHBOURS: Final = 512
"""Peaks after a peak that are looked at. Music has some 60; a tone without end has thousands."""
_FRAME_OF_KEY: Final = 16
_MASK: Final = np.uint32((1 << CODE_BITS) - 1)
_HALF: Final = np.uint32(CODE_BITS // 2)
_MIX, _MIX_AGAIN = np.uint32(0x0B54A32D), np.uint32(0x0D1B54A5)


class PairedPeaks(NamedTuple):
    """Pair i: its code, the number of the piece of audio that it is of, and the frame of its first peak."""

    codes: NDArray[np.uint32]
    pieces: NDArray[np.int64]
    frames: NDArray[np.int64]


def pair_peaks(peaks: NDArray[np.uint32], lengths: NDArray[np.int64] | None = None) -> PairedPeaks:
    """Return the kept pairs of peaks, by piece, frame and code. `lengths`: peaks of each piece; without them it is one."""
    pieces = np.repeat(np.arange(1 if lengths is None else len(lengths)), [len(peaks)] if lengths is None else lengths)
    frames = (peaks >> np.uint32(BIN_BITS)).astype(np.int64)
    inside = np.flatnonzero(frames < LONGEST_FRAMES)
    bins = (peaks[inside] & np.uint32((1 << BIN_BITS) - 1)).astype(np.int32)
    # Pieces stand far apart in time, so that no pair has peaks of two of them.
    times = frames[inside] + pieces[inside] * (LONGEST_FRAMES + _MOST_FRAMES + 1)
    steps = np.searchsorted(times, times + _MOST_FRAMES, side="right") - np.arange(len(times))
    # A pair's sample is a sum of what each peak says, so one addition rejects fifteen of sixteen pairs before they are formed.
    wide = bins.astype(np.uint32)
    time_share = times.astype(np.uint32) * _SAMPLE_FACTORS[2]
    of_first, of_second = wide * _SAMPLE_FACTORS[0] - time_share, wide * _SAMPLE_FACTORS[1] + time_share
    ranks = range(1, min(_MOST_NEIGHBOURS, int(steps.max(initial=0))))
    chosen = [np.empty(0, np.int64), *(np.flatnonzero(of_first[:-rank] + of_second[rank:] < _SAMPLED_BELOW) for rank in ranks)]
    first = np.concatenate(chosen)
    second = first + np.repeat(np.arange(len(chosen)), [len(one) for one in chosen])
    apart, rise = times[second] - times[first], bins[second] - bins[first]
    forms = np.flatnonzero((apart > 0) & (apart <= _MOST_FRAMES) & (np.abs(rise) <= _MOST_BINS))
    first, rise = first[forms], rise[forms] + _MOST_BINS
    codes = _hash_pairs(wide[first], rise.astype(np.uint32), apart[forms].astype(np.uint32))
    # Piece, frame and code in one integer, because sorting one array is faster than sorting records.
    first = inside[first]
    keys = np.sort((pieces[first] << _FRAME_OF_KEY | frames[first]) << CODE_BITS | codes)
    spots = keys >> CODE_BITS
    return PairedPeaks((keys & int(_MASK)).astype(np.uint32), spots >> _FRAME_OF_KEY, spots & (LONGEST_FRAMES - 1))


def _hash_pairs(bins: NDArray[np.uint32], rises: NDArray[np.uint32], apart: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Hash the three fields of each pair; no two pairs share a code, because each step can be undone."""
    mixed = (bins << np.uint32(_BIN_STEP_BITS) | rises) << np.uint32(_FRAME_BITS) | apart
    for factor in (_MIX, _MIX_AGAIN):
        mixed ^= mixed >> _HALF
        mixed *= factor
        mixed &= _MASK
    mixed ^= mixed >> _HALF
    return mixed
