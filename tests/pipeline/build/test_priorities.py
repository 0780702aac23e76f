from __future__ import annotations

from pathlib import Path

import pytest

from catalog_store.tables import TABLES
from pipeline.build.priorities import CHAINS

PAGE = Path(__file__).parents[3] / "docs" / "design" / "build.md"


@pytest.mark.parametrize("field", CHAINS)
def test_docs_page_shows_every_chain(field: str) -> None:
    assert f"| {field} | {', '.join(CHAINS[field])} |" in PAGE.read_text(encoding="utf-8")


REASONS = [(column.name.removesuffix("_reason"), reason) for column in TABLES["recording_provenance"].columns for reason in column.values]


@pytest.mark.parametrize(("field", "reason"), [(field, reason) for field, reason in REASONS if not field.endswith("_entity")])
def test_docs_page_explains_every_reason(field: str, reason: str) -> None:
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert any(field in row[0] and f"`{reason}`" in row[1] for row in rows)
