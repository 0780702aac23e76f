from __future__ import annotations

import pytest

from genre_rules import Classifier, compile_book, load_book


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(compile_book(load_book()))


def names(classifier: Classifier, platform: str, string: str, parent: str = "") -> list[str]:
    return [tag.node.name for tag in classifier.classify(platform, string, parent).tags]


@pytest.mark.parametrize("string", ["Drum & Bass", "drum n bass", "DnB", "Drum'n'Bass", "DRUM AND BASS", "drum&bass"])
def test_spelling_case_and_separators_do_not_matter(classifier: Classifier, string: str) -> None:
    assert names(classifier, "catalog_b", string) == ["DnB"]


@pytest.mark.parametrize(
    ("parent", "expected"),
    [("Rock", ["Hardcore Punk"]), ("Electronic", ["Hardcore"]), ("Hip Hop", ["Hardcore Hip-Hop"]), ("", ["Hardcore"])],
)
def test_parent_decides_the_meaning_of_an_ambiguous_word(classifier: Classifier, parent: str, expected: list[str]) -> None:
    assert names(classifier, "catalog_a", "Hardcore", parent) == expected


@pytest.mark.parametrize(
    ("platform", "string", "parent", "expected"),
    [
        ("store_a", "Melodic House & Techno", "", ["Melodic House", "Melodic Techno"]),
        ("store_a", "Trap", "Trap / Wave", ["EDM Trap"]),
        ("streamsvc_a", "trap", "", ["Trap"]),
        ("store_a", "House | Garage", "House", ["Garage House"]),
        ("streamsvc_b", "Garage", "Dance", ["Garage"]),
        ("streamsvc_b", "Jungle/Drum'n'bass", "Dance", ["DnB", "Jungle"]),
        ("streamsvc_b", "R&B/Soul", "", ["R&B"]),
        ("streamsvc_b", "Hip-Hop/Rap", "", ["Hip-Hop"]),
        ("streamsvc_b", "Piano", "Classical", ["Classical"]),
        ("streamsvc_b", "Alternativ und Indie", "", ["Alternative Rock"]),
        ("streamsvc_c", "Pop/Rock", "", ["Pop", "Rock"]),
        ("streamsvc_c", "Pop/Rock→Rock→Alternatif et Indé", "", ["Alternative Rock"]),
        ("streamsvc_c", "Jazz→Rien de connu ici", "", ["Jazz"]),
        ("streamsvc_c", "Chill Out/Trip-Hop/Lounge", "", ["Chillout", "Trip Hop"]),
        ("catalog_a", "Pop Rock", "Rock", ["Pop Rock"]),
        ("catalog_a", "Folk, World, & Country", "", []),
        ("catalog_b", "techno; deep house, jazz", "", ["Techno", "Deep House", "Jazz"]),
    ],
)
def test_closed_list_strings_are_classified_by_scope_path_and_compound(
    classifier: Classifier, platform: str, string: str, parent: str, expected: list[str]
) -> None:
    assert names(classifier, platform, string, parent) == expected


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("belgian house", ["House"]),
        ("garage rock revival", ["Garage Rock Revival"]),
        ("deep swedish death metal", ["Death Metal"]),
        ("rap francais", ["Hip-Hop"]),
        ("punk argentino", ["Punk"]),
        ("soul jazz", ["Soul Jazz"]),
        ("witch house", ["Witch House"]),
        ("swedish jazz rap", ["Jazz Rap"]),
    ],
)
def test_the_head_word_rules_and_the_longest_match_takes_its_words(classifier: Classifier, string: str, expected: list[str]) -> None:
    assert names(classifier, "streamsvc_a", string) == expected
    assert names(classifier, "catalog_b", string) == expected


def test_unknown_places_pass_only_where_every_string_is_a_genre(classifier: Classifier) -> None:
    assert names(classifier, "streamsvc_a", "gondwang punk") == ["Punk"]
    assert names(classifier, "catalog_b", "gondwang punk") == []


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("wollongong punk", ["Punk"]),
        ("indie rock wollongong", ["Indie Rock"]),
        ("jazz from wollongong", ["Jazz"]),
        ("jazz from hell", []),
        ("gondwang black metal", ["Black Metal"]),
        ("gondwang shoegaze", ["Shoegaze"]),
        ("my black metal", []),
        ("gondwang mocking black metal", []),
        ("black metal gondwang", []),
        ("x black metal", []),
    ],
)
def test_free_tag_names_a_town_or_one_unknown_scene_before_a_head_that_is_no_everyday_word(
    classifier: Classifier, string: str, expected: list[str]
) -> None:
    assert names(classifier, "catalog_b", string) == expected


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("lovers rock reggae", ["Lovers Rock"]),
        ("neo-prog rock", ["Neo-Prog"]),
        ("gothic post-punk", ["Post-Punk"]),
        ("soul jazz", ["Soul Jazz"]),
        ("electro world", []),
        ("ethereal vocals", []),
        ("berlin club", []),
        ("club", ["Dance"]),
        ("townhouse", []),
        ("House [Deep]", ["Deep House"]),
        ("heavy, power & speed metal", ["Heavy Metal", "Power Metal", "Speed Metal"]),
        ("Stoner/Doom Metal", ["Stoner Metal", "Doom Metal"]),
        ("rock/indie pop", ["Rock", "Indie Pop"]),
        ("cumbia y vallenato", ["Cumbia", "Vallenato"]),
        ("rap & r&b & soul", ["Hip-Hop", "R&B", "Soul"]),
        ("drum & bass", ["DnB"]),
        ("Alternative/Indie", ["Alternative Rock", "Indie Rock"]),
    ],
)
def test_free_tag_means_the_finest_name_and_each_name_of_a_list(classifier: Classifier, string: str, expected: list[str]) -> None:
    assert names(classifier, "catalog_b", string) == expected


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("hip hop cubano", ["Latin Hip-Hop"]),
        ("trap napoletana", ["Trap"]),
        ("corridos norteños", ["Corrido"]),
        ("cubano", ["Cuban"]),
        ("rock psicodélico peruano", ["Psychedelic Rock"]),
        ("metal sinfónico", ["Symphonic Metal"]),
        ("rock progresivo argentino", ["Progressive Rock"]),
        ("rock argentino", ["Latin Rock"]),
        ("hardcore catarinense", ["Hardcore Punk"]),
        ("suomirap", ["Hip-Hop"]),
        ("wallrap", []),
        ("house 2010", ["House"]),
        ("trance 1998", ["Trance"]),
        ("(52)Electronic", ["Electronic"]),
        ("(52)", []),
        ('["k-pop","dance-pop"]', ["K-Pop", "Dance-Pop"]),
        ("thrash/death", ["Thrash Metal", "Death Metal"]),
        ("minimal/techno", ["Minimal Techno", "Techno"]),
        ("rumbas", ["Rumba"]),
        ("houses", []),
        ("kudas", []),
        ("talk box", []),
        ("talkbox", []),
        ("bubblegum", ["Bubblegum Pop"]),
        ("okinawan folk", ["East Asian"]),
        ("bulgarian folk", ["European"]),
        ("bulgarian folk rock", ["Folk Rock"]),
        ("ジャパニーズポップ", ["J-Pop"]),
        ("военный марш", ["March"]),
    ],
)
def test_free_tag_is_read_in_the_order_and_the_notation_of_its_writer(classifier: Classifier, string: str, expected: list[str]) -> None:
    assert names(classifier, "catalog_b", string) == expected


def test_heading_of_a_shop_stays_one_name(classifier: Classifier) -> None:
    assert names(classifier, "streamsvc_b", "Alternative & Indie") == ["Alternative Rock"]
    assert names(classifier, "streamsvc_b", "R&B/Soul") == ["R&B"]


TRAPS = """
house of pain | daft punk | metal gear solid | metal church | soul train | pop idol | rock band | disco inferno | jazz in paris
blues brothers | trance mission | country roads take me home | folk devils | hip hop is dead | not techno | no pop | never rock
anti pop | without jazz | techno viking meme | trap house 3 | gospel according to john | latin dictionary | reggae shark
opera house | punk collectors | ambient temperature | seen live | 1998 | 90s | 80's | 128 bpm | 2x vinyl | german
france | berlin | female vocalists | guitarist | composer | album | spoken word | audiobook | podcast | favorites | my music
summer | sad | workout | unknown | other | misc | covered by somebody | series-complete piano works | fixme | wrong artist
owned | love | party | romance | needs a composer | bonus disc | free licence | check this artist | format-tape
lyrics-english | label mates
"""
TRAP_STRINGS = [trap.strip() for line in TRAPS.strip().splitlines() for trap in line.split("|")]


@pytest.mark.parametrize("string", TRAP_STRINGS)
def test_titles_names_places_moods_and_negations_are_no_genres(classifier: Classifier, string: str) -> None:
    assert names(classifier, "catalog_b", string) == []


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("black/death metal", ["Black Metal", "Death Metal"]),
        ("house techno trance", ["House", "Techno", "Trance"]),
        ("Trip - Hop", ["Trip Hop"]),
        ("Pop - Rock", ["Pop", "Rock"]),
        ("Iggy Pop - Lust for Life", []),
        ("merengue", ["Merengue"]),
        ("Brooklyn drill", ["New York Drill"]),
        ("phonk brasileiro", ["Brazilian Phonk"]),
    ],
)
def test_free_tag_with_names_side_by_side_gets_each_of_them(classifier: Classifier, string: str, expected: list[str]) -> None:
    assert names(classifier, "catalog_b", string) == expected


def test_an_umbrella_yields_inside_one_string(classifier: Classifier) -> None:
    assert names(classifier, "catalog_b", "Electronic; Deep House") == ["Deep House"]
    assert names(classifier, "catalog_b", "Electronic; Jazz") == ["Electronic", "Jazz"]


def test_dropped_strings_are_known_and_new_ones_are_not(classifier: Classifier) -> None:
    assert classifier.classify("catalog_b", "seen live").is_known
    assert not classifier.classify("catalog_b", "qwertzuiop").is_known
    assert classifier.classify("store_a", "DJ Tools").is_known
    assert classifier.classify("catalog_b", "").is_known


def test_classification_reports_the_path_of_its_answer(classifier: Classifier) -> None:
    assert classifier.classify("store_a", "House | Garage", "House").path == ("'house garage' exactly: rule garage-of-house",)
