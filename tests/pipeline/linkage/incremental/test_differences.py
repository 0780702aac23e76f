"""Tests of the search for numbers on one side only, by sums and exactly."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pipeline.linkage.incremental.differences import mark_differing_sums


@pytest.mark.parametrize("changed", [0, 1, 40])
def test_sums_find_the_numbers_on_one_side_only(changed: int) -> None:
    rng = np.random.default_rng(changed)
    one = rng.integers(-(2**63), 2**63 - 1, 5_000)
    other = np.concatenate([rng.permutation(one[changed:]), rng.integers(-(2**63), 2**63 - 1, changed)])
    found = [
        set(ids[differ].tolist()) for ids, differ in zip((one, other), mark_differing_sums(pl.Series(one), pl.Series(other)), strict=True)
    ]
    assert found[0] >= set(one.tolist()) - set(other.tolist())
    assert found[1] >= set(other.tolist()) - set(one.tolist())
    assert len(found[0] | found[1]) <= 3 * changed
