from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from audio_recognition.chromaprint import HOP_SAMPLES, PHASES, SAMPLE_RATE
from stream_monitor.catalog import read_references
from stream_monitor.clock import SampleClock
from stream_monitor.fades import is_cross_fade
from stream_monitor.fingerprint_buffer import FingerprintBuffer
from stream_monitor.references import Place
from tests.stream_monitor.conftest import LENGTHS
from tests.stream_monitor.shows import song

if TYPE_CHECKING:
    from audio_recognition.index.fingerprint_index import Index

CHANGE = 18.0
"""Second at which the old song has gone."""


def judge(songs: Index, *, fade: float, begun: float) -> bool:
    """Judge a change from song 3 to song 5, which is faded in for `fade` seconds, from its second `begun` on."""
    old, new = (song(number, LENGTHS[number])[::2].astype(float) for number in (3, 5))
    count, at = round(fade * SAMPLE_RATE), round(CHANGE * SAMPLE_RATE)
    new = new[round(begun * SAMPLE_RATE) :][: 20 * SAMPLE_RATE]
    rising = np.sin(np.linspace(0, np.pi / 2, count))
    mixed = old[at - count : at] * rising[::-1] + new[:count] * rising
    buffer, clock = FingerprintBuffer(), SampleClock()
    buffer.feed(np.concatenate([old[: at - count], mixed, new[count:]]).astype(np.int16))
    clock.note_arrival(buffer.samples, round(buffer.samples / SAMPLE_RATE * 1000))
    [first], [second] = (read_references(songs, number) for number in (3, 5))
    shift = round((begun - CHANGE + fade) * SAMPLE_RATE / HOP_SAMPLES)
    window = buffer.read_since(buffer.end - 80)
    place = second.find_place(window, np.arange(shift - 4, shift + 5))
    assert place is not None
    anchor = round(place.origin / SAMPLE_RATE * 1000)
    first_item = int(second.find_matching_items(place, buffer.read_since(0))[0])
    middle = PHASES[place.phase] + first_item * HOP_SAMPLES + 1.36 * SAMPLE_RATE
    return is_cross_fade((first, Place(0, 0, 0.0)), (second, place), anchor, round(middle / SAMPLE_RATE * 1000), buffer, clock)


@pytest.mark.parametrize("fade", [4.0, 6.0, 8.0])
def test_slow_change_is_a_cross_fade(songs: Index, fade: float) -> None:
    assert judge(songs, fade=fade, begun=0.0)


@pytest.mark.parametrize("begun", [3.6, 5.0, 7.5])
def test_cut_to_a_song_that_is_begun_late_is_none(songs: Index, begun: float) -> None:
    assert not judge(songs, fade=0.0, begun=begun)


def test_song_that_began_long_before_is_not_faded_in(songs: Index) -> None:
    assert not judge(songs, fade=6.0, begun=10.0)
