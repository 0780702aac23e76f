# ruff: noqa: RUF001 - look-alike characters are what is tested
"""Tests that variant forms of a character share a key, and that other characters stay apart."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.name_keys import build_name_key, build_name_key_expr, build_title_keys, build_title_keys_frame, fold
from catalog_store.name_keys.character_variants import load_character_variants

if TYPE_CHECKING:
    from random import Random

VARIANTS = load_character_variants()
FORMS: dict[str, list[str]] = {}
for _character, _form in VARIANTS.items():
    FORMS.setdefault(_form, [_form]).append(_character)


def widen(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("周杰倫", "周杰伦"),
        ("張學友", "张学友"),
        ("鄧麗君", "邓丽君"),
        ("孫燕姿", "孙燕姿"),
        ("陳奕迅", "陈奕迅"),
        ("國際歌", "国际歌"),
        ("愛著你", "爱着你"),
        ("裡面的光", "里面的光"),
        ("裏面", "里面"),
        ("頭髮", "头发"),
        ("台北", "臺北"),
        ("櫻", "桜"),
        ("宮澤", "宮沢"),
        ("濱崎あゆみ", "浜崎あゆみ"),
        ("渡邊", "渡辺"),
        ("渡邉", "渡辺"),
        ("髙橋優", "高橋優"),
        ("山﨑まさよし", "山崎まさよし"),
        ("龍", "竜"),
        ("戀愛サーキュレーション", "恋愛サーキュレーション"),
        ("廣瀬", "広瀬"),
        ("海闊天空", "海阔天空"),
        ("ｻｸﾗ", "サクラ"),
        ("ｶﾞﾝﾀﾞﾑ", "ガンダム"),
        ("ＹＯＡＳＯＢＩ", "yoasobi"),
        ("ＡＢＣ１２３", "abc123"),
        ("서태지", unicodedata.normalize("NFD", "서태지")),
    ],
)
def test_variant_spellings_of_one_name_have_equal_keys(one: str, other: str) -> None:
    assert build_name_key(one) == build_name_key(other)
    assert build_title_keys(one) == build_title_keys(other)
    assert build_title_keys(f"{one} (Live)") == build_title_keys(f"{other}（Live）")
    assert build_title_keys_frame(pl.Series([one])).equals(build_title_keys_frame(pl.Series([other])))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("沪", "濾"),
        ("連", "聯"),
        ("欠", "缺"),
        ("予", "豫"),
        ("弁", "瓣"),
        ("末", "未"),
        ("土", "士"),
        ("日", "曰"),
        ("さくら", "サクラ"),
        ("は", "ば"),
        ("ハ", "八"),
        ("大", "太"),
        ("己", "已"),
        ("円", "元"),
        ("東", "凍"),
        ("青", "清"),
    ],
)
def test_other_characters_keep_other_keys(one: str, other: str) -> None:
    assert build_name_key(one) != build_name_key(other)
    assert build_title_keys(one).core != build_title_keys(other).core


def test_no_form_is_replaced_itself() -> None:
    assert not VARIANTS.keys() & set(VARIANTS.values())
    assert all(len(form) == 1 for form in VARIANTS.values())
    # A form that normalisation decomposes would change the key of a key.
    assert all(unicodedata.normalize("NFKD", form) == form for form in VARIANTS.values())


variant_texts = st.lists(st.sampled_from(sorted(FORMS)), min_size=1, max_size=8)


@settings(max_examples=200, deadline=None)
@given(variant_texts, st.randoms(use_true_random=False), st.sampled_from(["", " Live", " (Live)", " - Remix", " feat. Mika", " love 2"]))
def test_any_mix_of_variant_forms_has_the_key_of_the_usual_ones(forms: list[str], random: Random, tail: str) -> None:
    mixed = "".join(random.choice(FORMS[form]) for form in forms)
    plain = "".join(forms)
    assert fold(mixed) == fold(plain)
    assert build_title_keys(mixed + tail) == build_title_keys(plain + tail) == build_title_keys(widen(mixed + tail))
    assert build_name_key(mixed) == build_name_key(plain)
    frame = pl.DataFrame({"name": [mixed, plain]}).select(build_name_key_expr(pl.col("name")))
    assert frame.to_series().n_unique() == 1


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20).map(lambda text: f"{text}a"))
def test_width_and_case_change_no_key(text: str) -> None:
    assert build_title_keys(widen(text)).core.replace(" ", "") == build_title_keys(text).core.replace(" ", "")
    assert build_name_key(text.upper()) == build_name_key(text)
    assert build_name_key(widen(text)) == build_name_key(text)
