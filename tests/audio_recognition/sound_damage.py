"""Colours that devices and rooms give to sound, for tests of landmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def telephone(sound: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return sound of 300 to 3,400 Hz, with the middle of the band twice as loud."""
    hertz = np.fft.rfftfreq(len(sound), 1 / 11025)
    gain = ((hertz > 300) & (hertz < 3400)) * (1 + np.exp(-(((hertz - 1500) / 500) ** 2)))
    heard = np.fft.irfft(np.fft.rfft(sound) * gain, len(sound))
    return np.round(heard * min(1.0, 32767 / max(1.0, np.abs(heard).max()))).astype(np.int16)
