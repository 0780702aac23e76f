"""Tests of linkage on hand-made situations of real life: docs/design/recordings.md says what is one recording."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from pipeline.paths import BuildPaths
from tests.pipeline.linkage.real_situations import PARTS, Situation, link_heard_situations, link_situations, load_situations

if TYPE_CHECKING:
    from pathlib import Path

THEMES = ("release_tracks", "dirty_fields", "names", "codes", "versions", "fresh")
OPEN = {
    "fod-with-its-hidden-song": "a title of three letters is too short to be found in a longer one",
    "planets-with-heading-and-without": "the heading above a movement is read for tempo words only",
    "live-rust-marked-once": "the concert and the studio take have one name and length, and atoms do not read albums",
    "most-beautiful-girl-of-a-symbol": "an alias of one letter proves nothing; real records of catalog_b have the id of the artist",
    "kaze-wo-atsumete": "an English name in kana sounds less like English than the limit asks",
    "bodak-yellow-flags-on-one-platform": "atoms read neither the flag nor the title of the release",
    "corduroy-two-nights-by-album": "two codes at one length may be one take of a bare `Live`",
    "rock-of-ages-recorded-again": "a version word on one side only separates, although the year in the title says the same",
    "nocturne-no-2-in-two-notations": "the number of a piece is in the opus on one side and before it on the other",
    "pathetique-adagio-notations": "a nickname on one side only, and another lead artist",
    "eroica-movement-bare-number": "`Major` on one side only, and another lead artist",
}
"""Situations that linkage answers otherwise, each with the reason."""
OPEN_AUDIO = {
    "take-five-two-performances-of-one-length": "audio never parts the records of one atom",
    "hound-dog-typing-error-and-equal-audio": "both ends of the title are damaged, and audio is compared under one end at least",
}


def list_wrong(situations: list[Situation], found: dict[str, set[frozenset[str]]]) -> set[str]:
    """Return the names of the situations with other groups."""
    return {situation.name for situation in situations if found[situation.name] != situation.groups}


def test_linkage_answers_real_situations_but_for_the_open_ones() -> None:
    situations = load_situations(*THEMES)
    assert list_wrong(situations, link_situations(situations)) == set(OPEN)


@pytest.mark.parametrize("order", list(permutations(range(6)))[119::240])
def test_answers_do_not_depend_on_the_order_of_ids(order: tuple[int, ...]) -> None:
    codes = load_situations("codes")
    assert link_situations(codes, order) == link_situations(codes)


def test_audio_answers_real_situations_but_for_the_open_ones(tmp_path: Path) -> None:
    heard = load_situations("audio")
    assert list_wrong(heard, link_heard_situations(heard, BuildPaths(tmp_path))) == set(OPEN_AUDIO)


def test_every_situation_has_a_reason_and_a_name_of_its_own() -> None:
    situations = load_situations()
    assert len({situation.name for situation in situations}) == len(situations) >= 200
    assert all(situation.row["why"] and 1 <= situation.row["point"] <= 10 for situation in situations)
    assert {situation.part for situation in situations} == set(PARTS)
