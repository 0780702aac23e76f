from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_recognition.chromaprint import (
    HOP_SAMPLES,
    PHASES,
    SAMPLE_RATE,
    WEAK_BITS,
    SoftFingerprint,
    fingerprint,
    fingerprint_phases_softly,
)
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.matching import TEMPOS, Matcher, Pace, stretch
from tests.audio_recognition.audio import melody

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def change_tempo(samples: NDArray[np.int16], tempo: float) -> NDArray[np.int16]:
    """Return the samples at another tempo and the same pitch: overlapping pieces of 93 ms, moved together or apart."""
    length, hop = 1024, 256
    window = np.hanning(length)
    starts = np.arange(0, len(samples) - length - hop, hop * tempo).astype(int)
    made, weight = np.zeros(len(starts) * hop + length), np.full(len(starts) * hop + length, 1e-3)
    for number, start in enumerate(starts):
        piece = slice(number * hop, number * hop + length)
        # The piece that continues the sound so far: without it, overlapping waves would cancel each other.
        shifts = range(0, hop, 8)
        best = max(shifts, key=lambda shift: float(made[piece][:512] @ samples[start + shift : start + shift + 512]))
        made[piece] += window * samples[start + best : start + best + length]
        weight[piece] += window
    return np.round(made / weight).astype(np.int16)


@pytest.mark.parametrize("tempo", [1.03, 0.97])
def test_stretched_fingerprint_is_nearer_to_the_recording(tmp_path: Path, tempo: float) -> None:
    songs = [melody(60, seed=seed) for seed in range(1, 9)]
    build_index([FingerprintBatch.of(range(1, 9), [fingerprint(song) for song in songs])], tmp_path / "index")
    found = Matcher(Index.open(tmp_path / "index"))
    query = fingerprint_phases_softly(change_tempo(songs[2], tempo)[: 30 * SAMPLE_RATE])
    (match,) = found.match([one.items for one in stretch(query, tempo)], pace=Pace(tempo)).matches
    as_it_is = found.match([one.items for one in query]).matches
    assert (match.recording_id, match.speed, match.pitch) == (3, tempo, 1.0)
    assert match.offset_seconds == pytest.approx(0, abs=0.5)
    assert not as_it_is or as_it_is[0].bit_error_rate > match.bit_error_rate


@given(st.integers(1, 4), st.integers(40, 300), st.sampled_from(TEMPOS))
def test_stretched_items_are_the_nearest_of_the_grid(phases: int, items: int, tempo: float) -> None:
    """Items that hold their own time, in quarters of a hop, show the time of each item of the result."""
    grid = np.arange(phases * items, dtype=np.uint32).reshape(items, phases)
    weak = np.zeros((items, WEAK_BITS), np.uint8)
    stretched = stretch([SoftFingerprint(column, weak) for column in grid.T], tempo)
    assert len(stretched) == phases
    for phase, one in enumerate(stretched):
        times = (np.arange(len(one.items)) * phases + phase) / tempo
        assert np.abs(one.items.astype(np.float64) - times).max() <= 0.5
        assert len(one.items) == len(one.weak_bits) == pytest.approx(items * tempo, abs=2)


def test_own_tempo_changes_nothing() -> None:
    phases = fingerprint_phases_softly(melody(15))
    items = min(len(one.items) for one in phases)
    assert [one.items.tolist() for one in stretch(phases, 1.0)] == [one.items[:items].tolist() for one in phases]
    assert [one.weak_bits.tolist() for one in stretch(phases, 1.0)] == [one.weak_bits[:items].tolist() for one in phases]
    assert PHASES[1] * 4 == pytest.approx(HOP_SAMPLES, rel=0.01)
