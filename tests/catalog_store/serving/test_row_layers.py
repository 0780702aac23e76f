"""Tests that rows of a base and a delta are read as those of a file that is written anew."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from catalog_store.serving import row_layers
from catalog_store.serving.row_layers import connect_rows
from catalog_store.serving.schema import BASE_FILE, FILE_NAME, ROW_KEYS
from tests.catalog_store.catalog_tables import MERGED_ID, add_recording_like, make_frames
from tests.catalog_store.serving.published_rows import RECORDINGS, publish_rows

if TYPE_CHECKING:
    from pathlib import Path

    from tests.catalog_store.serving.published_rows import Rows


def read_rows(serving: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(connect_rows(serving)) as file:
        return {table: sorted(file.execute(f"SELECT * FROM {table}")) for table in (*ROW_KEYS, "genre")}


def change_rows(rows: Rows, chance: random.Random, night: int) -> None:
    """Rename artists, move works and popularities, add and remove redirects and retired ids."""
    named = chance.choice(rows["artist"])
    named["name"] = f"Renamed {night}"
    chance.choice(rows["label"])["name"] = f"Label of night {night}"
    chance.choice(rows["work_recording"])["recording_id"] = chance.randrange(6, RECORDINGS)
    chance.choice(rows["recording"][:5])["popularity"] = chance.random()
    rows["work"].append({"iswc": f"T00000002{night}0", "title": f"Work of night {night}"})
    if night % 2:
        rows["work"] = [work for work in rows["work"] if work["iswc"] != "T9000000008"]
        rows["work_conflict"].clear()
    rows["redirect"] = [row for row in rows["redirect"] if row["old_id"] != MERGED_ID or chance.random() < 0.5]
    rows["redirect"].append({"kind": "label", "old_id": 700 + night, "new_id": 1})
    rows["external_redirect"].append({"source": "store_a", "old_id": f"{night}", "new_id": f"9{night}"})
    rows["external_redirect"].remove(chance.choice(rows["external_redirect"]))
    add_recording_like(rows, RECORDINGS + night + 1, chance.randrange(1, RECORDINGS))


@pytest.mark.parametrize(
    ("merged_at", "builds"), [(10.0, 3), pytest.param(10.0, 5, marks=pytest.mark.slow), pytest.param(0.0, 5, marks=pytest.mark.slow)]
)
def test_rows_of_nights_are_those_of_a_file_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merged_at: float, builds: int
) -> None:
    monkeypatch.setattr(row_layers, "MERGED_AT", merged_at)
    rows, chance = make_frames(RECORDINGS, 1), random.Random(3)  # noqa: S311 - test data
    for night in range(builds):
        tonight = publish_rows(tmp_path / "nights", rows, f"night-{night}") / "serving"
        anew = publish_rows(tmp_path / "anew", rows, f"night-{night}", anew=True) / "serving"
        assert read_rows(tonight) == read_rows(anew)
        change_rows(rows, chance, night)
    assert ((tonight / BASE_FILE).stat().st_nlink == builds) == (merged_at == 10.0)


def test_unchanged_rows_leave_the_delta_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_layers, "MERGED_AT", 10)
    first, second = (publish_rows(tmp_path, make_frames(RECORDINGS, 1), name) / "serving" for name in ("first", "second"))
    assert (first / BASE_FILE).samefile(second / BASE_FILE)
    with closing(sqlite3.connect(second / FILE_NAME)) as file:
        assert [file.execute(f"SELECT count(*) FROM {start}{table}").fetchone() for table in ROW_KEYS for start in ("", "gone_")] == [
            (0,)
        ] * 2 * len(ROW_KEYS)


def test_damaged_base_or_another_format_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_layers, "MERGED_AT", 10)
    rows = make_frames(RECORDINGS, 1)
    file = publish_rows(tmp_path, rows, "first") / "serving" / BASE_FILE
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    second = publish_rows(tmp_path, rows, "second") / "serving"
    assert (second / BASE_FILE).read_bytes() == content
    monkeypatch.setattr(row_layers, "FORMAT_VERSION", 99)
    third = publish_rows(tmp_path, rows, "third") / "serving"
    assert not (third / BASE_FILE).samefile(second / BASE_FILE)
