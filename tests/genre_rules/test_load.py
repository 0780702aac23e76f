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


def test_curated_names_all_platforms_whose_strings_are_genres(folder: Path) -> None:
    (folder / "rules" / "pop.yaml").write_text("- id: a\n  match: [x]\n  sources: [curated, catalog_b]\n  emit: [House]\n")
    book = load_book(folder)
    assert book.rules[0].sources == (*book.words.curated, "catalog_b")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("frames: x", "frames is no list"),
        ("frames:\n  - pattern: '.+'\n    means: ['{genre}']", "has no group"),
        ("frames:\n  - pattern: '(?P<genre>.+'\n    means: ['{genre}']", "is not a regular expression"),
        ("frames:\n  - pattern: '(?P<genre>.+) x'\n    means: [rock]", "means must name"),
        ("frames:\n  - pattern: '(?P<genre>.+) x'\n    mean: ['{genre}']", "unknown fields"),
    ],
)
def test_frame_that_cannot_be_used_is_named(folder: Path, frame: str, message: str) -> None:
    (folder / "rules" / "pop.yaml").write_text("- id: a\n  match: [x]\n  emit: [House]\n")
    (folder / "words.yaml").write_text(f"curated: [store_a]\n{frame}\n")
    with pytest.raises(RuleError, match=message):
        load_book(folder)


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
        ("- id: a\n  kind: regex\n  emit: [Rock]\n  match: ['goth(']", "is not a regular expression"),
        ("- id: a\n  match: [x\n", "no YAML"),
        ("- just a string", "pop.yaml: entry 1: 'just a string' is not a rule"),
        ("- id: a\n  match: [x]\n  emit: [House]\n- 7", "pop.yaml: entry 2: '7' is not a rule"),
        ("- id: a\n  id: b\n  match: [x]", "pop.yaml:3: no YAML: 'id' occurs twice"),
        ("- id: a\n  match: [[x]]\n  emit: [House]", r"rule a: match holds \['x'\], which is not a string"),
        ("- id: a\n  kind: drop\n  match: [x]\n  emit: [House]", "a rule of kind drop emits nothing"),
        ("- id: a\n  kind: phrase\n  match: [x]", "a phrase that emits nothing has no effect"),
        ("- id: a\n  match: [x]\n  unless: [y]", "matches whole strings: `unless`, `residual` and `place` have no effect"),
        ("- id: node-7\n  match: [x]", "ids of this shape belong to the nodes"),
        ("- id: a\n  match: [x]\n  examples: {maybe: [x]}", r"unknown fields \['maybe'\] in examples"),
        ("rules:", "write a list of rules"),
        ("- id: a\n  match: [x]\n  why: {a: b}", r"why is \{'a': 'b'\}; write one string"),
    ],
)
def test_error_names_file_line_rule_and_remedy(folder: Path, rule: str, message: str) -> None:
    (folder / "rules" / "pop.yaml").write_text("# first line\n" + rule, encoding="utf-8")
    with pytest.raises(RuleError, match=message):
        load_book(folder)


@pytest.mark.parametrize("kind", ["exact", "drop", "split_guard"])
def test_plain_strings_may_hold_characters_that_are_invalid_in_patterns(folder: Path, kind: str) -> None:
    emits = "  emit: [Rock]\n" if kind == "exact" else ""
    (folder / "rules" / "pop.yaml").write_text(f"- id: a\n  kind: {kind}\n{emits}  match: ['goth(', 'goth(?!ic)']\n", encoding="utf-8")
    (rule,) = load_book(folder).rules
    assert rule.match == ("goth(", "goth(?!ic)")


def test_an_id_is_given_once_over_all_files(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / "rules" / f"{name}.yaml").write_text("- id: same\n  match: [x]\n  emit: [House]\n", encoding="utf-8")
    with pytest.raises(RuleError, match=r"b.yaml:1: rule same: the id is taken by a.yaml:1"):
        load_book(folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: 101\n", "id: 102\n", "102 is in line"),
        ("name: Deep House", "name: House", "'House' is in line"),
        ("- id: 25\n  name: Gospel", "- id: 25\n  title: Gospel", r"unknown fields \['title'\]"),
    ],
)
def test_invalid_tree_is_refused(folder: Path, old: str, new: str, message: str) -> None:
    tree = folder / "taxonomy.yaml"
    assert old in tree.read_text(encoding="utf-8")
    tree.write_text(tree.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RuleError, match=message):
        load_book(folder)


def test_taxonomy_has_the_25_mains_of_the_specification() -> None:
    nodes = load_book().taxonomy.nodes
    mains = [node.name for node in nodes if node.level == 0]
    assert len(mains) == 25
    assert mains[:9] == ["House", "Techno", "Trance", "DnB", "Dubstep", "Breakbeat", "Garage", "Hardstyle", "Hardcore"]
    assert max(node.level for node in nodes) == 2


def test_words_that_yaml_takes_for_flags_numbers_or_nothing_stay_words(folder: Path) -> None:
    rule = "- id: a\n  match: [on, 1990, 007, null]\n  emit: [House]\n  examples: {yes: [true], no: [no]}\n"
    (folder / "rules" / "pop.yaml").write_text(rule, encoding="utf-8")
    (read,) = load_book(folder).rules
    assert (read.match, read.yes, read.no) == (("on", "1990", "007", "null"), ("true",), ("no",))


@pytest.mark.parametrize("name", ["taxonomy.yaml", "words.yaml", "drop.yaml"])
@pytest.mark.parametrize("content", [b"", b"just text", b"\xff\xfe\x00", b"a: [", None])
def test_a_file_of_another_shape_or_none_is_named(folder: Path, name: str, content: bytes | None) -> None:
    (folder / "rules" / "pop.yaml").write_text("[]", encoding="utf-8")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(RuleError, match=name.replace(".", r"\.") + r":\d"):
        load_book(folder)
