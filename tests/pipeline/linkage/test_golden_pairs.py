from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.linkage.golden_pairs import GoldenPairError, build_golden_records, judge, load_golden_pairs

if TYPE_CHECKING:
    from pathlib import Path

PAIR = """sources:
  own: {file: ours, licence: ours}
pairs:
  - name: one
    same: true
    why: because
    source: own
    a: {platform: streamsvc_a, title: Song, artists: [Artist], seconds: 200}
    b: {platform: catalog_a, title: Song, artists: [Artist], seconds: 201, isrc: GBABC2100001}
"""


def all_in_one(records: pl.DataFrame) -> pl.DataFrame:
    return records.select("platform", "external_id", recording_id=pl.lit(1))


def all_apart(records: pl.DataFrame) -> pl.DataFrame:
    return records.select("platform", "external_id").with_row_index("recording_id")


def test_every_shipped_pair_names_its_source_and_reason() -> None:
    pairs = load_golden_pairs()
    assert len(pairs) >= 150
    assert sum(not pair.is_same for pair in pairs) >= 60
    assert {pair.licence for pair in pairs} <= {"MIT", "CC0-1.0", "facts", "the project's own"}
    assert all(pair.why for pair in pairs)


def test_no_pair_contradicts_another() -> None:
    judged: dict[frozenset[str], set[bool]] = {}
    for pair in load_golden_pairs():
        judged.setdefault(frozenset(str(record) for record in pair.records), set()).add(pair.is_same)
    assert [records for records, answers in judged.items() if len(answers) > 1] == []


def test_linkage_answers_the_golden_pairs() -> None:
    result = judge(load_golden_pairs())
    assert result.precision >= 0.98, result.wrong
    assert result.recall >= 0.93, result.wrong


def test_linkage_that_joins_everything_fails_on_the_pairs_of_two_recordings() -> None:
    pairs = load_golden_pairs()
    result = judge(pairs, all_in_one)
    assert result.recall == 1.0
    assert result.precision == sum(pair.is_same for pair in pairs) / len(pairs)
    assert set(result.wrong) == {pair.name for pair in pairs if not pair.is_same}


def test_linkage_that_joins_nothing_fails_on_the_pairs_of_one_recording() -> None:
    pairs = load_golden_pairs()
    result = judge(pairs, all_apart)
    assert (result.precision, result.recall) == (1.0, 0.0)
    assert set(result.wrong) == {pair.name for pair in pairs if pair.is_same}
    assert result.wrong["jump-van-halen-remaster"] == "is one recording, was kept apart"


def test_pair_becomes_two_rows_of_staging(tmp_path: Path) -> None:
    (tmp_path / "pairs.yaml").write_text(PAIR)
    rows = build_golden_records(load_golden_pairs(tmp_path / "pairs.yaml")).to_dicts()
    assert [row["external_id"] for row in rows] == ["one/a", "one/b"]
    assert [row["duration_ms"] for row in rows] == [200_000, 201_000]
    assert rows[1]["isrcs"] == ["GBABC2100001"]
    assert rows[0]["artists"] == [{"artist_id": "id Artist", "name": "Artist", "role": "primary"}]


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("same: true", "same: maybe", 4, "true or false"),
        ("source: own", "source: hearsay", 4, "hearsay"),
        ("why: because", "why: ''", 4, "why"),
        ("name: one", "name: One Two", 4, "hyphens"),
        ("    why: because\n", "", 4, "missing keys ['why']"),
        ("platform: streamsvc_a", "platform: radio", 8, "radio"),
        ("[Artist], seconds: 200", "Artist, seconds: 200", 8, "list of names"),
        ("seconds: 200", "seconds: -1", 8, "above 0"),
        ("title: Song, artists: [Artist], seconds: 200", "title: 1999, artists: [Artist], seconds: 200", 8, "quotation marks"),
        ("seconds: 201", "lenght: 201", 9, "lenght"),
        ("seconds: 201", "seconds: 201, release: 99", 9, "release is 99: write text"),
        ("seconds: 201", "seconds: 201, track: first", 9, "track is 'first': write a whole number"),
        ("GBABC2100001", "GBABC21", 9, "GBABC21"),
    ],
)
def test_error_names_line_and_remedy(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    assert old in PAIR
    (tmp_path / "pairs.yaml").write_text(PAIR.replace(old, new, 1))
    with pytest.raises(GoldenPairError, match=f"pairs.yaml:{line}: ") as error:
        load_golden_pairs(tmp_path / "pairs.yaml")
    assert says in str(error.value)


def test_second_pair_of_a_name_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "pairs.yaml").write_text(PAIR + PAIR.split("pairs:\n")[1])
    with pytest.raises(GoldenPairError, match=r"pairs\.yaml:10: .*'one'"):
        load_golden_pairs(tmp_path / "pairs.yaml")


def test_file_that_is_not_yaml_is_rejected_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "pairs.yaml").write_text("sources: {own: [}")
    with pytest.raises(GoldenPairError, match="line 1"):
        load_golden_pairs(tmp_path / "pairs.yaml")
