from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from genre_rules import load_book
from genre_rules.__main__ import main
from genre_rules.lint import lint
from genre_rules.load import Rule

if TYPE_CHECKING:
    from pathlib import Path


def test_the_shipped_rules_are_clean_and_their_examples_hold() -> None:
    assert [str(finding) for finding in lint(load_book())] == []


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        (Rule("a", "exact", ("techno",), ("House",)), "contradiction"),
        (Rule("a", "exact", ("seen live",), ("House",)), "dead"),
        (Rule("a", "exact", ("!!!",), ("House",)), "dead"),
        (Rule("a", "exact", ("techno",), ("Techno",)), "redundant"),
        (Rule("a", "phrase", ("zork",), ("House",), yes=("quite another",)), "failing"),
        (Rule("a", "phrase", ("zork",), ("House",), no=("zork",)), "failing"),
        (Rule("a", "phrase", ("zork",), ("House",), unless=("zork",)), "dead"),
        (Rule("a", "phrase", ("techno",), ("Techno",), residual="none"), "shadowed"),
        (Rule("a", "regex", ("zork.*",), ("House",)), "unproven"),
        (Rule("a", "exact", ("zork",), ("House",), file="zork.yaml"), "orphan"),
    ],
)
def test_each_kind_of_trouble_is_found(rule: Rule, kind: str) -> None:
    book = load_book()
    assert {finding.kind for finding in lint(dataclasses.replace(book, rules=(rule,)))} == {kind}


def test_classify_writes_mains_subgenres_and_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(
        'platform,parent,string\nstore_a,,Melodic House & Techno\ncatalog_a,Rock,Hardcore\ncatalog_b,,"seen, live"\n', encoding="utf-8"
    )
    assert main(["classify", str(source), str(target)]) == 0
    assert target.read_text(encoding="utf-8").splitlines() == [
        "platform,parent,string,mains,subgenres,rule_ids",
        "store_a,,Melodic House & Techno,House|Techno,Melodic House|Melodic Techno,store-melodic-house-techno",
        "catalog_a,Rock,Hardcore,Rock,Hardcore Punk,hardcore-of-rock",
        'catalog_b,,"seen, live",,,',
    ]
    source.write_text("platform,genre\n", encoding="utf-8")
    assert main(["classify", str(source), str(target)]) == 1
    assert "no column string" in capsys.readouterr().err


def test_explain_prints_the_steps_to_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Hardcore", "--platform", "catalog_a", "--parent", "Rock"]) == 0
    assert capsys.readouterr().out == "'hardcore' exactly: rule hardcore-of-rock\n-> Rock > Hardcore Punk  (rule hardcore-of-rock)\n"
    assert main(["explain", "qwertz"]) == 0
    assert "no rule knows it" in capsys.readouterr().out
