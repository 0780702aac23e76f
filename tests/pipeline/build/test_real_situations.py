"""Tests of works and artists on hand-made situations of real life (tests/pipeline/linkage/situations)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.linkage.golden_pairs import LINE
from tests.pipeline.linkage.real_situations import Situation, load_situations

from .real_situations import find_artists, find_works

if TYPE_CHECKING:
    from pathlib import Path

OPEN = {"strauss-family-name": "`Johann Strauss II` ends with a number, so the family name is not its end"}


@pytest.mark.parametrize("situation", load_situations("works"), ids=lambda situation: situation.name)
def test_recordings_get_the_works_that_rows_mean(situation: Situation, tmp_path: Path) -> None:
    right = {letter: sorted(works) for letter, works in situation.row["works"].items() if letter != LINE}
    assert find_works(situation, tmp_path) == right


@pytest.mark.parametrize("situation", load_situations("artists", "fresh_artists"), ids=lambda situation: situation.name)
def test_accounts_of_one_artist_are_one_under_the_right_name(situation: Situation, tmp_path: Path) -> None:
    groups, shown = find_artists(situation, tmp_path)
    right = {letter: name for letter, name in situation.row.get("shown", {}).items() if letter != LINE}
    is_right = groups == situation.groups and {letter: shown[letter] for letter in right} == right
    assert is_right == (situation.name not in OPEN)
