"""The notebook of the tutorial, cell by cell as a kernel runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from tests.conftest import BuiltWorld

NOTEBOOK = json.loads((ROOT / "docs" / "tutorial" / "explore.ipynb").read_text())


def test_notebook_holds_no_outputs_of_its_author() -> None:
    assert [cell["id"] for cell in NOTEBOOK["cells"] if cell.get("outputs") or cell.get("execution_count")] == []
    assert NOTEBOOK["nbformat"] == 4


@pytest.mark.slow
def test_every_cell_runs_and_shows_something(built_world: BuiltWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATALOG_ROOT", str(built_world.catalog))
    names: dict[str, Any] = {}
    shown = 0
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] == "code":
            *_, last = "".join(cell["source"]).strip().splitlines()
            exec("".join(cell["source"]), names)  # noqa: S102 - code of our own page
            if last.partition(".")[0].isidentifier() and "=" not in last:
                shown += 1
                assert len(names[last.partition(".")[0]])
    names["catalog"].close()
    assert shown == 6
