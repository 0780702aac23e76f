from __future__ import annotations

import pytest

from catalog_store.name_keys.japanese_readings import read_japanese


@pytest.mark.parametrize(
    ("title", "reading"),
    [
        ("打上花火", "ウチアゲハナビ"),
        ("冬のはなし", "フユノハナシ"),
        ("夜に駆ける (Live)", "ヨルニカケル"),
        ("夜に駆ける - Piano", "ヨルニカケル"),
        ("海阔天空", ""),
        ("レイン", ""),
        ("Rain", ""),
        ("", ""),
    ],
)
def test_chinese_characters_of_a_japanese_title_are_read_without_its_notes(title: str, reading: str) -> None:
    assert read_japanese(title) == reading
