"""Tests of the means by which the rules read strings that nobody has listed, each with its limits."""

from __future__ import annotations

import pytest

from genre_rules import Classifier, compile_book, load_book


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(compile_book(load_book()))


def mains(classifier: Classifier, string: str, platform: str = "catalog_b", parent: str = "") -> set[str]:
    return set(classifier.classify(platform, string, parent).mains)


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("jazz & blues", {"Jazz", "Blues"}),
        ("techno/house", {"Techno", "House"}),
        ("rap y soul", {"Hip-Hop", "R&B"}),
        ("r&b & soul & jazz", {"R&B", "Jazz"}),
        ("finnish drum & bass", {"DnB"}),
        ("british rock & roll", {"Rock"}),
        ("jazz & whiskey", set()),
        ("yorkshire bleeps and bass music", {"Techno"}),
        ("finnish yorkshire bleeps and bass music", {"Techno"}),
        ("electronic and space music jazz", {"Jazz"}),
        ("jazz rock and indie", {"Rock"}),
    ],
)
def test_a_pair_is_cut_where_both_sides_mean_something_and_no_name_holds_the_joint(
    classifier: Classifier, string: str, expected: set[str]
) -> None:
    assert mains(classifier, string) == expected


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("melodicdeathmetal", {"Metal"}),
        ("finnishmetal", {"Metal"}),
        ("germanhiphop", {"Hip-Hop"}),
        ("shamrock", set()),
        ("lighthouse", set()),
    ],
)
def test_compound_words_are_read_by_their_parts(classifier: Classifier, string: str, expected: set[str]) -> None:
    assert mains(classifier, string) == expected


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("german jazz rock metal", {"Metal"}),
        ("modern folk rock", {"Rock"}),
        ("swedish jazz rap", {"Hip-Hop"}),
        ("garage rock revival", {"Rock"}),
        ("90s house music", {"House"}),
    ],
)
def test_of_two_heads_the_last_decides_and_a_tail_may_follow_it(classifier: Classifier, string: str, expected: set[str]) -> None:
    assert mains(classifier, string) == expected


@pytest.mark.parametrize(
    ("string", "expected"),
    [("rap toulousain", {"Hip-Hop"}), ("metal argentino", {"Metal"}), ("jazz hands", set()), ("soul asylum", set()), ("rock candy", set())],
)
def test_people_may_follow_the_head_and_a_name_may_not(classifier: Classifier, string: str, expected: set[str]) -> None:
    assert mains(classifier, string) == expected


@pytest.mark.parametrize(
    ("parent", "string", "expected"),
    [
        ("Trance", "Progressive", {"Trance"}),
        ("House", "Progressive", {"House"}),
        ("Techno", "Industrial", {"Techno"}),
        ("Drum & Bass", "Liquid", {"DnB"}),
        ("House", "Garage", {"House"}),
    ],
)
def test_a_word_below_a_parent_is_that_kind_of_the_parent(classifier: Classifier, parent: str, string: str, expected: set[str]) -> None:
    assert mains(classifier, string, "store_a", parent) == expected


def test_an_unknown_word_is_a_scene_only_before_the_head_and_only_where_every_string_is_a_genre(classifier: Classifier) -> None:
    assert mains(classifier, "gondwang punk", "streamsvc_a") == {"Rock"}
    assert mains(classifier, "gondwang punk", "catalog_b") == set()
    assert mains(classifier, "punk gondwang", "streamsvc_a") == set()
    assert mains(classifier, "this is punk", "streamsvc_a") == set()
    assert mains(classifier, "hardly punk", "streamsvc_a") == set()


def test_place_makes_hardcore_and_garage_rock_unless_a_dance_word_is_present(classifier: Classifier) -> None:
    assert mains(classifier, "boston hardcore") == mains(classifier, "swedish garage") == {"Rock"}
    assert mains(classifier, "happy hardcore") == mains(classifier, "uptempo hardcore") == {"Hardcore"}
    assert mains(classifier, "future garage") == mains(classifier, "uk garage") == {"Garage"}


def test_every_node_is_described_once_and_without_a_platform() -> None:
    nodes = load_book().taxonomy.nodes
    described = [node.description for node in nodes]
    assert all(len(text.split()) >= 2 for text in described)
    assert len(set(described)) == len(described)
    assert not [text for text in described if any(mark in text.lower() for mark in ("catalog_", "store_", "streamsvc", "playlist"))]


@pytest.mark.parametrize(
    ("name", "genre"),
    [
        ("The Classical", {"the bristol sound": "Electronic"}),
        ("a cappella group", {"a cappella": "Pop", "string quartet": "Classical"}),
        ("country song", {"country songs": "Country", "art song": "Classical"}),
        ("slow dance", {"slow waltz": "Classical", "german dance": "Electronic"}),
        ("harlem world", {"world": "World", "world music": "World"}),
        ("german orchestra", {"orchestra": "Classical"}),
        ("trap trap trap", {"electronic electronic": "Electronic"}),
        ("brazilian portuguese", {"canadian celtic": "Folk"}),
        ("blues outlaw", {"outlaw blues": "Blues"}),
        ("http://rock.example/metal", {"rock": "Rock"}),
        ("rock.mp3", {"mp3 rock": ""}),
        ("cristina", {"dancehal": "Reggae"}),
        ("appalachia", {"appalachian folk": "Folk"}),
    ],
)
def test_free_tag_that_reads_like_a_name_has_no_genre_unlike_its_neighbours(
    classifier: Classifier, name: str, genre: dict[str, str]
) -> None:
    assert mains(classifier, name) == set()
    assert {string: "|".join(mains(classifier, string)) for string in genre} == genre


@pytest.mark.parametrize("string", ["ECM", "polish jam", "austrian choir", "japanese idol", "swedish fiddle"])
def test_everyday_words_are_genres_where_every_string_is_one(classifier: Classifier, string: str) -> None:
    assert mains(classifier, string) == set()
    assert mains(classifier, string, "streamsvc_a")


@pytest.mark.parametrize(
    ("string", "expected"),
    [("Drum &amp; Bass", {"DnB"}), ("R&amp;B", {"R&B"}), ("Rock &#38; Roll", {"Rock"}), ("&nbsp;", set()), ("80 s punk", {"Rock"})],
)
def test_html_entities_and_separators_of_platforms_are_normalised(classifier: Classifier, string: str, expected: set[str]) -> None:
    assert mains(classifier, string) == expected
    assert mains(classifier, "Liquid", "store_a", "Drum &amp; Bass") == {"DnB"}


@pytest.mark.parametrize("string", ["jazz and " * 40 + "x", "x" + "poprock" * 14, "techno/" * 200 + "qwertz", "a & b / " * 300])
def test_long_string_costs_time_linear_in_its_length(classifier: Classifier, string: str) -> None:
    """Each of these ran for ever when every joint and every cut was tried against every other."""
    assert mains(classifier, string) == set()


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("hardstyle classics", {"Hardstyle"}),
        ("80s rock hits", {"Rock"}),
        ("trance anthems", {"Trance"}),
        ("classics", set()),
        ("driving", set()),
        ("guitar virtuoso", set()),
    ],
)
def test_words_that_sell_a_collection_neither_hide_the_genre_nor_make_one(classifier: Classifier, string: str, expected: set[str]) -> None:
    assert mains(classifier, string) == expected


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("piano house soul", {"R&B"}),  # a genre of its own begins with the everyday word
        ("solo house soul", set()),
        ("piano soul", set()),
        ("broken beat house", {"House"}),
    ],
)
def test_everyday_word_before_a_head_hides_it_unless_it_begins_a_genre(classifier: Classifier, string: str, expected: set[str]) -> None:
    assert mains(classifier, string) == expected


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("cinematic rock", {"Rock"}),
        ("cinematic german rock", {"Rock"}),
        ("bumping german house", {"House"}),
        ("rock cinematic", set()),
        ("house bumping", set()),
    ],
)
def test_everyday_word_describes_a_head_anywhere_after_it(classifier: Classifier, string: str, expected: set[str]) -> None:
    assert mains(classifier, string) == expected


def test_sides_of_a_joint_are_read_without_it(classifier: Classifier) -> None:
    path = classifier.classify("catalog_b", "jazz and soul", "").path
    assert [step.partition(" exactly")[0] for step in path] == ["side 'jazz'", "side 'soul'"]
