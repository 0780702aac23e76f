"""Columns of tracks are made once and grow with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from catalog_api.airplay.tracks import Named, Tracks, isrc


def test_a_column_grows_with_the_tracks_and_calls_once_for_each() -> None:
    tracks, called = Tracks(), []

    def title(track: Named) -> bytes:
        called.append(track.track_id)
        return track.title.encode()

    def titles(*numbers: int) -> list[bytes]:
        column: list[bytes] = tracks.column(np.array(numbers, np.int64), title, pa.binary()).to_pylist()
        return column

    assert titles() == []
    assert [tracks.add(Named(number, None, f"Song {number}", "")) for number in (7, 9)] == [0, 1]
    assert titles(1, 0, 1) == [b"Song 9", b"Song 7", b"Song 9"]
    assert tracks.add(Named(5, "GBAYE2600100", "Song 5", "")) == 2
    assert titles(2, 1) == [b"Song 5", b"Song 9"]
    assert called == [7, 9, 5]
    assert tracks.column(np.array([0, 2]), isrc, pa.string()).to_pylist() == [None, "GBAYE2600100"]
