"""Tests of the current names of aired recordings. They are cached for one snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from catalog_api.airplay import track_names
from catalog_api.airplay.track_names import NameCache, TrackName, TrackTable
from catalog_api.airplay.track_names import isrc as isrc_of
from catalog_store.errors import CatalogClosedError
from catalog_store.reader import open_catalog
from tests.contract.awkward import MERGED, RETIRED, isrc, publish_both

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.reader import Catalog


def named(names: NameCache, catalog: Catalog, recording_ids: list[int]) -> dict[int, TrackName]:
    """By recording id; those that left the catalog are absent."""
    tracks, numbers = names.look_up(catalog, recording_ids)
    return {one: tracks[number] for one, number in zip(recording_ids, numbers.tolist(), strict=True) if number >= 0}


def test_names_follow_merged_ids_of_the_snapshot(tmp_path: Path) -> None:
    publish_both(tmp_path / "catalog", tmp_path / "tables")
    names, first_build, second_build = NameCache(), *(tmp_path / "catalog" / "snapshots" / build for build in ("first", "second"))
    midnight = TrackName(1, isrc(1), "Midnight Running", "The Velvet Foxes")
    with open_catalog(first_build) as catalog:
        before = named(names, catalog, [1, MERGED, RETIRED, 5_000_000])
        assert before[1] == midnight
        assert set(before) == {1, MERGED, RETIRED}
        assert before[MERGED].track_id == MERGED
    assert named(names, catalog, [1, MERGED]) == {1: before[1], MERGED: before[MERGED]}, "a closed catalog reads nothing"
    with pytest.raises(CatalogClosedError):
        names.look_up(catalog, [1, 2])
    with open_catalog(second_build) as catalog:
        assert named(names, catalog, [MERGED, 1, RETIRED]) == {1: midnight, MERGED: midnight}
        tracks, numbers = names.look_up(catalog, [1, MERGED])
        assert (len(tracks), numbers.tolist()) == (1, [0, 0]), "what was merged is one track"


def test_name_cache_is_bounded_and_tables_in_use_stay_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(track_names, "MOST_NAMES", 3)
    publish_both(tmp_path / "catalog", tmp_path / "tables")
    names = NameCache()
    with open_catalog(tmp_path / "catalog") as catalog:
        first, numbers = names.look_up(catalog, [1])
        for number in range(1, 13):
            tracks, _ = names.look_up(catalog, [number])
            assert len(tracks) <= 3
        assert first[numbers[0]].track_id == 1


def test_column_grows_with_the_tracks_and_reads_each_once() -> None:
    tracks, called = TrackTable(), []

    def title(track: TrackName) -> bytes:
        called.append(track.track_id)
        return track.title.encode()

    def titles(*numbers: int) -> list[bytes]:
        column: list[bytes] = tracks.build_column(np.array(numbers, np.int64), title, pa.binary()).to_pylist()
        return column

    assert titles() == []
    assert [tracks.add(TrackName(number, None, f"Song {number}", "")) for number in (7, 9)] == [0, 1]
    assert titles(1, 0, 1) == [b"Song 9", b"Song 7", b"Song 9"]
    assert tracks.add(TrackName(5, "GBAYE2600100", "Song 5", "")) == 2
    assert titles(2, 1) == [b"Song 5", b"Song 9"]
    assert called == [7, 9, 5]
    assert tracks.build_column(np.array([0, 2]), isrc_of, pa.string()).to_pylist() == [None, "GBAYE2600100"]
