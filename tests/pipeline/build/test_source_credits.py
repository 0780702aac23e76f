from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts
from pipeline.build import recording_ranges
from pipeline.build.artists import build_artists

from .conftest import credit

if TYPE_CHECKING:
    import pytest

    from .conftest import World


def test_credits_are_the_same_in_ranges_of_any_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 12):
        nova = credit("Nova", f"s{number % 3}")
        world.recording(number, "streamsvc_a", f"a{number}", f"Song {number}", nova, credit("Various Artists", "v"))
        world.recording(number, "streamsvc_b", f"b{number}", f"Song {number} (feat. Sol)", credit("Nova"), credit(f"Guest {number % 4}"))
        world.recording(number + 20, "store_a", f"t{number}", "Tune", credit("Various Artists", "va"))
    paths, found = world.write(), []
    for ids in (100, 4):
        monkeypatch.setattr(recording_ranges, "RECORDINGS_PER_RANGE", ids)
        build_artists(paths)
        found.append(world.read("source_credit"))
    whole, ranges = found
    assert whole.height == 4 * 11
    assert whole.equals(ranges)
    assert whole.equals(whole.sort(TABLES["source_credit"].order))
    assert len(list_parts(paths.table("source_credit"))) == 6


def test_world_without_a_credit_has_an_empty_table_of_credits(world: World) -> None:
    paths = world.write()
    assert build_artists(paths)["source_credits"] == 0
    assert world.read("source_credit").is_empty()
