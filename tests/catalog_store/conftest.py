from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_store.publisher import publish
from catalog_store.reader import Catalog, open_catalog
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDINGS = 120


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return catalog tables of RECORDINGS recordings. No test writes into them."""
    return make_tables(tmp_path_factory.mktemp("tables"), RECORDINGS)


@pytest.fixture(scope="session")
def published(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a catalog root with one snapshot, `first`. No test publishes into it."""
    root = tmp_path_factory.mktemp("published")
    publish(tables, root, snapshot_id="first", next_ids={"recording": 1000, "artist": 50})
    return root


@pytest.fixture
def catalog(published: Path) -> Iterator[Catalog]:
    with open_catalog(published) as opened:
        yield opened
