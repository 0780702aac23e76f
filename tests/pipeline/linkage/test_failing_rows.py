"""Tests of work that fails on rows: the error names the row, unless no row causes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.engine.pool import map_ordered
from pipeline.linkage.failing_rows import FailingRowsError, run_on_rows

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = pl.DataFrame({"name": [f"name {number}" for number in range(37)], "group": [number // 5 for number in range(37)]})


def fails_on(*bad: str) -> Callable[[pl.DataFrame], int]:
    def work(rows: pl.DataFrame) -> int:
        if set(bad) <= set(rows["name"]):
            raise pl.exceptions.ComputeError("cannot   be read")
        return rows.height

    return work


@pytest.mark.parametrize("bad", [0, 1, 17, 36])
def test_first_failing_row_is_named_at_any_place(bad: int) -> None:
    with pytest.raises(FailingRowsError) as caught:
        run_on_rows(ROWS, fails_on(f"name {bad}"), ["name"])
    assert caught.value.named == {"name": [f"name {bad}"]}
    assert caught.value.cause == "ComputeError: cannot be read"


def test_rows_of_one_unit_are_tried_together() -> None:
    with pytest.raises(FailingRowsError) as caught:
        run_on_rows(ROWS.sample(fraction=1, shuffle=True, seed=1), fails_on("name 20", "name 24"), ["name"], "group")
    assert sorted(caught.value.named["name"]) == [f"name {number}" for number in range(20, 25)]


def test_error_of_all_rows_together_is_raised_unchanged() -> None:
    with pytest.raises(pl.exceptions.ComputeError):
        run_on_rows(ROWS, fails_on("name 1", "name 30"), ["name"])


@pytest.mark.parametrize("error", [MemoryError, OSError])
def test_error_of_the_machine_is_raised_unchanged(error: type[Exception]) -> None:
    def work(_rows: pl.DataFrame) -> None:
        raise error

    with pytest.raises(error):
        run_on_rows(ROWS, work, ["name"])


def fail_on_seven(rows: pl.DataFrame) -> int:
    return run_on_rows(rows, fails_on("name 7"), ["name"])


def test_error_keeps_its_fields_across_processes() -> None:
    with pytest.raises(FailingRowsError) as caught:
        list(map_ordered(fail_on_seven, [ROWS, ROWS], workers=2))
    assert (caught.value.named, caught.value.cause) == ({"name": ["name 7"]}, "ComputeError: cannot be read")


def test_error_names_ten_rows_of_a_unit_and_shows_three_hundred_characters() -> None:
    rows = pl.DataFrame({"unit": [1] * 3 + [2] * 12 + [3], "name": list(range(16))})

    def work(rows: pl.DataFrame) -> int:
        if 2 in rows["unit"]:
            raise ValueError("long   " + "x" * 400)
        return rows.height

    with pytest.raises(FailingRowsError) as caught:
        run_on_rows(rows, work, ("name",), "unit")
    assert caught.value.named == {"name": list(range(3, 13))}
    assert caught.value.cause == "ValueError: long " + "x" * 295
    assert run_on_rows(rows.filter(pl.col("unit") != 2), work, ("name",)) == 4
