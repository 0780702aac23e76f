from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from catalog_store.queries.recorded_values import SourceValues, read_source_values
from tests.catalog_store.catalog_tables import write_frames

if TYPE_CHECKING:
    from pathlib import Path


def test_values_of_each_record_are_those_of_its_platform(tmp_path: Path) -> None:
    plain: dict[str, object] = {"title": "One", "version": None, "artist_credit": None, "artists": [], "isrcs": [], "duration_ms": None}
    plain |= {"release_date": None, "release_date_precision": None, "release_date_entity": None, "release_id": None}
    plain |= {"release_title": None, "label_name": None, "genres": [], "release_genres": []}
    full = plain | {"isrcs": ["GBAYE2600100"], "release_date": date(2021, 3, 1), "release_date_precision": "month"}
    full |= {"genres": ["House", "Club"], "release_genres": ["Pop", "House"], "release_id": "r1"}
    rows = [
        full | {"recording_id": 1, "platform": "store_a", "external_id": "2"},
        plain | {"recording_id": 1, "platform": "catalog_b", "external_id": "9"},
        plain | {"recording_id": 2, "platform": "store_a", "external_id": "3"},
    ]
    assert read_source_values(tmp_path, 1) == [], "a snapshot of an earlier release has no such table"
    write_frames(tmp_path, {"recording_source": rows})
    assert read_source_values(tmp_path, 1) == [
        SourceValues("catalog_b", "9", "One", None, None, [], None, None, None, None, None, []),
        SourceValues("store_a", "2", "One", None, None, ["GBAYE2600100"], None, "2021-03", "r1", None, None, ["House", "Club", "Pop"]),
    ]
    assert read_source_values(tmp_path, 3) == []
