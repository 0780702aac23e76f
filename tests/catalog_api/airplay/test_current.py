"""What aired recordings are called now, remembered within a snapshot and no longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_api.airplay import current
from catalog_api.airplay.current import Named, Names
from catalog_store.errors import CatalogClosedError
from catalog_store.reader import open_catalog
from tests.contract.awkward import MERGED, RETIRED, isrc, publish_both

if TYPE_CHECKING:
    from pathlib import Path


def test_names_are_the_snapshots_merged_ids_followed(tmp_path: Path) -> None:
    publish_both(tmp_path / "catalog", tmp_path / "tables")
    names, first_build, second_build = Names(), *(tmp_path / "catalog" / "snapshots" / build for build in ("first", "second"))
    midnight = Named(1, isrc(1), "Midnight Running", "The Velvet Foxes")
    with open_catalog(first_build) as catalog:
        before = names.of(catalog, [1, MERGED, RETIRED, 5_000_000])
        assert before[1] == midnight
        assert set(before) == {1, MERGED, RETIRED}
        assert before[MERGED].track_id == MERGED
    assert names.of(catalog, [1, MERGED]) == {1: before[1], MERGED: before[MERGED]}, "a closed catalog reads nothing"
    with pytest.raises(CatalogClosedError):
        names.of(catalog, [1, 2])
    with open_catalog(second_build) as catalog:
        assert names.of(catalog, [1, MERGED, RETIRED]) == {1: midnight, MERGED: midnight}


def test_names_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "MOST_NAMES", 3)
    publish_both(tmp_path / "catalog", tmp_path / "tables")
    names = Names()
    with open_catalog(tmp_path / "catalog") as catalog:
        for number in range(1, 13):
            assert set(names.of(catalog, [number])) == {number}
            assert len(names._known) <= 3
