from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from catalog_store.publisher import publish
from catalog_store.reader import Catalog, open_catalog
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.catalog_store.earlier_snapshots import PublishEarlier

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


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a catalog of the snapshots `first` and `second`, the second live. No test writes to it."""
    folder = tmp_path_factory.mktemp("builder")
    for name, recordings in (("first", 20), ("second", 21)):
        publish(make_tables(folder / name, recordings), folder / "catalog", snapshot_id=name, next_ids={"recording": 1000})
    return folder / "catalog"


@pytest.fixture
def catalog(published: Path) -> Iterator[Catalog]:
    with open_catalog(published) as opened:
        yield opened


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return catalog tables of 20 recordings, for tests that publish."""
    return make_tables(tmp_path_factory.mktemp("small"), 20)


@pytest.fixture(scope="session")
def publish_earlier(small: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> PublishEarlier:
    """Return a function that publishes each series once, upon the series that lacks the last one, and copies it.

    A publish takes half a second a snapshot.
    """
    made: dict[tuple[int | str, ...], Path] = {}

    def lay_down(root: Path, *names: str, recording: int = 21) -> None:
        series = (recording, *names)
        if series not in made:
            place = tmp_path_factory.mktemp("earlier")
            if names[1:]:
                lay_down(place, *names[:-1], recording=recording)
            publish(small, place, snapshot_id=names[-1], next_ids={"recording": recording})
            made[series] = place
        shutil.copytree(made[series], root, symlinks=True, dirs_exist_ok=True)

    return lay_down
