from __future__ import annotations

import dataclasses
import shutil
from typing import TYPE_CHECKING

import pytest

from genre_rules import RuleError, Taxonomy, load_book
from genre_rules.__main__ import main
from genre_rules.ids import LOCK, append_new, find_changed, find_new, read_lock
from genre_rules.load import FOLDER, Rule

if TYPE_CHECKING:
    from pathlib import Path

RULE = Rule("zork-of-rock", "exact", ("zork",), ("House", "Techno"))


def test_no_committed_id_has_changed_its_meaning() -> None:
    assert find_changed(load_book(), read_lock(FOLDER)) == []


def test_every_id_in_use_is_committed() -> None:
    assert find_new(load_book(), read_lock(FOLDER)) == [], "run `python -m genre_rules lock` and commit ids.lock"


def test_new_ids_are_appended_and_deleted_ones_stay_taken(tmp_path: Path) -> None:
    book = load_book()
    small = dataclasses.replace(book, rules=(RULE,))
    append_new(small, tmp_path)
    assert append_new(small, tmp_path) == []
    without = dataclasses.replace(book, rules=())
    append_new(without, tmp_path)
    assert read_lock(tmp_path)[RULE.id] == "House + Techno"
    again = dataclasses.replace(book, rules=(dataclasses.replace(RULE, emit=("Jazz",)),))
    with pytest.raises(RuleError, match="zork-of-rock meant 'House \\+ Techno', now 'Jazz': ids never change meaning"):
        append_new(again, tmp_path)
    assert read_lock(tmp_path)[RULE.id] == "House + Techno"


def test_node_may_get_another_spelling_but_no_other_genre() -> None:
    book = load_book()
    locked = {node.rule_id: f"{node.main_name} > {node.name}" if node.level else node.name for node in book.taxonomy.nodes}

    def renamed(name: str) -> list[str]:
        nodes = tuple(dataclasses.replace(node, name=name) if node.id == 101 else node for node in book.taxonomy.nodes)
        return find_changed(dataclasses.replace(book, taxonomy=Taxonomy(nodes), rules=()), locked)

    assert renamed("Deep-house") == []
    assert len(renamed("Soulful Deep House")) == 1


def test_a_rule_may_match_more_without_a_new_id() -> None:
    book = dataclasses.replace(load_book(), rules=(dataclasses.replace(RULE, match=("zork", "zorc"), sources=("store_a",)),))
    assert find_changed(book, {RULE.id: "House + Techno"}) == []


def test_the_command_appends_to_the_list_of_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("taxonomy.yaml", "words.yaml", "drop.yaml"):
        shutil.copy(FOLDER / name, tmp_path / name)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rock.yaml").write_text("- id: zork\n  match: [zork]\n  emit: [Rock]\n", encoding="utf-8")
    assert main(["--rules", str(tmp_path), "lock"]) == 0
    assert "zork\tRock\n" in (tmp_path / LOCK).read_text(encoding="utf-8")
    (tmp_path / LOCK).write_text("broken line\n", encoding="utf-8")
    assert main(["--rules", str(tmp_path), "lock"]) == 1
    assert "ids.lock:1: 'broken line' is not an `id<tab>meaning`" in capsys.readouterr().err
