"""What aired recordings are called now, remembered within a snapshot and no longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_api.airplay import current
from catalog_api.airplay.current import Names
from catalog_api.airplay.tracks import Named
from catalog_store.errors import CatalogClosedError
from catalog_store.reader import open_catalog
from tests.contract.awkward import MERGED, RETIRED, isrc, publish_both

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.reader import Catalog


def named(names: Names, catalog: Catalog, recording_ids: list[int]) -> dict[int, Named]:
    """By recording id; those that left the catalog are absent."""
    tracks, numbers = names.of(catalog, recording_ids)
    return {one: tracks[number] for one, number in zip(recording_ids, numbers.tolist(), strict=True) if number >= 0}


def test_names_are_the_snapshots_merged_ids_followed(tmp_path: Path) -> None:
    publish_both(tmp_path / "catalog", tmp_path / "tables")
    names, first_build, second_build = Names(), *(tmp_path / "catalog" / "snapshots" / build for build in ("first", "second"))
    midnight = Named(1, isrc(1), "Midnight Running", "The Velvet Foxes")
    with open_catalog(first_build) as catalog:
        before = named(names, catalog, [1, MERGED, RETIRED, 5_000_000])
        assert before[1] == midnight
        assert set(before) == {1, MERGED, RETIRED}
        assert before[MERGED].track_id == MERGED
    assert named(names, catalog, [1, MERGED]) == {1: before[1], MERGED: before[MERGED]}, "a closed catalog reads nothing"
    with pytest.raises(CatalogClosedError):
        names.of(catalog, [1, 2])
    with open_catalog(second_build) as catalog:
        assert named(names, catalog, [MERGED, 1, RETIRED]) == {1: midnight, MERGED: midnight}
        tracks, numbers = names.of(catalog, [1, MERGED])
        assert (len(tracks), numbers.tolist()) == (1, [0, 0]), "what was merged is one track"


def test_names_are_bounded_and_those_that_were_handed_out_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "MOST_NAMES", 3)
    publish_both(tmp_path / "catalog", tmp_path / "tables")
    names = Names()
    with open_catalog(tmp_path / "catalog") as catalog:
        first, numbers = names.of(catalog, [1])
        for number in range(1, 13):
            tracks, _ = names.of(catalog, [number])
            assert len(tracks) <= 3
        assert first[numbers[0]].track_id == 1
