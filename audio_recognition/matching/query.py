"""The query: the fingerprint of one piece of audio at one or more phases, and whether it can be matched at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.chromaprint import SILENCE_ITEM
from audio_recognition.matching.answers import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

FEWEST_ITEMS = 6
"""About 3.4 s of audio. The store holds every other item, so fewer items leave only one or two to compare."""
SURE_ITEMS = 40
"""About 7.5 s of audio. A shorter query must be in the recording as a whole, and a miss decides nothing."""
_MOST_SILENCE = 0.3
_LEAST_DIVERSITY = 0.1
"""The least share of distinct upper halves of items. Loops and drones above it are distinguished by their distance (confidence.py)."""
_DIVERSITY_SHIFT = np.uint32(16)


def find_refusal(fingerprints: Sequence[NDArray[np.uint32]]) -> Reason | None:
    """Return why this audio cannot be matched, judged by its shortest phase and by the first; None when it can."""
    if min((len(one) for one in fingerprints), default=0) < FEWEST_ITEMS:
        return Reason.TOO_SHORT
    items = fingerprints[0]
    if np.count_nonzero(items == SILENCE_ITEM) > _MOST_SILENCE * len(items):
        return Reason.SILENCE
    if len(np.unique(items >> _DIVERSITY_SHIFT)) < _LEAST_DIVERSITY * len(items):
        return Reason.LOW_DIVERSITY
    return None
