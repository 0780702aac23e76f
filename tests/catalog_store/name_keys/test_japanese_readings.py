from __future__ import annotations

import pytest

from catalog_store.name_keys.japanese_readings import read_japanese, read_japanese_person


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


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("坂本龍一", "サカモトリュウイチ"),
        ("中島みゆき", "ナカジマミユキ"),
        ("宇多田ヒカル", "ウタダヒカル"),
        ("東京事変", ""),
        ("周杰倫", ""),
        ("アニメ坂本", ""),
        ("Sakamoto", ""),
    ],
)
def test_name_that_begins_with_a_person_is_read(name: str, reading: str) -> None:
    assert read_japanese_person(name) == reading
