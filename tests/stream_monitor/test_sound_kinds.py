from __future__ import annotations

import numpy as np
import pytest

from account_store.streams.segments import MUSIC_UNKNOWN, SILENCE, TALK
from audio_recognition.chromaprint import SAMPLE_RATE
from stream_monitor.sound_kinds import SoundKinds
from tests.stream_monitor.shows import song, talk

SPOKEN, PLAYED, QUIET = talk(5, 7)[::2], song(90, 5.0)[::2], np.zeros(5 * SAMPLE_RATE, np.int16)


def kinds(*pieces: np.ndarray) -> list[tuple[str, float, float]]:
    collected = SoundKinds()
    for piece in pieces:
        collected.feed(piece)
    return [(one.kind, one.start / SAMPLE_RATE, one.end / SAMPLE_RATE) for one in collected.take(is_wanted=True)]


@pytest.mark.parametrize(("sound", "kind"), [(SPOKEN, TALK), (PLAYED, MUSIC_UNKNOWN), (QUIET, SILENCE)])
def test_each_kind_is_told(sound: np.ndarray, kind: str) -> None:
    assert kinds(sound) == [(kind, 0.0, 5.0)]


def test_silence_of_two_seconds_is_its_own_and_a_pause_is_not() -> None:
    second = SAMPLE_RATE
    assert kinds(SPOKEN[: 3 * second], QUIET[: 2 * second]) == [(TALK, 0.0, 3.0), (SILENCE, 3.0, 5.0)]
    assert kinds(PLAYED[: 2 * second], QUIET[:second], PLAYED[: 2 * second]) == [(MUSIC_UNKNOWN, 0.0, 5.0)]


def test_sound_that_is_not_wanted_counts_as_time() -> None:
    collected = SoundKinds()
    collected.feed(PLAYED)
    assert collected.take(is_wanted=False) == []
    collected.feed(QUIET)
    [only] = collected.take(is_wanted=True)
    assert (only.kind, only.start) == (SILENCE, len(PLAYED))


@pytest.mark.parametrize("count", [1, 300, SAMPLE_RATE // 2])
def test_short_pieces_do_no_harm(count: int) -> None:
    assert len(kinds(SPOKEN[:count])) <= 1
