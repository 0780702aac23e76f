"""Samples to peaks: places in the spectrogram that are louder than all around them.

A peak is one integer: its frame, then BIN_BITS for its bin. Peaks are in the order of frames, then bins. The neighbourhood alone decides,
so a clip has the peaks of its recording, and no threshold of loudness depends on an equaliser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BIN_BITS: Final = 10
HOP_SAMPLES: Final = 512
"""46 ms at 11,025 samples a second."""
FRAME_SAMPLES: Final = 2048
_LOWEST_BIN, _BINS = 20, 980
"""108 to 5,383 Hz, 5.4 Hz a bin. Lower tones are hardly a bin apart."""
_FRAMES_BESIDE, _BINS_BESIDE = 7, 28
"""The neighbourhood to either side: 0.33 s and 151 Hz. Music has some 20 peaks a second."""
_QUIETEST: Final = np.float32((2 * FRAME_SAMPLES / 4) ** 2)
"""The power of a tone whose amplitude is 2 of 32,767; digital silence has no peaks."""
_WINDOW: Final = np.hanning(FRAME_SAMPLES + 1)[:-1]
_FRAMES_AT_ONCE: Final = 32
"""Half a megabyte of windowed frames, which fits the processor's cache."""
_FRAMES_PER_BLOCK: Final = 256


def find_peaks(samples: NDArray[np.int16]) -> NDArray[np.uint32]:
    """Return the peaks of `int16[n]` samples, mono at 11,025 a second: `uint32[peaks]`, frame << BIN_BITS | bin."""
    finder = PeakFinder()
    return np.concatenate([finder.feed(samples), finder.finish()])


def are_ordered(peaks: NDArray[np.uint32], samples: int) -> bool:
    """Return whether these may be the peaks of that many samples: each once, in order, in their frames."""
    return not len(peaks) or bool((peaks[1:] > peaks[:-1]).all() and int(peaks[-1]) >> BIN_BITS <= samples // HOP_SAMPLES)


def cut_peaks(peaks: NDArray[np.uint32], first_sample: int, samples: int) -> NDArray[np.uint32]:
    """Return the peaks of a piece of the audio, as if it began with the frame nearest to `first_sample`."""
    first, last = round(first_sample / HOP_SAMPLES), (first_sample + samples) // HOP_SAMPLES
    start, end = np.searchsorted(peaks, (first << BIN_BITS, last << BIN_BITS))
    return peaks[start:end] - np.uint32(first << BIN_BITS)


class PeakFinder:
    """The peaks of audio that arrives in pieces, the same as of the whole; the state is 2 MB at most."""

    def __init__(self) -> None:
        """Start before the first sample."""
        self._samples = np.empty(0, np.int16)
        # Nothing is louder than the edge of the audio.
        self._power = np.zeros((_FRAMES_BESIDE, _BINS), np.float32)
        self._decided = 0

    def feed(self, samples: NDArray[np.int16]) -> NDArray[np.uint32]:
        """Return the peaks that `int16[n]` more samples decide."""
        held = np.concatenate([self._samples, samples])
        frames = max(0, (len(held) - FRAME_SAMPLES) // HOP_SAMPLES + 1)
        self._samples = held[frames * HOP_SAMPLES :].copy()
        found = [np.empty(0, np.uint32)]
        for start in range(0, frames, _FRAMES_PER_BLOCK):
            count = min(_FRAMES_PER_BLOCK, frames - start)
            found.append(self._decide(_transform(held[start * HOP_SAMPLES :], count)))
        return np.concatenate(found)

    def finish(self) -> NDArray[np.uint32]:
        """Return the peaks of the last frames; the audio has ended."""
        return self._decide(np.zeros((_FRAMES_BESIDE, _BINS), np.float32))

    def _decide(self, rows: NDArray[np.float32]) -> NDArray[np.uint32]:
        """Return the peaks of the frames that have all their neighbours with these further rows."""
        power = np.concatenate([self._power, rows])
        if len(power) <= 2 * _FRAMES_BESIDE:
            self._power = power
            return np.empty(0, np.uint32)
        loudest = _spread(power, 2 * _FRAMES_BESIDE + 1)
        padded = np.zeros((len(loudest), _BINS + 2 * _BINS_BESIDE), np.float32)
        padded[:, _BINS_BESIDE:-_BINS_BESIDE] = loudest
        loudest = _spread(padded.T, 2 * _BINS_BESIDE + 1).T
        middle = power[_FRAMES_BESIDE:-_FRAMES_BESIDE]
        frames, bins = np.nonzero((middle == loudest) & (middle > _QUIETEST))
        peaks: NDArray[np.uint32] = ((frames + self._decided << BIN_BITS) | bins).astype(np.uint32)
        self._decided += len(middle)
        self._power = power[-2 * _FRAMES_BESIDE :].copy()
        return peaks


def _transform(samples: NDArray[np.int16], frames: int) -> NDArray[np.float32]:
    """Return the power spectra of that many frames, `float32[frames, _BINS]`."""
    views = np.lib.stride_tricks.sliding_window_view(samples, FRAME_SAMPLES)[::HOP_SAMPLES][:frames]
    power = np.empty((frames, _BINS), np.float32)
    for start in range(0, frames, _FRAMES_AT_ONCE):
        spectrum = np.fft.rfft(views[start : start + _FRAMES_AT_ONCE] * _WINDOW)[:, _LOWEST_BIN : _LOWEST_BIN + _BINS]
        power[start : start + _FRAMES_AT_ONCE] = np.square(spectrum.real) + np.square(spectrum.imag)
    return power


def _spread(values: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Return the maximum of each `width` neighbouring rows; `width - 1` rows fewer."""
    covered = 1
    while covered < width:
        # Two maxima of `covered` rows give one of up to twice as many: log2 passes instead of `width`.
        step = min(covered, width - covered)
        values = np.maximum(values[:-step], values[step:])
        covered += step
    return values
