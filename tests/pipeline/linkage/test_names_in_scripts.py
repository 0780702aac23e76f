"""Tests of one code on names in two scripts: names that sound alike or are translations join, other names do not."""

from __future__ import annotations

import pytest

from pipeline.linkage.guards import BOTH_TRANSLATED_DURATION_MS, OTHER_SCRIPT_DURATION_MS
from tests.pipeline.linkage.worlds import Records

CODE = "USAAA2000001"


def count_recordings(one: tuple[str, str], other: tuple[str, str], apart_ms: int = 0) -> int:
    records = Records().add("a", one[0], one[1], isrcs=CODE, seconds=200)
    return len(records.add("b", other[0], other[1], isrcs=CODE, platform="streamsvc_b", seconds=200 + apart_ms / 1000).linked())


@pytest.mark.parametrize(
    ("one", "other", "apart_ms"),
    [
        # both sound alike: no closer length is needed than for two spellings
        (("Группа крови", "Кино"), ("Gruppa krovi", "Kino"), 5_000),
        (("Попытка №5", "ВИА Гра"), ("Popytka No. 5", "VIA Gra"), 5_000),
        (("夜に駆ける", "YOASOBI"), ("Yoru ni Kakeru", "YOASOBI"), 5_000),
        # a translated title of one artist
        (("夜に駆ける", "ヨアソビ"), ("Racing into the Night", "YOASOBI"), OTHER_SCRIPT_DURATION_MS),
        # a translated artist with one title
        (("稻香", "周杰倫"), ("稻香", "Jay Chou"), OTHER_SCRIPT_DURATION_MS),
        (("Popytka", "ВИА Гра"), ("Popytka", "Nu Virgos"), OTHER_SCRIPT_DURATION_MS),
        # both translated
        (("突然好想你", "五月天"), ("Suddenly Missing You", "Mayday"), BOTH_TRANSLATED_DURATION_MS),
        (("봄날", "방탄소년단"), ("Spring Day", "BTS"), BOTH_TRANSLATED_DURATION_MS),
        # names in both scripts at once
        (("강남스타일 (Gangnam Style)", "PSY"), ("Gangnam Style (강남스타일)", "PSY"), 0),
        (("真夜中のドア〜Stay With Me", "松原みき"), ("Mayonaka no Door / Stay With Me", "Miki Matsubara"), 1_000),
    ],
)
def test_names_in_two_scripts_are_one_recording(one: tuple[str, str], other: tuple[str, str], apart_ms: int) -> None:
    assert count_recordings(one, other, apart_ms) == 1


@pytest.mark.parametrize(
    ("one", "other", "apart_ms"),
    [
        # an alphabet spells names, so another sound is another artist unless title and length agree
        (("Экспонат", "Ленинград"), ("Hello", "Adele"), 0),
        (("Hello", "Ленинград"), ("Hello", "Adele"), OTHER_SCRIPT_DURATION_MS + 100),
        (("Intro", "Ленинград"), ("Intro", "Adele"), 0),
        # translated names at another length
        (("突然好想你", "五月天"), ("Suddenly Missing You", "Mayday"), BOTH_TRANSLATED_DURATION_MS + 100),
        (("夜に駆ける", "YOASOBI"), ("Racing into the Night", "YOASOBI"), OTHER_SCRIPT_DURATION_MS + 100),
        # a stranger in the same script
        (("嘘", "SID"), ("Astronaut", "Sido"), 0),
        (("公园", "李娜"), ("公元", "李娜"), 0),
        (("Попытка №5", "ВИА Гра"), ("Попытка №6", "ВИА Гра"), 0),
    ],
)
def test_other_names_in_two_scripts_stay_two_recordings(one: tuple[str, str], other: tuple[str, str], apart_ms: int) -> None:
    assert count_recordings(one, other, apart_ms) == 2
