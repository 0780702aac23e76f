from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from account_store.streams.stream_tables import airing
from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.matcher_process.matcher_errors import MatcherDownError
from stream_monitor import tracker
from tests.stream_monitor.conftest import LENGTHS
from tests.stream_monitor.shows import Part, agrees, sound, talk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from audio_recognition.matching import Answer
    from stream_monitor.references import Reference
    from tests.stream_monitor.conftest import Heard

TALK, SILENCE = None, 0
SONG = {number: Part(number, seconds) for number, seconds in LENGTHS.items()}


def samples(*parts: Part) -> NDArray[np.int16]:
    return np.ascontiguousarray(sound(parts, LENGTHS | {90: 60.0, 91: 60.0})[::2])


SHOWS = {
    "songs one after the other": [SONG[1], SONG[2], SONG[3]],
    "talk, silence and unknown music in between": [SONG[4], Part(TALK, 8), SONG[5], Part(SILENCE, 9), SONG[6], Part(90, 25), SONG[1]],
    "a repeat at once": [SONG[2], SONG[2], SONG[2], Part(TALK, 20)],
    "a repeat later": [SONG[2], Part(TALK, 12), SONG[2], SONG[4], SONG[2], Part(SILENCE, 20)],
    "cut short and begun late": [Part(3, 18), SONG[4], Part(5, 20, 9), Part(TALK, 8), Part(1, 16), Part(TALK, 20)],
    "begins and ends with talk": [Part(TALK, 15), SONG[6], Part(TALK, 25)],
    "nothing known": [Part(TALK, 30), Part(90, 30), Part(SILENCE, 20), Part(91, 40), Part(TALK, 10)],
}


@pytest.mark.parametrize("parts", SHOWS.values(), ids=SHOWS.keys())
def test_each_play_becomes_one_row_and_other_sound_none(heard: Heard, parts: list[Part]) -> None:
    heard.hear(samples(*parts, Part(TALK, 10)), 0)
    assert agrees(heard.aired(), parts), heard.aired()


def test_track_that_plays_is_followed_without_asking_the_matcher(heard: Heard) -> None:
    heard.hear(samples(SONG[3]), 0)
    assert agrees(heard.aired(), [SONG[3]])
    assert heard.asked <= 2


def test_airing_continues_when_quieter_and_under_a_voice(heard: Heard) -> None:
    mixed = samples(SONG[3]).astype(np.float64) * 0.6
    voice = talk(12, 7)[::2] * 0.25
    start = 14 * SAMPLE_RATE
    mixed[start : start + len(voice)] += voice
    heard.hear(mixed.astype(np.int16), 0)
    assert agrees(heard.aired(), [SONG[3]]), heard.aired()


@pytest.mark.parametrize("away", [2, 6, 12])
def test_airing_survives_a_drop_out(heard: Heard, away: int) -> None:
    whole = samples(Part(TALK, 10), SONG[3], Part(TALK, 15))
    cut = 24 * SAMPLE_RATE
    heard.hear(whole[:cut], 0)
    heard.hear(whole[cut + away * SAMPLE_RATE :], 24 + away)
    assert agrees(heard.aired(), [Part(TALK, 10), SONG[3]]), heard.aired()


def test_seconds_repeated_after_a_reconnect_do_not_lengthen_an_airing(heard: Heard) -> None:
    whole = samples(SONG[3], Part(TALK, 15))
    heard.hear(whole[: 20 * SAMPLE_RATE], 0)
    heard.hear(whole[16 * SAMPLE_RATE :], 17.2)  # what was on the air at 16 is taken for 17.2
    assert agrees(heard.aired(), [SONG[3]]), heard.aired()


def test_airing_that_a_pause_interrupts_is_one_row_and_no_longer_than_its_file(heard: Heard) -> None:
    whole = samples(SONG[5], Part(TALK, 15))
    cut = 18 * SAMPLE_RATE
    heard.hear(whole[:cut], 0)
    heard.hear(whole[cut:], 18 + 9)
    [(song, start, seconds)] = heard.aired()
    assert (song, abs(start) <= 2, 33 - 3 <= seconds <= 33) == (5, True, True)


@pytest.mark.parametrize("dies_at", [4, 13, 21, 35, 41])
def test_another_worker_continues_from_the_written_rows(heard: Heard, dies_at: int) -> None:
    parts = [SONG[1], SONG[4], Part(TALK, 15)]
    whole = samples(*parts)
    heard.hear(whole[: dies_at * SAMPLE_RATE], 0)
    heard.other_worker()
    heard.hear(whole[(dies_at + 5) * SAMPLE_RATE :], dies_at + 5)
    assert agrees(heard.aired(), parts), heard.aired()


LATE = [Part(TALK, 12), Part(3, 28, 10), Part(TALK, 12)]


@pytest.mark.parametrize("what", ["its worker is killed", "the stream is away"])
@pytest.mark.parametrize("known_for", [7.6, 9, 11])
def test_unrecognised_song_that_began_late_starts_at_its_first_sound(heard: Heard, known_for: float, what: str) -> None:
    whole, cut = samples(*LATE), round((12 + known_for) * SAMPLE_RATE)
    heard.hear(whole[:cut], 0, is_killed=what == "its worker is killed")
    if what == "its worker is killed":
        heard.other_worker()
    heard.hear(whole[cut + 5 * SAMPLE_RATE :], cut / SAMPLE_RATE + 5)
    assert agrees(heard.aired(), LATE), heard.aired()


def test_repeat_unknown_when_its_worker_was_killed_is_its_own_airing(heard: Heard) -> None:
    parts = [SONG[4], SONG[4], Part(TALK, 12)]
    whole = samples(*parts)
    heard.hear(whole[: 35 * SAMPLE_RATE], 0, is_killed=True)
    assert len(heard.aired()) == 1
    heard.other_worker()
    heard.hear(whole[40 * SAMPLE_RATE :], 40)
    assert agrees(heard.aired(), parts), heard.aired()


def test_items_like_another_song_by_chance_do_not_move_its_start(heard: Heard) -> None:
    before, at = samples(SONG[1]), 17 * SAMPLE_RATE
    alike = samples(Part(3, 4, 7))  # the song that would play there if the next one had begun on time
    before[at : at + len(alike)] = alike
    parts = [SONG[1], Part(3, 18, 20), Part(TALK, 12)]
    heard.hear(np.concatenate([before, samples(*parts[1:])]), 0)
    assert agrees(heard.aired(), parts), heard.aired()


def test_trace_of_another_worker_is_ignored_when_the_stream_plays_something_else(heard: Heard) -> None:
    heard.hear(samples(*LATE)[: 21 * SAMPLE_RATE], 0, is_killed=True)
    heard.other_worker()
    heard.hear(samples(Part(5, 22, 11), Part(3, 25, 13), Part(TALK, 12)), 32)
    assert agrees(heard.aired(), [Part(TALK, 21), SONG[5], Part(3, 25, 13)]), heard.aired()


def test_trace_of_another_worker_expires(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker, "_TRACED_MS", 2_000)
    whole = samples(*LATE)
    heard.hear(whole[: 21 * SAMPLE_RATE], 0, is_killed=True)
    heard.other_worker()
    heard.hear(whole[26 * SAMPLE_RATE :], 26)
    [(song, start, _)] = heard.aired()
    assert (song, abs(start - 12) > 2) == (3, True), "only its anchor identifies it"


def test_play_that_began_without_a_monitor_starts_at_its_anchor(heard: Heard) -> None:
    parts = [SONG[2], SONG[3], Part(TALK, 12)]
    whole = samples(*parts)
    heard.hear(whole[: 20 * SAMPLE_RATE], 0)
    heard.hear(whole[32 * SAMPLE_RATE :], 32)
    assert agrees(heard.aired(), parts), heard.aired()


def test_airing_claims_no_time_before_its_stream_was_monitored(heard: Heard) -> None:
    heard.hear(samples(Part(3, 18, 20), Part(TALK, 10)), 0)
    [(song, start, seconds)] = heard.aired()
    assert (song, abs(start) <= 2, abs(seconds - 18) <= 3) == (3, True, True)


def test_lost_sound_moves_the_place_but_makes_no_other_airing(heard: Heard) -> None:
    whole = samples(SONG[3], Part(TALK, 12))
    lost = np.concatenate([whole[: 15 * SAMPLE_RATE], whole[16 * SAMPLE_RATE :]])
    heard.hear(lost, 0)
    [(song, start, seconds)] = heard.aired()
    assert (song, abs(start) <= 2, abs(seconds - 37) <= 3) == (3, True, True)


def test_fingerprint_of_the_beginning_alone_is_enough_unless_something_else_begins(heard: Heard) -> None:
    def short(recording_id: int) -> list[Reference]:
        return [replace(one, stored=one.stored[: 9 * 8]) for one in whole_references(recording_id)]

    whole_references = heard.catalog.find_references
    heard.catalog.find_references = short  # type: ignore[method-assign]
    parts = [SONG[3], Part(TALK, 6), Part(5, 28), SONG[4], Part(TALK, 15)]
    heard.hear(samples(*parts), 0)
    assert agrees(heard.aired(), parts), heard.aired()


def test_outage_of_the_matcher_loses_only_plays_that_end_meanwhile(heard: Heard) -> None:
    match, calls = heard.match, 0

    def failing(fingerprints: Sequence[NDArray[np.uint32]]) -> Answer:
        nonlocal calls
        calls += 1
        if calls <= 2:
            raise MatcherDownError("away", 1)
        return match(fingerprints)

    heard.match = failing
    whole, look = samples(SONG[5], Part(TALK, 10)), heard.tracker.look

    def tolerant(buffer: object, clock: object) -> None:
        with suppress(MatcherDownError):
            look(buffer, clock)  # type: ignore[arg-type]

    heard.tracker.look = tolerant  # type: ignore[method-assign]
    heard.hear(whole, 0)
    assert agrees(heard.aired(), [SONG[5]]), heard.aired()


def test_airing_ends_also_when_nothing_is_heard_any_more(heard: Heard) -> None:
    heard.hear(samples(Part(3, 20)), 0)
    [row] = heard.rows()
    assert row.ended_at is None
    heard.tracker.end_overdue_play(heard.tracker.listened_ms + 10_000)
    assert heard.rows()[0].ended_at is None
    heard.tracker.end_overdue_play(heard.tracker.listened_ms + 60_000)
    [row] = heard.rows()
    assert row.ended_at is not None
    assert abs(row.duration_seconds - 20) <= 3


def test_recording_unknown_to_the_catalog_makes_no_airing(heard: Heard) -> None:
    heard.catalog.find_track = lambda _recording_id: None  # type: ignore[method-assign]
    heard.hear(samples(SONG[1]), 0)
    assert heard.rows() == []


def test_airing_keeps_the_names_of_its_time(heard: Heard) -> None:
    heard.hear(samples(SONG[2], Part(TALK, 10)), 0)
    [row] = heard.rows()
    assert (row.title, row.artist, row.isrc, row.track_seconds) == ("Song 2", "Artist 2", "QZAAA2600002", 22)
    assert 0.8 < row.confidence <= 1
    assert row.detection_count >= 3
    assert {column.name for column in airing.columns} == set(row._mapping)


def faded(first: Part, second: Part, seconds: float) -> NDArray[np.int16]:
    """Return two parts with a cross-fade of `seconds` between them, then talk."""
    one, other, count = samples(first).astype(np.float64), samples(second).astype(np.float64), round(seconds * SAMPLE_RATE)
    rising = np.sin(np.linspace(0, np.pi / 2, count))
    mixed = one[-count:] * rising[::-1] + other[:count] * rising
    return np.concatenate([one[:-count], mixed, other[count:], samples(Part(TALK, 12))]).clip(-32768, 32767).astype(np.int16)


@pytest.mark.parametrize("second", [5, 3], ids=["another", "the same again"])
def test_cross_fade_overlaps_two_airings(heard: Heard, second: int) -> None:
    heard.hear(faded(SONG[3], SONG[second], 6.5), 0)
    assert agrees(heard.aired()[:1], [SONG[3]]), heard.aired()
    assert agrees([(song, start - 31.5, seconds) for song, start, seconds in heard.aired()[1:]], [SONG[second]]), heard.aired()


def test_play_that_begins_late_after_another_starts_at_its_first_sound(heard: Heard) -> None:
    parts = [Part(3, 30), Part(5, 28, 5), Part(TALK, 12)]
    heard.hear(samples(*parts), 0)
    assert agrees(heard.aired(), parts), heard.aired()


@pytest.mark.parametrize("back", [20, 3600])
@pytest.mark.parametrize("when", ["while a song plays", "between two workers", "in talk after a song"])
def test_clock_set_back_loses_no_airing_and_counts_none_twice(heard: Heard, when: str, back: int) -> None:
    parts = [SONG[1], SONG[3], Part(TALK, 35), SONG[2], SONG[4], Part(TALK, 15)]
    whole = samples(*parts)
    if when == "between two workers":
        cut = 45 * SAMPLE_RATE
        heard.hear(whole[:cut], 0, is_killed=True)
        heard.other_worker()
        heard.hear(whole[cut:], 45 - back)
    else:
        heard.hear(whole, 0, set_back=(45 if when == "while a song plays" else 100, back))
    # In the order of the rows, not of the times: those overlap now.
    aired = [
        (row.recording_id, row.duration_seconds, row.ended_at is not None) for row in sorted(heard.rows(), key=lambda row: row.airing_id)
    ]
    lengths = [(song, round(LENGTHS[song])) for song in (1, 3, 2, 4)]
    assert [one[0] for one in aired] == [one[0] for one in lengths], aired
    assert all(abs(one[1] - two[1]) <= 3 and one[2] for one, two in zip(aired, lengths, strict=True)), aired
    [last] = [start for song, start, _ in heard.aired() if song == 4]
    assert abs(last - (30 + 38 + 35 + 22 - back)) <= 2
