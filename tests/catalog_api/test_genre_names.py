from __future__ import annotations

import pytest

from catalog_api.genre_names import GenreNames
from genre_rules import load_book


@pytest.fixture(scope="module")
def names() -> GenreNames:
    return GenreNames()


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("DnB", "DnB"),
        ("drum & bass", "DnB"),
        ("Drum and Bass", "DnB"),
        ("hiphop", "Hip-Hop"),
        ("DEEP  HOUSE", "Deep House"),
        ("rnb", "R&B"),
    ],
)
def test_genre_is_found_by_its_common_names(names: GenreNames, text: str, node: str) -> None:
    assert names.find_node_id(text) == load_book().taxonomy.by_name[node].id


def test_every_node_is_found_by_its_own_name(names: GenreNames) -> None:
    for node in load_book().taxonomy.nodes:
        assert names.find_node_id(node.name) == node.id


@pytest.mark.parametrize("text", ["", "seen live", "wobblecore?", "pop, techno", "☃"])
def test_text_that_means_no_genre_or_several_finds_none(names: GenreNames, text: str) -> None:
    assert names.find_node_id(text) is None
