from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.linkage.number_sets import NumberOrder, NumberSet

if TYPE_CHECKING:
    from pathlib import Path

numbers = st.lists(st.integers(0, 200))


@given(numbers, numbers, st.integers(0, 400))
def test_set_holds_what_was_added(first: list[int], second: list[int], limit: int) -> None:
    held = NumberSet(201)
    held.add(np.array(first, np.int64))
    held.add(np.array(second, np.int64))
    asked = np.arange(limit)
    assert held.find_members(asked).tolist() == [number in {*first, *second} for number in asked]
    assert held.count() == len({*first, *second})


def test_order_counts_the_smaller_numbers(tmp_path: Path) -> None:
    held = NumberSet(1_000)
    held.add(np.arange(0, 1_000, 7))
    held.write_order(tmp_path / "order")
    asked = np.array([999, 0, 1, 7, 8, 63, 64, 65, 640])
    assert NumberOrder(tmp_path / "order").count_smaller(asked).tolist() == [-(-number // 7) for number in asked]
