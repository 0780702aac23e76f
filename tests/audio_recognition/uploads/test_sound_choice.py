from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.uploads.sound_choice import choose_sound
from tests.audio_recognition.audio import melody

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LOUD, QUIET = 1, 0


def sound(*parts: tuple[int, float]) -> NDArray[np.int16]:
    """Return parts one after the other: of loudness LOUD (a melody) or QUIET, each of that many seconds."""
    return np.concatenate(
        [melody(seconds) if loudness else np.zeros(round(seconds * SAMPLE_RATE), np.int16) for loudness, seconds in parts]
    )


def pieces_of(samples: NDArray[np.int16], length: int = 1000) -> Iterator[NDArray[np.int16]]:
    return (samples[start : start + length] for start in range(0, len(samples), length))


@pytest.mark.parametrize(
    ("parts", "start", "seconds", "read"),
    [
        ([(LOUD, 12)], 0, 12, 12),
        ([(LOUD, 40)], 0, 30, 30),
        ([(QUIET, 2), (LOUD, 12)], 0, 14, 14),
        ([(QUIET, 35), (LOUD, 10)], 35, 10, 45),
        ([(LOUD, 5), (QUIET, 35), (LOUD, 9)], 0, 5, 30),
        ([(LOUD, 5), (QUIET, 8), (LOUD, 9)], 13, 9, 22),
        ([(LOUD, 9), (QUIET, 8), (LOUD, 5)], 0, 9, 22),
        ([(LOUD, 9), (QUIET, 2), (LOUD, 9)], 0, 20, 20),
        ([(QUIET, 50), (LOUD, 4), (QUIET, 4), (LOUD, 6), (QUIET, 5)], 58, 6, 69),
    ],
)
def test_longest_stretch_of_sound_is_chosen(parts: list[tuple[int, float]], start: float, seconds: float, read: float) -> None:
    chosen = choose_sound(pieces_of(sound(*parts)))
    # Silence is dropped in steps of three seconds before the first sound, and found in steps of a tenth after it.
    assert start - 3.1 <= chosen.start / SAMPLE_RATE <= start + 0.1
    assert len(chosen.samples) / SAMPLE_RATE == pytest.approx(min(30, seconds + start - chosen.start / SAMPLE_RATE), abs=0.2)
    assert chosen.read / SAMPLE_RATE == pytest.approx(min(read, chosen.start / SAMPLE_RATE + 30), abs=0.01)


def test_sound_without_pauses_is_left_as_it_is() -> None:
    samples = melody(20)
    chosen = choose_sound(pieces_of(samples))
    assert (chosen.samples.tobytes(), chosen.start, chosen.read) == (samples.tobytes(), 0, len(samples))


@pytest.mark.parametrize("noise", [0, 8])
def test_silent_file_gives_silence_and_is_read_to_a_limit(noise: int) -> None:
    signs = np.where(np.arange(200 * SAMPLE_RATE) % 2, noise, -noise).astype(np.int16)
    chosen = choose_sound(pieces_of(signs))
    assert (len(chosen.samples), chosen.samples.any()) == (30 * SAMPLE_RATE, False)
    assert 120 <= chosen.read / SAMPLE_RATE < 124


def test_lowest_sample_counts_as_loud() -> None:
    samples = np.zeros(10 * SAMPLE_RATE, np.int16)
    samples[8 * SAMPLE_RATE] = -32768
    assert choose_sound(pieces_of(samples)).samples.any()


def test_nothing_gives_nothing() -> None:
    assert choose_sound(iter(())).read == 0
