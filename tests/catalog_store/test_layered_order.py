from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalog_store import layered_order
from catalog_store.layered_order import ABSENT, compare_orders

if TYPE_CHECKING:
    import pytest


def test_orders_are_compared_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layered_order, "ITEMS_PER_BLOCK", 7)
    chance = np.random.default_rng(3)
    ids, base_ids = (chance.permutation(np.arange(1, 201, dtype=np.uint32))[:size] for size in (150, 170))
    keys, base_keys = (chance.integers(0, 3, size=len(found), dtype=np.uint64) for found in (ids, base_ids))
    found = compare_orders(ids, keys, base_ids, base_keys)
    place_of = {(number, key): place for place, (number, key) in enumerate(zip(base_ids.tolist(), base_keys.tolist(), strict=True))}
    expected = [place_of.get(item, int(ABSENT)) for item in zip(ids.tolist(), keys.tolist(), strict=True)]
    assert found.base_numbers.tolist() == expected
    assert np.flatnonzero(~found.dead).tolist() == sorted({*expected} - {int(ABSENT)})
