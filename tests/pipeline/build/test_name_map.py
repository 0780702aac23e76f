from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.build.name_map import read_names_of_keys, write_key_map

if TYPE_CHECKING:
    from pathlib import Path

NAMES = pl.DataFrame({"key": [f"artist{number}" for number in range(500)], "name": [f"Artist {number}" for number in range(500)]})


@pytest.mark.parametrize("keys", [["artist7", "artist499", "nobody", "artist7"], ["nobody"], []], ids=["some", "unknown", "none"])
def test_a_key_map_has_the_names_of_its_keys_alone(tmp_path: Path, keys: list[str]) -> None:
    write_key_map(NAMES.sample(fraction=1, shuffle=True, seed=3), tmp_path / "names.arrow")
    found = read_names_of_keys(tmp_path / "names.arrow", pl.Series(keys, dtype=pl.String))
    assert found.sort("key").equals(NAMES.filter(pl.col("key").is_in(keys)).sort("key"))


def test_a_key_map_without_names_knows_no_key(tmp_path: Path) -> None:
    write_key_map(NAMES.clear(), tmp_path / "names.arrow")
    assert read_names_of_keys(tmp_path / "names.arrow", NAMES["key"]).equals(NAMES.clear())
