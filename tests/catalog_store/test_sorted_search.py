from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.sorted_search import search_many

numbers = st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 9), max_size=30)


@pytest.mark.parametrize("dtype", [np.uint64, np.int64])
@given(listed=numbers, wanted=numbers)
def test_numbers_in_any_order_have_the_places_of_a_plain_search(dtype: type[np.integer], listed: list[int], wanted: list[int]) -> None:
    ascending, asked = np.array(sorted(listed), dtype=dtype), np.array(wanted, dtype=dtype)
    assert search_many(ascending, asked).tolist() == np.searchsorted(ascending, asked).tolist()
    assert search_many(ascending, np.sort(asked)).tolist() == np.searchsorted(ascending, np.sort(asked)).tolist()
