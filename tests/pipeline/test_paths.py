from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from catalog_store.publisher import publish
from pipeline.paths import BuildPaths
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

Item = TypeVar("Item")
Result = TypeVar("Result")


def test_intermediate_data_of_a_publish_counts_as_spilled(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    spilling: set[str] = set()

    def run(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        spilling.update(folder.parent.name for folder in paths.list_spill_folders() if folder.is_dir() and any(folder.iterdir()))
        return map(function, items)

    publish(make_tables(tmp_path / "tables", 30), tmp_path, snapshot_id="a", next_ids={}, run=run)
    assert {"search", "serving"} <= spilling
