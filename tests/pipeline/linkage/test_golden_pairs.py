from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.linkage.golden_pairs import (
    PAIRS,
    PARTS,
    GoldenPair,
    GoldenPairError,
    build_golden_records,
    build_golden_releases,
    judge,
    load_golden_pairs,
)
from pipeline.quality.gate import Limits
from tests.conftest import ROOT
from yaml_documents import read_document

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


@pytest.fixture(scope="module")
def pairs() -> tuple[GoldenPair, ...]:
    """Return all shipped pairs, parsed once: parsing takes 0.3 CPU seconds."""
    return load_golden_pairs()


def all_in_one(records: pl.DataFrame, **_: pl.DataFrame) -> pl.DataFrame:
    return records.select("platform", "external_id", recording_id=pl.lit(1))


def all_apart(records: pl.DataFrame, **_: pl.DataFrame) -> pl.DataFrame:
    return records.select("platform", "external_id").with_row_index("recording_id")


def test_every_shipped_pair_names_its_source_and_reason(pairs: tuple[GoldenPair, ...]) -> None:
    assert len(pairs) >= 150
    assert sum(not pair.is_same for pair in pairs) >= 60
    assert {pair.licence for pair in pairs} <= {"MIT", "CC0-1.0", "facts", "the project's own"}
    assert all(pair.why for pair in pairs)


@pytest.mark.parametrize("path", sorted(PAIRS.glob("*.yaml")), ids=lambda path: path.stem)
def test_file_describes_the_sources_that_it_uses(path: Path) -> None:
    document = read_document(path).read_plain()
    assert set(document["sources"]) == {pair["source"] for pair in document["pairs"]}


def test_source_is_described_alike_in_all_files(pairs: tuple[GoldenPair, ...]) -> None:
    described = {str(item) for path in PAIRS.glob("*.yaml") for item in read_document(path).read_plain()["sources"].items()}
    assert len(described) == len({pair.source for pair in pairs})


def test_a_third_of_the_pairs_is_for_the_test(pairs: tuple[GoldenPair, ...]) -> None:
    share = sum(pair.part == "test" for pair in pairs) / len(pairs)
    assert share == pytest.approx(1 / 3, abs=0.06)
    assert {pair.part for pair in pairs} == set(PARTS)


def test_no_pair_contradicts_another(pairs: tuple[GoldenPair, ...]) -> None:
    judged: dict[frozenset[str], set[bool]] = {}
    for pair in pairs:
        judged.setdefault(frozenset(str(record) for record in pair.records), set()).add(pair.is_same)
    assert [records for records, answers in judged.items() if len(answers) > 1] == []


def test_linkage_answers_the_golden_pairs(pairs: tuple[GoldenPair, ...]) -> None:
    result = judge(pairs)
    for part in (result, *result.parts.values()):
        assert part.precision >= Limits().golden_precision, part.wrong
        assert part.recall >= Limits().golden_recall, part.wrong


def test_page_of_decisions_names_golden_pairs_that_follow_it(pairs: tuple[GoldenPair, ...]) -> None:
    page = (ROOT / "docs" / "design" / "recordings.md").read_text()
    judged = {pair.name: pair.is_same for pair in pairs}
    rows = [row.split(" | ") for row in page.splitlines() if " | one | " in row or " | two | " in row or " | by evidence | " in row]
    assert len(rows) > 50
    for situation, decision, _, example in rows:
        named = re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", example)
        assert named, situation
        assert set(named) <= set(judged), situation
        assert decision == "by evidence" or {judged[name] for name in named} == {decision == "one"}, situation


def test_parts_add_up(pairs: tuple[GoldenPair, ...]) -> None:
    result = judge(pairs, all_in_one)
    assert sum(part.pairs for part in result.parts.values()) == result.pairs
    assert {name: error for part in result.parts.values() for name, error in part.wrong.items()} == result.wrong


def test_linkage_that_joins_everything_fails_on_the_pairs_of_two_recordings(pairs: tuple[GoldenPair, ...]) -> None:
    result = judge(pairs, all_in_one)
    assert result.recall == 1.0
    assert result.precision == sum(pair.is_same for pair in pairs) / len(pairs)
    assert set(result.wrong) == {pair.name for pair in pairs if not pair.is_same}


def test_linkage_that_joins_nothing_fails_on_the_pairs_of_one_recording(pairs: tuple[GoldenPair, ...]) -> None:
    result = judge(pairs, all_apart)
    assert (result.precision, result.recall) == (1.0, 0.0)
    assert set(result.wrong) == {pair.name for pair in pairs if pair.is_same}
    assert result.wrong["jump-van-halen-remaster"] == "is one recording, was kept apart"


def test_pair_becomes_two_rows_of_staging(tmp_path: Path) -> None:
    (tmp_path / "pairs.yaml").write_text(PAIR)
    rows = build_golden_records(load_golden_pairs(tmp_path)).to_dicts()
    assert [row["external_id"] for row in rows] == ["one/a", "one/b"]
    assert [row["duration_ms"] for row in rows] == [200_000, 201_000]
    assert rows[1]["isrcs"] == ["GBABC2100001"]
    assert rows[0]["artists"] == [{"artist_id": "id Artist", "name": "Artist", "role": "primary"}]


def test_release_of_a_record_becomes_a_row_of_staging(tmp_path: Path) -> None:
    (tmp_path / "pairs.yaml").write_text(
        PAIR.replace("seconds: 200", "seconds: 200, album: First, year: 1987, explicit: true").replace(
            "seconds: 201", "seconds: 201, album: Hits, release: r7"
        )
    )
    pairs = load_golden_pairs(tmp_path)
    records, releases = build_golden_records(pairs).to_dicts(), build_golden_releases(pairs).to_dicts()
    assert [(row["release_id"], row["release_date"], row["release_date_precision"], row["is_explicit"]) for row in records] == [
        ("one/a", "1987-01-01", "year", True),
        ("r7", None, None, None),
    ]
    assert [(row["platform"], row["release_id"], row["title"], row["release_date"]) for row in releases] == [
        ("streamsvc_a", "one/a", "First", "1987-01-01"),
        ("catalog_a", "r7", "Hits", None),
    ]


def test_records_without_album_make_no_release(tmp_path: Path) -> None:
    (tmp_path / "pairs.yaml").write_text(PAIR)
    assert build_golden_releases(load_golden_pairs(tmp_path)).is_empty()


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
        ("seconds: 201", "seconds: 201, year: 1987.5", 9, "write a whole number"),
        ("seconds: 201", "seconds: 201, year: true", 9, "write a whole number"),
        ("seconds: 201", "seconds: 201, explicit: 1", 9, "write true or false"),
        ("GBABC2100001", "GBABC21", 9, "GBABC21"),
    ],
)
def test_error_names_line_and_remedy(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    assert old in PAIR
    (tmp_path / "pairs.yaml").write_text(PAIR.replace(old, new, 1))
    with pytest.raises(GoldenPairError, match=f"pairs.yaml:{line}: ") as error:
        load_golden_pairs(tmp_path)
    assert says in str(error.value)


def test_second_pair_of_a_name_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "pairs.yaml").write_text(PAIR + PAIR.split("pairs:\n")[1])
    with pytest.raises(GoldenPairError, match=r"pairs\.yaml:10: .*'one' is taken by pairs\.yaml:4"):
        load_golden_pairs(tmp_path)


def test_name_taken_in_another_file_is_rejected(tmp_path: Path) -> None:
    for name in ("live.yaml", "covers.yaml"):
        (tmp_path / name).write_text(PAIR)
    with pytest.raises(GoldenPairError, match=r"live\.yaml:4: .*'one' is taken by covers\.yaml:4"):
        load_golden_pairs(tmp_path)


def test_file_that_is_not_yaml_is_rejected_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "pairs.yaml").write_text("sources: {own: [}")
    with pytest.raises(GoldenPairError, match="line 1"):
        load_golden_pairs(tmp_path)
