"""The peer of recognition_conditions.py: audfprint (github dpwe/audfprint), a public fingerprinter of landmarks, as its command sets it.

FOLDER holds its source, which is run and never copied. It needs SciPy and psutil. The peer holds the held tracks alone.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_recognition.chromaprint import SAMPLE_RATE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_QUERY_SHIFTS, _WINDOW = 4, 2
"""Settings that its command gives a query; its classes begin with other values."""


class Peer:
    """The peer's index of some tracks."""

    def __init__(self, folder: Path, held: Mapping[str, NDArray[np.int16]]) -> None:
        """Read the peer's source in `folder` and index the tracks `held`, int16[n] at SAMPLE_RATE by name."""
        sys.path.insert(0, str(folder))
        analyze, match, table = (importlib.import_module(name) for name in ("audfprint_analyze", "audfprint_match", "hash_table"))
        self._sound = np.zeros(0, np.float64)
        # The sound is at its rate already: its own reader would start ffmpeg for each clip.
        analyze.audio_read.audio_read = lambda *_arguments, **_options: (self._sound, SAMPLE_RATE)
        self._analyzer, self._matcher, self._table = analyze.Analyzer(), match.Matcher(), table.HashTable()
        self._matcher.window = _WINDOW
        for name, sound in held.items():
            self._table.store(name, self._read_hashes(sound))
        self._analyzer.shifts = _QUERY_SHIFTS

    def identify(self, sound: NDArray[np.int16]) -> str | None:
        """Return the name of the track in `sound`; None when the peer finds none."""
        found = self._matcher.match_hashes(self._table, self._read_hashes(sound))
        return str(self._table.names[found[0][0]]) if len(found) else None

    def _read_hashes(self, sound: NDArray[np.int16]) -> Any:  # noqa: ANN401 -- the peer's own
        self._sound = sound / 32768
        return self._analyzer.wavfile2hashes("clip.wav")
