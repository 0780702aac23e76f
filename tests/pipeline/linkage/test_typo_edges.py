"""Blocking for typing errors finds every pair that can match, with few comparisons."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.linkage import typo_edges
from pipeline.linkage.guards import TYPO_DURATION_MS, Letters, is_typo
from pipeline.linkage.typo_edges import _find_close_pairs
from tests.pipeline.linkage.worlds import Records

titles = st.text(st.sampled_from("abcdeé京ん"), max_size=30)


@given(st.lists(st.tuples(titles, st.lists(st.tuples(st.sampled_from("sidx"), st.integers(0, 29), st.sampled_from("abz京")), max_size=4))))
@example([("abcde", [("s", 4, "z")]), ("abcdeabcdezz", [("d", 11, "z"), ("d", 10, "z")])])
def test_letters_rule_out_no_typing_error(cases: list[tuple[str, list[tuple[str, int, str]]]]) -> None:
    texts = []
    for text, edits in cases:
        changed = text
        for kind, place, letter in edits:
            before, at, behind = changed[:place], changed[place : place + 1], changed[place + 1 :]
            changed = {
                "s": before + letter + behind,
                "i": before + letter + at + behind,
                "d": before + behind,
                "x": before + behind[:1] + at + behind[1:],
            }[kind]
        texts += [text, changed]
    one, other = np.arange(0, len(texts), 2), np.arange(1, len(texts), 2)
    series = pl.Series(texts, dtype=pl.String)
    may_be = Letters.of(series).can_be_typos(one, other)
    assert not (is_typo(series[one], series[other]).to_numpy() & ~may_be).any()


@pytest.mark.parametrize("largest", [3, 400])
@given(rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5 * TYPO_DURATION_MS)), max_size=25))
def test_close_pairs_equal_all_pairs_of_a_block_with_close_durations(largest: int, rows: list[tuple[int, int]]) -> None:
    blocked = pl.DataFrame(
        {"atom_id": range(len(rows)), "block": [row[0] for row in rows], "duration_ms": [row[1] for row in rows]},
        schema={"atom_id": pl.Int64, "block": pl.UInt64, "duration_ms": pl.Int32},
    )
    slots = [(block, duration // TYPO_DURATION_MS) for block, duration in rows]
    searched = [place for place in range(len(rows)) if slots.count(slots[place]) <= largest]
    expected = {
        (one, other)
        for one, other in combinations(searched, 2)
        if rows[one][0] == rows[other][0] and abs(rows[one][1] - rows[other][1]) <= TYPO_DURATION_MS
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typo_edges, "LARGEST_BLOCK", largest)
        found = _find_close_pairs(blocked)
    assert found.height == len(expected)
    assert set(found.iter_rows()) == expected


@pytest.mark.parametrize(("title", "misspelt", "is_one"), [("abcdefghi", "abczefghi", False), ("abcdefghij", "abczefghij", True)])
def test_typing_error_without_durations_needs_ten_letters(title: str, misspelt: str, is_one: bool) -> None:  # noqa: FBT001
    records = Records().add("a", title, seconds=None).add("b", misspelt, platform="store_a", seconds=None)
    assert (len(records.linked()) == 1) is is_one
    timed = Records().add("a", title).add("b", misspelt, platform="store_a")
    assert len(timed.linked()) == 1
