"""Tests that blocking for typing errors finds every pair that can match, with few comparisons."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.linkage import typo_edges
from pipeline.linkage.guards import TYPO_DURATION_MS, Letters, is_typo
from pipeline.linkage.typo_edges import _find_close_pairs, filter_shared_titles, find_untimed_pairs
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


def test_titles_of_several_known_artists_are_shared() -> None:
    rows = [(1, "a", "one"), (2, "b", "one"), (3, "a", "two"), (4, "a", "two"), (5, "", "three"), (6, "c", "three"), (7, "", "one")]
    atoms = pl.DataFrame(rows, schema=["atom_id", "artist_key", "title_key"], orient="row")
    assert filter_shared_titles(atoms)["atom_id"].to_list() == [1, 2]


@pytest.mark.parametrize("ids", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
def test_untimed_atom_is_paired_with_every_other_of_its_block_once(ids: tuple[int, int, int]) -> None:
    untimed, timed, other = ids
    blocked = pl.DataFrame(
        [(untimed, None, 1), (timed, 200, 1), (other, 900, 1), (untimed, None, 2), (timed, 200, 2), (7, None, 3), (8, 1, 4)],
        schema={"atom_id": pl.Int64, "duration_ms": pl.Int32, "block": pl.UInt64},
        orient="row",
    )
    expected = {(min(untimed, one), max(untimed, one)) for one in (timed, other)}
    found = find_untimed_pairs(blocked)
    assert found.height == len(expected)
    assert set(found.iter_rows()) == expected


def test_untimed_atoms_of_a_block_are_paired_with_each_other() -> None:
    blocked = pl.DataFrame({"atom_id": [5, 3], "duration_ms": [None, None], "block": [1, 1]}, schema_overrides={"duration_ms": pl.Int32})
    assert find_untimed_pairs(blocked).rows() == [(3, 5)]


@pytest.mark.parametrize(("largest", "pairs"), [(1, 0), (2, 1)])
def test_untimed_pairs_leave_out_larger_blocks(monkeypatch: pytest.MonkeyPatch, largest: int, pairs: int) -> None:
    monkeypatch.setattr(typo_edges, "LARGEST_BLOCK", largest)
    blocked = pl.DataFrame({"atom_id": [5, 3], "duration_ms": [None, 1], "block": [1, 1]}, schema_overrides={"duration_ms": pl.Int32})
    assert find_untimed_pairs(blocked).height == pairs


@pytest.mark.parametrize("title", ["Blue Monday Forever (M", "Blue Monday Foreve", "Blue Monday Forever (DJ"])
def test_title_without_its_end_joins_no_title_by_name_alone(title: str) -> None:
    """Its version is missing as well: `(Mixed)`, `(DJ Mix)`."""
    records = Records().add("a", "Blue Monday Forever").add("b", title, platform="catalog_b", seconds=None)
    assert len(records.linked()) == 2


def test_title_without_its_end_joins_at_one_length() -> None:
    records = Records().add("a", "Blue Monday Forever").add("b", "Blue Monday Foreve", platform="catalog_b", seconds=201)
    assert len(records.linked()) == 1
    records = Records().add("a", "Blue Monday Forever").add("b", "Blue Monday Foreve", platform="catalog_b", seconds=203)
    assert len(records.linked()) == 2


def test_misspelt_title_without_length_joins() -> None:
    records = Records().add("a", "Blue Monday Forever").add("b", "Blue Mnday Forever", platform="catalog_b", seconds=None)
    assert len(records.linked()) == 1


@pytest.mark.parametrize(
    ("long", "short", "recordings"), [("(Time High) Love", "Love", 2), ("(I Can't Get No) Satisfaction", "Satisfaction", 1)]
)
def test_short_title_behind_a_subtitle_is_another_song(long: str, short: str, recordings: int) -> None:
    records = Records().add("a", long).add("b", short, platform="catalog_b", seconds=200.5)
    assert len(records.linked()) == recordings
