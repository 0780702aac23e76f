"""The scopes of rules follow from the folders of platforms."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog_store.platform_files import SEARCH_PATH, SHIPPED
from catalog_store.platforms import CATALOG_PLATFORMS, find_genre_scope
from genre_rules import RuleError, scopes
from genre_rules.scopes import read_scopes

ADDED = Path(__file__).resolve().parents[1] / "added_platforms"


def test_scopes_are_those_that_the_shipped_platforms_name() -> None:
    assert read_scopes({}) == tuple(dict.fromkeys(map(find_genre_scope, CATALOG_PLATFORMS)))
    assert (scopes._SEARCH_PATH, scopes._SHIPPED) == (SEARCH_PATH, SHIPPED)


def test_added_folder_brings_its_scope() -> None:
    assert read_scopes({SEARCH_PATH: str(ADDED)}) == (*read_scopes({}), "streamsvc_d")


def test_absent_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="absent: is no folder of platforms: correct CATALOG_PLATFORM_FOLDERS"):
        read_scopes({SEARCH_PATH: str(tmp_path / "absent")})


def test_position_that_is_no_number_is_named(tmp_path: Path) -> None:
    file = tmp_path / "streamsvc_d" / "platform.yaml"
    file.parent.mkdir()
    file.write_text("position: first\ngenre_scope: streamsvc_d\n")
    with pytest.raises(RuleError, match=r"platform\.yaml: position: expected a whole number, got 'first'"):
        read_scopes({SEARCH_PATH: str(tmp_path)})
