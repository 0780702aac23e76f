"""Which 30 seconds of an upload are looked at, and in which order: its beginning, then where a clip is most likely to differ from it.

Pure arithmetic: what a window sounds like is found out elsewhere.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from audio_recognition.uploads.limits import WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_LOOKS = (0.0, 0.5, 0.25, 0.75)
"""Parts of the duration: intros and applause are passed over sooner than by going through from the front."""


def window_starts(duration_seconds: float) -> Iterator[float]:
    """Seconds at which windows begin: each once, all of the duration covered, none shorter than it must be.

    Endless for a duration of infinity, which is one that nobody knows.
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
            yield min(index * WINDOW_SECONDS, last)
