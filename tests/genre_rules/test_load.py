from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from genre_rules import RuleError, load_book
from genre_rules.load import FOLDER

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("taxonomy.yaml", "words.yaml", "drop.yaml"):
        shutil.copy(FOLDER / name, tmp_path / name)
    (tmp_path / "rules").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("- match: [x]\n  emit: [House]", r"pop.yaml:2: rule \(no id\): the id must be lower-case words"),
        ("- id: a\n  match: [x]\n  emit: [Hous]", r"pop.yaml:2: rule a: emits 'Hous', which taxonomy.yaml does not have"),
        ("- id: a\n  emit: [House]", "match is empty"),
        ("- id: a\n  kind: fuzzy\n  match: [x]", "kind 'fuzzy' is unknown; one of exact, drop, split_guard, phrase, regex"),
        ("- id: a\n  match: [x]\n  sources: [spotify]", "source 'spotify' is unknown; one of streamsvc_a"),
        ("- id: a\n  match: [x]\n  emits: [House]", r"unknown fields \['emits'\]"),
        ("- id: a\n  kind: regex\n  emit: [Rock]\n  match: ['goth(?!ic)']", "looks around or back; use `unless`"),
        ("- id: a\n  kind: regex\n  emit: [Rock]\n  match: ['goth(']", "is no regular expression"),
        ("- id: a\n  match: [x\n", "no YAML"),
        ("- just a string", "is no rule"),
    ],
)
def test_an_error_names_file_line_rule_and_mend(folder: Path, rule: str, message: str) -> None:
    (folder / "rules" / "pop.yaml").write_text("# first line\n" + rule, encoding="utf-8")
    with pytest.raises(RuleError, match=message):
        load_book(folder)


def test_an_id_is_given_once_over_all_files(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / "rules" / f"{name}.yaml").write_text("- id: same\n  match: [x]\n  emit: [House]\n", encoding="utf-8")
    with pytest.raises(RuleError, match=r"b.yaml:1: rule same: the id is taken by a.yaml:1"):
        load_book(folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: 101\n", "id: 102\n", "102 stands in line"),
        ("name: Deep House", "name: House", "'House' stands in line"),
        ("- id: 25\n  name: Gospel", "- id: 25\n  title: Gospel", r"unknown fields \['title'\]"),
    ],
)
def test_a_tree_that_is_none_is_refused(folder: Path, old: str, new: str, message: str) -> None:
    tree = folder / "taxonomy.yaml"
    assert old in tree.read_text(encoding="utf-8")
    tree.write_text(tree.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RuleError, match=message):
        load_book(folder)


def test_25_mains_with_the_names_of_the_specification() -> None:
    nodes = load_book().taxonomy.nodes
    mains = [node.name for node in nodes if node.level == 0]
    assert len(mains) == 25
    assert mains[:9] == ["House", "Techno", "Trance", "DnB", "Dubstep", "Breakbeat", "Garage", "Hardstyle", "Hardcore"]
    assert max(node.level for node in nodes) == 2
