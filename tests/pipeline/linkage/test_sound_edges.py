# ruff: noqa: RUF001 - letters of other scripts look like Latin ones, on purpose
"""Tests of names in two scripts without a code: they join if both sound alike at one length, in any order."""

from __future__ import annotations

from functools import partial

import polars as pl
import pytest

from pipeline.linkage import sound_edges
from pipeline.linkage.sound_edges import SOUND, SOUND_COLUMNS, find_sound_pairs
from tests.pipeline.linkage.worlds import Records


def count_recordings(one: tuple[str, str], other: tuple[str, str], apart_ms: int = 0, **more: str) -> int:
    records = Records().add("a", one[0], one[1], seconds=200, isrcs=more.get("code", ""), release=more.get("release"))
    records.add(
        "b",
        other[0],
        other[1],
        platform="streamsvc_a" if "release" in more else "streamsvc_b",
        seconds=200 + apart_ms / 1000,
        isrcs=more.get("other_code", ""),
        release=more.get("release"),
    )
    return len(records.linked())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("Экспонат", "Ленинград"), ("Eksponat", "Leningrad")),
        (("Лутка са насловне стране", "Рибља чорба"), ("Lutka Sa Naslovne Strane", "Riblja Čorba")),
        (("Группа крови", "Кино"), ("Gruppa krovi", "Kino")),
        (("Группа крови", "Кино"), ("Gruppa krovi", "Кино")),
        (("Hartino To Fengaraki", "Nana Mouskouri"), ("Χάρτινο Το Φεγγαράκι", "Νάνα Μούσχουρη")),
        (("يا غايب", "فضل شاكر"), ("Ya Ghayeb", "Fadel Shaker")),
        (("תל אביב", "עומר אדם"), ("Tel Aviv", "Omer Adam")),
        (("つけまつける", "きゃりーぱみゅぱみゅ"), ("Tsukematsukeru", "Kyary Pamyu Pamyu")),
        (("뚜두뚜두 (DDU-DU DDU-DU)", "블랙핑크"), ("DDU-DU DDU-DU", "BLACKPINK")),
        (("青花瓷", "周杰倫"), ("Qing Hua Ci", "Zhou Jielun")),
    ],
)
def test_names_that_sound_alike_join_without_a_code(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert count_recordings(one, other, 2_000) == 1
    assert count_recordings(one, other, 2_100) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("Экспонат", "Ленинград"), ("Eksponat", "Lenny Kravitz")),
        (("Экспонат", "Ленинград"), ("Superstar", "Leningrad")),
        (("Экспонат", "Ленинград"), ("Eksponat (Live)", "Leningrad")),
        (("Экспонат 2", "Ленинград"), ("Eksponat 3", "Leningrad")),
        (("Интро", "Ленинград"), ("Intro", "Leningrad")),
        (("公园", "李娜"), ("公元", "李娜")),
        (("Oh", "보아"), ("Ah", "BoA")),
        (("No.1", "보아"), ("No.1", "BoA")),
    ],
)
def test_other_names_stay_apart_without_a_code(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert count_recordings(one, other) == 2


def test_codes_and_releases_contradict_a_sound() -> None:
    one, other = ("Экспонат", "Ленинград"), ("Eksponat", "Leningrad")
    assert count_recordings(one, other, code="USAAA2000001", other_code="USAAA2000002") == 2
    assert count_recordings(one, other, release="r") == 2


def build_atoms(names: list[tuple[int, str, str, int | None]]) -> pl.DataFrame:
    atoms = pl.DataFrame(names, schema=["atom_id", "artist_key", "title_key", "duration_ms"], orient="row")
    return atoms.with_columns(sound=SOUND)


def test_pairs_do_not_depend_on_the_order_of_atoms(monkeypatch: pytest.MonkeyPatch) -> None:
    atoms = build_atoms(
        [
            (1, "кино", "группакрови", 200_000),
            (2, "kino", "gruppakrovi", 201_999),
            (3, "kino", "gruppakrovi", 202_001),
            (4, "кино", "gruppakrovi", None),
            (5, "kino", "gruppakrovi", 198_000),
            (6, "kino", "!", 200_000),
        ]
    )
    pairs = [(1, 2), (1, 5)]
    atoms = atoms.select(SOUND_COLUMNS)
    for order in (atoms, atoms.reverse()):
        assert find_sound_pairs(partial(order.iter_slices, 2)).rows() == pairs
    # Latin atoms alone are never compared here.
    assert find_sound_pairs(lambda: [atoms.filter(pl.col("atom_id") > 1)]).is_empty()
    monkeypatch.setattr(sound_edges, "LARGEST_BLOCK", 3)
    assert find_sound_pairs(lambda: [atoms]).is_empty()


def test_names_without_enough_consonants_have_no_sound() -> None:
    atoms = build_atoms(
        [(1, "아이유", "아이", 1), (2, "u2", "oh", 1), (3, "кино", "аэ", 1), (4, "", "кино", 1), (5, "кино", "группакрови", 1)]
    )
    assert (atoms["sound"] != 0).to_list() == [False, False, False, False, True]


@pytest.mark.parametrize(("performer", "count"), [("Эмиль Гилельс", 1), ("Emil Gilels", 1), ("Martha Argerich", 2)])
def test_composers_who_sound_alike_lead_one_work_by_one_performer_only(performer: str, count: int) -> None:
    title = "Piano Concerto No. 1 in B-Flat Minor, Op. 23: II. Andantino"
    records = Records().add("a", title, ["Tchaikovsky", "Emil Gilels"])
    assert len(records.add("b", title, ["Чайковский", performer], platform="streamsvc_b").linked()) == count
