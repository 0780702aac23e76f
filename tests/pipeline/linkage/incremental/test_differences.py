"""Tests of the search for rows on one side only, by sums and exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from pipeline.linkage.incremental import differences
from pipeline.linkage.incremental.differences import find_differing_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt


def cut(ids: npt.NDArray[np.int64]) -> Callable[[], Iterator[pl.DataFrame]]:
    """Return a reader of rows with these ids: an empty piece, and pieces of two chunks."""
    rows = pl.DataFrame({"id": ids, "text": [str(number) for number in ids]})

    def read() -> Iterator[pl.DataFrame]:
        yield rows.clear()
        for start in range(0, len(ids), 1_000):
            yield pl.concat([rows[start : start + 400], rows[start + 400 : start + 1_000]], rechunk=False)

    return read


@pytest.mark.parametrize("bits", [4, 20])
@pytest.mark.parametrize("changed", [0, 1, 40])
def test_rows_on_one_side_only_are_found_in_their_order(changed: int, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # With 4 bits, each slot holds many equal numbers besides those that differ.
    monkeypatch.setattr(differences, "SUM_BITS", bits)
    rng = np.random.default_rng(changed)
    one = rng.integers(-(2**63), 2**63 - 1, 5_000)
    fresh = rng.integers(-(2**63), 2**63 - 1, changed)
    other = np.concatenate([rng.permutation(one[changed:]), fresh])
    gone, new = find_differing_rows(cut(one), cut(other), pl.col("id"))
    assert gone.rows() == [(number, str(number)) for number in one[:changed].tolist()]
    assert new.rows() == [(number, str(number)) for number in fresh.tolist()]


def test_one_side_may_have_no_rows() -> None:
    ids = np.arange(1, 6) << 60
    gone, new = find_differing_rows(cut(ids), cut(ids[:0]), pl.col("id"))
    assert (gone["id"].to_list(), new["id"].to_list()) == (ids.tolist(), [])


def test_sums_leave_few_rows_to_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    # 40 numbers mark some 40 of 256 slots: a sixth of the rows pass one test, a fortieth pass both.
    monkeypatch.setattr(differences, "SUM_BITS", 8)
    ids = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 5_000)
    (one, other), number = (cut(ids), cut(ids[40:])), pl.col("id")
    differ = differences._sum_numbers(one, number) != differences._sum_numbers(other, number)
    assert 40 <= differences._read_marked_rows(one, number, differ).height < 300
