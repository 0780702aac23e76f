from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from genre_rules import load_book
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump

if TYPE_CHECKING:
    from pathlib import Path

HEADING = "suggestion_id,entity_kind,entity_id,genre_id\n"


def staged(tmp_path: Path, **files: str) -> Path:
    dump, folder = tmp_path / "dump", tmp_path / "staged"
    dump.mkdir()
    for name, text in files.items():
        (dump / f"{name}.csv").write_text(text, encoding="utf-8")
    stage_dump("suggestions", dump, folder)
    return folder


def rows(folder: Path, table: str, *columns: str) -> list[tuple[object, ...]]:
    return read_table(TABLES[table], folder / table).select(columns).rows()


def test_suggestions_are_staged_with_normal_ids_and_invalid_ones_are_rejected(tmp_path: Path) -> None:
    folder = staged(
        tmp_path,
        a=HEADING
        + "1,recording,0044,101\n2,isrc,gb-aye-00-00001,16\n3,artist,7,1\n"
        + "3,artist,8,1\n4,label,7,1\n5,recording,x,1\n6,isrc,GB,1\n7,artist,9,99999\n",
        b="note,genre_id,entity_id,suggestion_id,entity_kind\nfine,2,12,8,recording\nno id,2,12,,recording\n",
    )
    assert rows(folder, "source_suggestion", "suggestion_id", "entity_kind", "entity_id", "genre_id") == [
        ("1", "recording", "44", 101),
        ("2", "isrc", "GBAYE0000001", 16),
        ("3", "artist", "7", 1),
        ("8", "recording", "12", 2),
    ]
    assert sorted(rows(folder, "reject", "reason", "value", "place")) == [
        ("duplicate_id", "3", "record 4"),
        ("invalid_id", "x", "record 6"),
        ("invalid_isrc", "GB", "record 7"),
        ("missing_id", "suggestion_id", "record 2"),
        ("unknown_genre", "99999", "record 8"),
        ("unknown_kind", "label", "record 5"),
    ]


def test_genres_may_be_named_in_any_case_and_a_number_beside_the_name_decides(tmp_path: Path) -> None:
    heading = "suggestion_id,entity_kind,entity_id,genre,genre_id\n"
    folder = staged(
        tmp_path, a=heading + "1,recording,4,acid HOUSE,\n2,recording,5,Acid House,1\n3,recording,6,Acid Horse,\n4,recording,6,,\n"
    )
    acid_house = load_book().taxonomy.by_name["Acid House"].id
    assert rows(folder, "source_suggestion", "suggestion_id", "genre_id") == [("1", acid_house), ("2", 1)]
    assert sorted(rows(folder, "reject", "reason", "value", "record_id")) == [
        ("unknown_genre", "", "4"),
        ("unknown_genre", "Acid Horse", "3"),
    ]


def test_a_file_without_suggestions_is_a_good_dump(tmp_path: Path) -> None:
    assert rows(staged(tmp_path, a=HEADING), "source_suggestion", "suggestion_id") == []


@pytest.mark.parametrize(
    ("files", "message"), [({}, "no \\*.csv file"), ({"a": "id,genre\n"}, "a.csv: no column suggestion_id, entity_kind")]
)
def test_a_dump_of_another_shape_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(DumpError, match=message):
        staged(tmp_path, **files)
