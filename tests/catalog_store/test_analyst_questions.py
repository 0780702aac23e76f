"""The questions of the analysts' guide, each answered on the shared world."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pytest

if TYPE_CHECKING:
    from tests.conftest import BuiltWorld

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "analysts.md").read_text()
BLOCKS = re.findall(r"```(?:sql|python) (duckdb|parquet|polars|pandas)\n(.*?)```", PAGE, flags=re.DOTALL)
QUESTIONS = re.findall(r"^(\d+)\. (.*)$", PAGE[PAGE.index("## Questions and answers") :], flags=re.MULTILINE)


def test_the_guide_answers_25_questions() -> None:
    assert [int(number) for number, _ in QUESTIONS] == list(range(1, 26))
    assert {language for language, _ in BLOCKS} == {"duckdb", "parquet", "polars", "pandas"}


@pytest.mark.parametrize(("language", "text"), BLOCKS, ids=[f"{number} {language}" for number, (language, _) in enumerate(BLOCKS)])
def test_each_answer_finds_something(language: str, text: str, built_world: BuiltWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(built_world.catalog / "current")
    if language in {"polars", "pandas"}:
        names: dict[str, Any] = {"pl": pl, "pd": pd}
        exec(text, names)  # noqa: S102 - code of our own page
        assert len(names["answer"])
        return
    with duckdb.connect("catalog.duckdb" if language == "duckdb" else ":memory:", read_only=language == "duckdb") as connection:
        assert connection.execute(text).fetchall()
