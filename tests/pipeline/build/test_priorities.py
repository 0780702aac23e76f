from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.build.priorities import CHAINS

PAGE = Path(__file__).parents[3] / "docs" / "build.md"


@pytest.mark.parametrize("field", CHAINS)
def test_the_page_shows_each_chain_as_it_is(field: str) -> None:
    assert f"| {field} | {', '.join(CHAINS[field])} |" in PAGE.read_text(encoding="utf-8")
