"""The sound of a window: silence before it is skipped, and of sound with long pauses the longest stretch is taken.

Silence in a fingerprint is the same in all recordings, so it would outweigh the music beside it. Decoding does not belong here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.uploads.limits import MOST_SKIPPED_SECONDS, WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_SILENT: Final = 8
"""The largest sample of digital silence, at -72 dB: lossy codecs turn zeros into a little noise."""
_PAUSE: Final = 3 * SAMPLE_RATE
"""Samples. Shorter silence stays in the window: one item covers 2.7 s, so no item of it is silent as a whole."""
_BLOCK: Final = SAMPLE_RATE // 10
_WINDOW: Final = round(WINDOW_SECONDS * SAMPLE_RATE)
_MOST_SKIPPED: Final = round(MOST_SKIPPED_SECONDS * SAMPLE_RATE)


class ChosenSound(NamedTuple):
    """The chosen samples, int16[n]; the first of them is number `start` of all samples, of which `read` were read."""

    samples: NDArray[np.int16]
    start: int
    read: int


def choose_sound(pieces: Iterable[NDArray[np.int16]]) -> ChosenSound:
    """Choose the sound of one window from `int16[n]` pieces; no more of them are read than necessary."""
    held: list[NDArray[np.int16]] = []
    skipped = count = 0
    is_silent = True
    for piece in pieces:
        held.append(piece)
        count += len(piece)
        # The loudness of a piece matters only until the first sound.
        is_silent = is_silent and not _is_loud(piece)
        if is_silent and count >= _PAUSE:
            skipped, count, held = skipped + count, 0, []
        if count >= _WINDOW or skipped >= _MOST_SKIPPED:
            break
    if skipped and is_silent:
        # The matcher answers `silence` when it sees some.
        return ChosenSound(np.zeros(min(skipped + count, _WINDOW), np.int16), 0, skipped + count)
    samples = np.concatenate(held)[:_WINDOW] if held else np.zeros(0, np.int16)
    start, end = _find_longest_stretch(samples)
    return ChosenSound(samples[start:end], skipped + start, skipped + len(samples))


def _is_loud(piece: NDArray[np.int16]) -> bool:
    # Not by absolute values: that of the lowest int16 is negative.
    return len(piece) > 0 and (int(piece.max()) > _SILENT or int(piece.min()) < -_SILENT)


def _find_longest_stretch(samples: NDArray[np.int16]) -> tuple[int, int]:
    """Return the bounds of the longest stretch without a pause; all of the samples when they have none."""
    blocks = samples[: len(samples) // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
    loud = np.flatnonzero((blocks.max(axis=1) > _SILENT) | (blocks.min(axis=1) < -_SILENT)) if len(blocks) else np.zeros(0, np.intp)
    if not len(loud):
        return 0, len(samples)
    firsts = np.concatenate([loud[:1], loud[1:][np.diff(loud) * _BLOCK > _PAUSE]])
    lasts = np.concatenate([loud[:-1][np.diff(loud) * _BLOCK > _PAUSE], loud[-1:]])
    starts, ends = firsts * _BLOCK, (lasts + 1) * _BLOCK
    # Less than a pause before the first sound and after the last one belongs to them.
    if starts[0] <= _PAUSE:
        starts[0] = 0
    if len(samples) - ends[-1] <= _PAUSE:
        ends[-1] = len(samples)
    longest = int((ends - starts).argmax())
    return int(starts[longest]), int(ends[longest])
