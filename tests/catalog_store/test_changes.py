"""The history of changes survives what may be wrong with the snapshot before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_store.changes import read_history
from catalog_store.publisher import publish
from tests.catalog_store.catalog_tables import make_tables
from tests.rotten_files import rot

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("place", "is_readable"), [(0.0, False), (0.001, False), (0.01, True), (0.5, True)])
def test_damaged_database_of_the_live_snapshot_stops_no_publish(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, place: float, *, is_readable: bool
) -> None:
    tables = make_tables(tmp_path / "tables", 5)
    for name in ("first", "second"):
        snapshot = publish(tables, tmp_path / "catalog", snapshot_id=name, next_ids={"recording": 100})
    assert read_history(snapshot.folder)[0] == ["first", "second"]
    rot(snapshot.folder / "serving" / "serving.sqlite", place)
    builds, _ = read_history(snapshot.folder)
    assert builds == (["first", "second"] if is_readable else ["second"])
    assert ("is damaged" in caplog.text) is not is_readable
    assert ("so the history of changes begins again: run `verify`" in caplog.text) is not is_readable
    third = publish(tables, tmp_path / "catalog", snapshot_id="third", next_ids={"recording": 100})
    assert read_history(third.folder)[0] == [*builds, "third"]
