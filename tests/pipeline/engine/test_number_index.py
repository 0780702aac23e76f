from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline.engine.number_index import NumberIndex
from tests.rotten_files import rot

if TYPE_CHECKING:
    from pathlib import Path

WRITERS = 3


def numbers(places: pl.Series) -> pl.Series:
    return places.hash(7)


def build(folder: Path, parts: int, places: list[int]) -> NumberIndex:
    """Return an index of the numbers of `places`, each with its place and its square, from several writers."""
    index = NumberIndex(folder, ("place", "square"), parts)
    for writer in range(WRITERS):
        rows = pl.DataFrame({"place": places[writer::WRITERS]}, schema={"place": pl.Int64}).with_columns(square=pl.col("place") ** 2)
        index.add(writer, numbers(rows["place"]), rows)
    for part in range(parts):
        index.seal(part)
    return index


@pytest.mark.parametrize("parts", [1, 2, 7, 500])
def test_join_finds_the_rows_of_all_parts_in_their_order(tmp_path: Path, parts: int) -> None:
    index = build(tmp_path, parts, list(range(100)))
    # Some of a thousand unknown numbers are after the last entry of a part.
    rows = pl.DataFrame({"wanted": [7, 250, 0, 99, 7, 100, 42, *range(200, 1200)]})
    found = index.join(rows, pl.col("wanted").hash(7))
    expected = pl.DataFrame({"wanted": [7, 0, 99, 7, 42], "place": [7, 0, 99, 7, 42], "square": [49, 0, 9801, 49, 1764]})
    assert_frame_equal(found, expected)


def test_an_index_without_entries_finds_nothing(tmp_path: Path) -> None:
    index = build(tmp_path, 2, [])
    found = index.join(pl.DataFrame({"wanted": [1, 2]}), pl.col("wanted").hash(7))
    assert found.columns == ["wanted", "place", "square"]
    assert found.is_empty()
    assert index.join(found.select("wanted"), pl.col("wanted").hash(7)).is_empty()


def test_two_entries_of_one_number_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"two entries have number \d+: they are equal, or their hashes collide"):
        build(tmp_path, 1, [3, 4, 5, 3])


@pytest.mark.parametrize("places", [[], [1], list(range(100))])
@pytest.mark.parametrize("part", [0, 2])
def test_index_is_whole_until_a_part_is_damaged_or_gone(tmp_path: Path, places: list[int], part: int) -> None:
    index = build(tmp_path, 3, places)
    assert not index.is_whole(), "no checksum is kept yet"
    index.keep_checksums()
    assert index.is_whole()
    file = tmp_path / f"part-{part:05d}.npy"
    rot(file, 0.9)
    assert not index.is_whole()
    rot(file, 0.9)
    assert index.is_whole()
    file.unlink()
    assert not index.is_whole()
    with pytest.raises(FileNotFoundError):
        index.join(pl.DataFrame({"wanted": range(100)}), pl.col("wanted").hash(7))
