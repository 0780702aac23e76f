from __future__ import annotations

from audio_recognition.matching import Match, Method
from audio_recognition.timeline import Entry
from audio_recognition.timeline.sheets import COLUMNS, TrackNames, render_csv, render_cue

ENTRIES = [
    Entry(0.0, 6.04),
    Entry(6.04, 3725.5, Match(7, 0.9, 0.05, 4.0, 59), 300, [6.04]),
    Entry(3725.5, 3800.0, Match(9, 0.8, 0.3, 70.0, 59, method=Method.LANDMARKS), 7, [3660.5]),
]
NAMES = {7: TrackNames('One, "two"', "The\nFoxes"), 9: TrackNames("Three", "Salt")}


def test_csv_has_a_row_for_each_track_and_gap() -> None:
    rows = render_csv("mix.mp3", ENTRIES, NAMES.__getitem__).splitlines()
    assert rows[0] == "mix.mp3,0.0,6.0" + "," * (len(COLUMNS) - 3)
    assert rows[-1] == "mix.mp3,3725.5,3800.0,9,Three,Salt,0.8000,0.9993,landmarks,65.0"


def test_cue_sheet_has_the_tracks_in_minutes_seconds_and_frames() -> None:
    assert render_cue("mix.mp3", ENTRIES, NAMES.__getitem__).splitlines() == [
        'FILE "mix.mp3" WAVE',
        "  TRACK 01 AUDIO",
        "    TITLE \"One, 'two'\"",
        '    PERFORMER "The Foxes"',
        "    INDEX 01 00:06:03",
        "  TRACK 02 AUDIO",
        '    TITLE "Three"',
        '    PERFORMER "Salt"',
        "    INDEX 01 62:05:37",
    ]
