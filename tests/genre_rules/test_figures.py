"""Accuracy of the shipped rules on the labelled sets beside this file: traps, held-out strings, closed lists.

A failure names the wrong answers.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from genre_rules import Classifier, compile_book, load_book
from genre_rules.load import PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).parent
DANCE = {"House", "Techno", "Trance", "DnB", "Dubstep", "Breakbeat", "Garage", "Hardstyle", "Hardcore"}
MIXED_PARENTS: dict[str, set[str]] = {"Folk, World, & Country": {"Folk", "World", "Country"}, "Non-Music": set()}
"""Parents of the closed lists that are not genres of the tree themselves."""


class Asked(NamedTuple):
    platform: str
    parent: str
    string: str
    expected: set[str]
    answered: set[str]


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(compile_book(load_book()))


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ask(classifier: Classifier, platform: str, row: dict[str, str]) -> Asked:
    parent = row.get("parent", "")
    answered = set(classifier.classify(platform, row["string"], parent).mains)
    return Asked(platform, parent, row["string"], set(filter(None, row.get("mains", "").split("|"))), answered)


def share_right(answers: Iterable[Asked]) -> tuple[float, list[Asked]]:
    """Return the share of answers with exactly the expected mains, and the wrong answers."""
    answers = list(answers)
    wrong = [answer for answer in answers if answer.expected != answer.answered]
    return 1 - len(wrong) / len(answers), wrong


def test_titles_names_labels_years_places_moods_and_negations_stay_unclassified(classifier: Classifier) -> None:
    traps = rows("traps.csv")
    assert len({row["string"] for row in traps}) >= 200
    platforms = {"any": PLATFORMS}
    right, wrong = share_right(ask(classifier, p, row) for row in traps for p in platforms.get(row["platform"], (row["platform"],)))
    assert right >= 0.99, wrong


def test_text_that_sounds_like_a_genre_stays_unclassified_in_free_tags(classifier: Classifier) -> None:
    right, wrong = share_right(ask(classifier, row["platform"], row) for row in rows("left_alone.csv"))
    assert right >= 0.95, wrong


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("compound", 0.92),
        ("place", 0.92),
        ("localised", 0.9),
        ("path", 0.95),
        ("scoped", 0.92),
        ("misspelt", 0.85),
        ("separators", 0.85),
        ("unclassifiable", 0.95),
        ("second", 0.95),
    ],
)
def test_labelled_strings_are_read_as_a_listener_would(classifier: Classifier, kind: str, least: float) -> None:
    right, wrong = share_right(ask(classifier, row["platform"], row) for row in rows("held_out.csv") if row["kind"] == kind)
    assert right >= least, wrong


@pytest.mark.parametrize(
    ("file", "split", "least", "most"),
    [
        ("strict_gold.csv", "development", 0.94, 1),
        ("strict_gold.csv", "test", 0.95, 1),
        ("second_gold.csv", "development", 0.96, 4),
        ("second_gold.csv", "test", 0.96, 3),
        ("second_gold.csv", "reserve", 0.95, 3),
        ("second_gold.csv", "last", 0.95, 5),
        ("third_gold.csv", "development", 0.96, 1),
    ],
)
def test_judged_strings_get_their_most_specific_nodes_and_others_none(
    classifier: Classifier, file: str, split: str, least: float, most: int
) -> None:
    """Leave out `test` and `reserve` of the third file: a failure would show strings that the next round must not know."""
    gold = [row for row in rows(file) if row["split"] == split]
    answers = [({tag.node.name for tag in classifier.classify(row["platform"], row["string"], row["parent"]).tags}, row) for row in gold]
    wrong = [(row["string"], answered) for answered, row in answers if answered != set(filter(None, row["nodes"].split("|")))]
    assert 1 - len(wrong) / len(gold) >= least, wrong
    classified = [row["string"] for answered, row in answers if answered and not row["nodes"]]
    assert len(classified) <= most, classified


@pytest.mark.parametrize(
    ("platform", "parent", "string", "nodes"),
    [
        ("catalog_a", "Funk / Soul", "Psychedelic", {"Psychedelic Soul"}),
        ("catalog_a", "Rock", "Industrial", {"Industrial Rock"}),
        ("streamsvc_b", "Rock", "Heavy Metal", {"Heavy Metal"}),
        ("streamsvc_b", "World", "Iberia", {"European"}),
        ("streamsvc_a", "", "igbo pop", {"Afropop"}),
        ("streamsvc_a", "", "yemeni folk", {"Middle Eastern"}),
        ("streamsvc_a", "", "indie hidrocalido", {"Indie Rock"}),
        ("streamsvc_a", "", "Jazz in Paris", set()),
        ("catalog_b", "", "igbo pop", {"Afropop"}),
    ],
)
def test_parent_region_and_scene_decide_the_node(classifier: Classifier, platform: str, parent: str, string: str, nodes: set[str]) -> None:
    assert {tag.node.name for tag in classifier.classify(platform, string, parent).tags} == nodes


def test_every_name_of_the_closed_lists_is_answered_as_committed(classifier: Classifier) -> None:
    assert share_right(ask(classifier, row["platform"], row) for row in rows("closed_lists.csv"))[1] == []


def test_name_is_classified_as_its_list_says_or_has_a_stated_reason(classifier: Classifier) -> None:
    """The list's own parent allows: what the parent means, electronic dance music below Electronic, Metal below Rock."""
    for row in rows("closed_lists.csv"):
        parent, mains = row["parent"], set(filter(None, row["mains"].split("|")))
        allowed = set(classifier.classify(row["platform"], parent).mains) if parent else set(mains)
        allowed |= DANCE if "Electronic" in allowed else set()
        allowed |= {"Metal"} if "Rock" in allowed else set()
        as_its_list_says = mains <= MIXED_PARENTS.get(parent, allowed) and (bool(mains) or parent == "Non-Music")
        assert as_its_list_says != bool(row["why"]), row
