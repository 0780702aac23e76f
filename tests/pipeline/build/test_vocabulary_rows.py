from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import polars as pl
import pytest

from genre_rules import Classifier, compile_book, load_book
from genre_rules.vocabularies import FOLDER, VOCABULARIES, list_names
from pipeline.build.genre_strings import KEY, read_strings
from pipeline.build.genres import build_vocabulary_rows, list_vocabulary_names


class Mapping(NamedTuple):
    vocabulary: str
    parent: str
    name: str
    position: int
    genre_id: int | None
    rule_id: str | None


@pytest.fixture(scope="module")
def mappings() -> list[Mapping]:
    names = pl.DataFrame([(name.platform, name.parent, name.name) for name in list_names()], schema=KEY, orient="row").unique()
    readings = read_strings(names, lambda: Classifier(compile_book(load_book())))
    return [Mapping(*row) for row in build_vocabulary_rows(readings, list_vocabulary_names()).iter_rows()]


def test_every_list_beside_the_module_is_mapped_and_has_a_source(mappings: list[Mapping]) -> None:
    names = {path.stem for path in FOLDER.glob("*.csv")}
    sources = (FOLDER / "SOURCES.txt").read_text(encoding="utf-8")
    assert names == set(VOCABULARIES) == {mapping.vocabulary for mapping in mappings}
    assert not [name for name in names if f"\n{name} : " not in sources]


def test_a_name_without_a_node_has_one_mapping_and_positions_count_up(mappings: list[Mapping]) -> None:
    counts = Counter(mapping[:3] for mapping in mappings)
    for mapping in mappings:
        assert (mapping.genre_id is None) == (mapping.rule_id is None)
        assert mapping.position < counts[mapping[:3]]
        assert mapping.genre_id is not None or counts[mapping[:3]] == 1


def test_nearly_all_names_of_genre_lists_have_a_node(mappings: list[Mapping]) -> None:
    for vocabulary in VOCABULARIES:
        names = {mapping[:3]: mapping.genre_id for mapping in mappings if mapping.vocabulary == vocabulary}
        assert sum(genre_id is not None for genre_id in names.values()) > 0.8 * len(names), vocabulary


def test_names_of_the_lists_keep_their_meaning(mappings: list[Mapping]) -> None:
    nodes = {node.id: node.name for node in load_book().taxonomy.nodes}
    found = {(mapping.vocabulary, mapping.parent, mapping.name): nodes.get(mapping.genre_id or 0) for mapping in mappings}
    assert found["catalog_a", "Rock", "Deathrock"] == "Deathrock"
    assert found["catalog_a", "Hip Hop", "Hardcore Hip-Hop"] == "Hardcore Hip-Hop"
    assert found["catalog_b", "", "slacker rock"] == "Indie Rock"
    assert found["catalog_b", "", "audio documentary"] is None
    assert found["scenes", "", "polish post-rock"] == "Post-Rock"
