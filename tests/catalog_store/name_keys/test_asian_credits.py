# ruff: noqa: RUF001 - look-alike letters are what is tested
"""Tests of credits and versions in Japanese, Korean and Chinese titles: without spaces, between wave dashes, in words of their own."""

from __future__ import annotations

import pytest

from catalog_store.name_keys import build_name_key, build_title_keys, fold


def read(title: str) -> tuple[str, str, str]:
    keys = build_title_keys(title)
    return keys.core, keys.variant, keys.credits


@pytest.mark.parametrize(
    ("title", "guests"),
    [
        ("夏 feat.Mika", "mika"),
        ("夏feat.Mika", "mika"),
        ("夏 ft.Mika", "mika"),
        ("夏（feat. Mika）", "mika"),
        ("夏 [Feat.Mika]", "mika"),
        ("夏 (CV:Mika)", "mika"),
        ("夏(CV.Mika)", "mika"),
        ("夏（ＣＶ：Mika）", "mika"),
        ("夏 (Vo.Mika)", "mika"),
        ("夏 (Vocal: Mika)", "mika"),
        ("夏 (with Mika)", "mika"),
        ("夏 (starring Mika)", "mika"),
        ("夏 (Duet with Mika)", "mika"),
        ("夏 (Feat.Mika) [Prod. Zed]", "mika"),
        ("夏 (Feat. Mika)(Prod.Zed)", "mika"),
        ("夏 feat.Mika & Nao", "mika and nao"),
    ],
)
def test_guest_is_read_from_a_title(title: str, guests: str) -> None:
    assert read(title) == ("夏", "", guests)


@pytest.mark.parametrize(
    ("title", "variant"),
    [
        ("夏 -TV size-", "edit"),
        ("夏-TV size-", "edit"),
        ("夏（TVサイズ）", "edit"),
        ("夏～TV Size Ver.～", "edit"),
        ("夏 (Off Vocal)", "instrumental"),
        ("夏 -off vocal ver.-", "instrumental"),
        ("夏(オフボーカル)", "instrumental"),
        ("夏 Inst.", "instrumental"),
        ("夏 (Inst)", "instrumental"),
        ("夏 (MR)", "instrumental"),
        ("夏 [MR Ver.]", "instrumental"),
        ("夏（伴奏）", "karaoke"),
        ("夏 (カラオケ)", "karaoke"),
        ("夏（弾き語りVer.）", "acoustic"),
        ("夏 (アコースティックバージョン)", "acoustic"),
        ("夏〜Live Version〜", "live"),
        ("夏（現場版）", "live"),
        ("夏（演唱會版）", "live"),
        ("夏 (라이브)", "live"),
        ("夏 (리믹스)", "remix"),
        ("夏 (TwinVer.)", "version:twin"),
        ("夏 (OrgelVer.)", "version:orgel"),
        ("夏 (秋Ver.)", "version:秋"),
        ("夏 (英語版)", "version:english"),
        ("夏 (Eng Ver.)", "version:english"),
        ("夏 (英語バージョン)", "version:english"),
        ("夏 (영어 버전)", "version:english"),
        ("夏 (Versión en Inglés)", "version:english"),
        ("夏 (Versión en Español)", "version:spanish"),
        ("夏 (Version Française)", "version:french"),
        ("夏 (日本語ver.)", "version:japanese"),
        ("夏 (JPN Ver.)", "version:japanese"),
        ("夏 (粵語版)", "version:cantonese"),
        ("夏 (國語版)", "version:chinese"),
        ("夏 (Mandarin Version)", "version:chinese"),
        ("夏 (2020リマスター)", ""),
        ("夏 (リマスタリング)", ""),
        ("夏 (2019 리마스터)", ""),
        ("夏（重製版）", ""),
        ("夏 [MV]", ""),
        ("夏（完整版）", ""),
        ("夏 (5.1 Surround Mix)", "surround"),
        ("夏 (Dolby Atmos)", "surround"),
        ("夏 (Alternate Take 2)", "alternate:2"),
        ("夏 (Live, Budokan)", "live:budokan"),
        ("夏 (Live) [Live at Budokan]", "live:budokan"),
    ],
)
def test_version_is_read_from_a_title(title: str, variant: str) -> None:
    assert read(title) == ("夏", variant, "")


@pytest.mark.parametrize("title", ["夏～秋の歌～", "夏 ～秋の歌～", "夏〜秋の歌〜", "夏 -秋の歌-", "夏 (秋の歌)", "夏【秋の歌】"])
def test_subtitle_between_waves_is_a_subtitle_in_brackets(title: str) -> None:
    assert build_title_keys(title)[:3] == ("夏 秋の歌", "夏", "")


@pytest.mark.parametrize(
    ("title", "core"),
    [
        ("Mr. Summer", "mr summer"),
        ("Summer (Mr. Blue)", "summer mr blue"),
        ("Summer (Forever.)", "summer forever"),
        ("Live, Love, Laugh", "live love laugh"),
        ("Song (Live, Love, Laugh)", "song live love laugh"),
        ("Inst", "inst"),
        ("Off Vocal", "off vocal"),
        ("Half-Life", "half life"),
        ("CV", "cv"),
        ("English Version", "english version"),
    ],
)
def test_words_of_a_song_stay_in_its_title(title: str, core: str) -> None:
    assert read(title) == (core, "", "")


@pytest.mark.parametrize("name", ["天海春香", "天海春香(CV:中村)", "天海春香 (CV.中村)", "天海春香（ＣＶ：中村）", "天海春香 [C.V.:X]"])
def test_singer_of_a_character_is_not_part_of_its_name(name: str) -> None:
    assert build_name_key(name) == "天海春香"


def test_folded_waves_are_one_sign() -> None:
    assert fold("夏～秋〜冬") == "夏~秋~冬"
