from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from catalog_store.serving.serving_build import build_serving
from catalog_store.serving.store import ServingStore
from tests.catalog_store.catalog_tables import write_frames
from tests.catalog_store.plain_lists import mixed_frames

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Served(NamedTuple):
    """Rows of the tables and the store built of them."""

    rows: dict[str, list[dict[str, Any]]]
    store: ServingStore


def served(rows: dict[str, list[dict[str, Any]]], root: Path) -> Served:
    (root / "serving").mkdir(parents=True)
    build_serving(write_frames(root / "tables", rows), root / "serving")
    return Served(rows, ServingStore(root / "serving", 5.0))


@pytest.fixture(scope="package", params=[(40, 1), (200, 2)], ids=["40", "200"])
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield small catalogs with many ties. No test writes into them."""
    opened = served(mixed_frames(*request.param), tmp_path_factory.mktemp("mixed"))
    yield opened
    opened.store.close()
