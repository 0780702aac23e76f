from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.dumps.landing import landing_zone
from tests.pipeline.dumps.landing.http_upstream import Upstream, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pauses between attempts to fetch a file."""
    monkeypatch.setattr(landing_zone, "FIRST_PAUSE_SECONDS", 0.01)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with serving(Upstream()) as served:
        yield served


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    return tmp_path / "zone"
