"""The windows of 30 seconds of an upload, in order: its beginning, then the places where a clip most likely differs from it.

This is pure arithmetic; the windows are decoded elsewhere.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from audio_recognition.uploads.limits import WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_LOOKS = (0.0, 0.5, 0.25, 0.75)
"""Parts of the duration. They pass intros and applause sooner than windows in order would."""


def iterate_window_starts(duration_seconds: float) -> Iterator[float]:
    """Yield the seconds at which windows begin: each once, the whole duration covered, each as long as possible.

    Endless for an infinite duration, which stands for an unknown one.
    """
    if math.isinf(duration_seconds):
        yield from itertools.count(0.0, WINDOW_SECONDS)
        return
    last = max(0.0, duration_seconds - WINDOW_SECONDS)
    count = math.ceil(duration_seconds / WINDOW_SECONDS)
    looks = [int(count * part) for part in _FIRST_LOOKS]
    seen = set()
    for index in itertools.chain(looks, range(count)):
        if index not in seen:
            seen.add(index)
            # The last window ends with the sound instead of being short.
            yield min(index * WINDOW_SECONDS, last)
