from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from catalog_store.layered_order import IN_BASE, PLACE_BITS
from catalog_store.search import search_build
from catalog_store.search.credits import Artists
from catalog_store.search.layout import hash_artist_word, hash_title_word
from catalog_store.search.search_build import build_search
from catalog_store.search.search_index import SearchIndex
from catalog_store.snapshot import SCRATCH_FOLDER
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, write_table
from tests.catalog_store.pickled_jobs import run_pickled

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.search.titles import Title


@pytest.fixture(scope="module")
def index(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    folder = tmp_path_factory.mktemp("index") / "search"
    build_search(tables, folder)
    return SearchIndex(folder)


def holders(index: SearchIndex, artist_word: str, title_word: str) -> list[int]:
    """Return the ids of the documents posted for one pair."""
    _, found, _ = index.postings.look([([hash_artist_word(artist_word)], [hash_title_word(title_word)])])
    return [index.ids[document] for document in found]


def documents(index: SearchIndex) -> dict[int, int]:
    """Return the documents of an index without a delta, by recording id."""
    numbers = ((number << PLACE_BITS) | IN_BASE for number in range(index.documents))
    return {index.ids[document]: document for document in numbers}


def names_of(index: SearchIndex, recording_id: int) -> tuple[Artists, Title]:
    document = documents(index)[recording_id]
    return index.credits[index.credit_of[document]], index.titles.of([document])[0]


def test_documents_are_ordered_by_popularity_then_id(index: SearchIndex, tables: dict[str, Path]) -> None:
    recordings = read_table(TABLES["recording"], tables["recording"])
    expected = recordings.sort("popularity", "recording_id", descending=[True, False])
    assert index.documents == recordings.height
    numbered = documents(index)
    assert [*numbered] == expected["recording_id"].to_list()
    assert np.allclose([index.popularity[document] for document in numbered.values()], expected["popularity"])


def test_names_are_keys_of_primary_and_featured_artists_and_the_core_title(index: SearchIndex) -> None:
    artists, title = names_of(index, 5)
    assert artists.primary[0].startswith("\u1107")
    assert (artists.featured, title.variant) == (("earth wind and water",), "")


def test_pairs_of_rare_words_are_posted_for_primary_and_featured_artists(index: SearchIndex) -> None:
    assert holders(index, "foxes", "midnight") == [1]
    assert holders(index, "earth", "\u1107\u1169\u11b7\u1102\u1161\u11af") == [5]
    assert holders(index, "\u4e8b\u53d8", "\u7fa4\u9752") == [3]
    assert holders(index, "midnight", "foxes") == []


def test_every_artist_of_a_recording_is_paired_with_its_title(tables: dict[str, Path], tmp_path: Path) -> None:
    line_up = ("The Velvet Foxes", "Nina Kraviz-Lund", "Daft Trunk", "Sigur Rósa")
    rows = [
        {"recording_id": 1, "position": place, "artist_id": place + 1, "name": name, "is_primary": place != 1, "is_remixer": False}
        for place, name in enumerate(line_up)
    ]
    table = TABLES["recording_artist"]
    write_table(table, tmp_path / "recording_artist", pl.concat([table.conform(pl.DataFrame(rows)), _others(tables)]))
    build_search({**tables, "recording_artist": tmp_path / "recording_artist"}, tmp_path / "search")
    index = SearchIndex(tmp_path / "search")
    for word in ("velvet", "foxes", "kraviz", "lund", "daft", "trunk", "sigur", "rosa"):
        assert 1 in holders(index, word, "midnight"), word
    assert names_of(index, 1)[0] == Artists(("velvet foxes", "daft trunk", "sigur rosa"), ("nina kraviz lund",))


def alias(artist_id: int, name: str, kind: str = "alias", platform: str = "catalog_b") -> dict[str, object]:
    return {"artist_id": artist_id, "alias": name, "kind": kind, "platform": platform}


def test_other_names_of_main_artists_find_their_recordings(tables: dict[str, Path], tmp_path: Path) -> None:
    credited = read_table(TABLES["recording_artist"], tables["recording_artist"]).filter(recording_id=1, is_primary=True)
    artist_id = credited["artist_id"][0]
    rows = [
        alias(artist_id, "Zorro Band"),
        alias(artist_id, "zorro band", "name", "store_a"),
        # The words in another order find nothing new, and a printed credit finds its own recording alone.
        alias(artist_id, "Velvet Foxes, The", "sort_name"),
        alias(artist_id, "Printed Once", "credit"),
        *(alias(artist_id, f"Further Name {number}") for number in range(5)),
        alias(10**6, "Nobody's"),
    ]
    write_table(TABLES["artist_alias"], tmp_path / "artist_alias", TABLES["artist_alias"].conform(pl.DataFrame(rows)))
    build_search({**tables, "artist_alias": tmp_path / "artist_alias"}, tmp_path / "search")
    index = SearchIndex(tmp_path / "search")
    assert 1 in holders(index, "zorro", "midnight")
    artists = names_of(index, 1)[0]
    assert artists.primary == ("velvet foxes",)
    assert artists.aliases == ("zorro band", "further name 0", "further name 1")


def _others(tables: dict[str, Path]) -> pl.DataFrame:
    """Return the credits of all recordings but the first."""
    return read_table(TABLES["recording_artist"], tables["recording_artist"]).filter(pl.col("recording_id") > 1)


def test_small_blocks_many_partitions_and_another_runner_give_the_same_bytes(
    tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_search(tables, tmp_path / "whole")
    monkeypatch.setattr(search_build, "DOCUMENTS_PER_BLOCK", 17)
    monkeypatch.setattr(search_build, "PAIRS_PER_PARTITION", 100)
    build_search(tables, tmp_path / "split", run_pickled)
    # The buckets of the delta, which is empty, follow the partitions.
    for path in sorted(path for path in (tmp_path / "whole").iterdir() if path.is_file() and path.name != "format.json"):
        assert path.read_bytes() == (tmp_path / "split" / path.name).read_bytes(), path.name
    assert not (tmp_path / "split" / SCRATCH_FOLDER).exists()


def test_posting_lists_keep_the_most_popular(tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = tmp_path / "crowd"
    shutil.copytree(tables["recording"], crowd)
    path = crowd / "part-00000.parquet"
    pl.read_parquet(path).with_columns(title=pl.lit("Same Song")).write_parquet(path)
    monkeypatch.setattr(search_build, "BASE_CAP", 3)
    build_search({**tables, "recording": crowd}, tmp_path / "search")
    index = SearchIndex(tmp_path / "search")
    sade = read_table(TABLES["recording_artist"], tables["recording_artist"]).filter(pl.col("name") == "Sade", pl.col("is_primary"))
    popular = [one for one in documents(index) if one in set(sade["recording_id"])]
    assert len(popular) > 3
    assert holders(index, "sade", "same") == popular[:3]


def test_the_order_of_rows_in_the_tables_does_not_matter(tables: dict[str, Path], tmp_path: Path) -> None:
    build_search(tables, tmp_path / "sorted")
    shuffled = dict(tables)
    for name in ("recording", "recording_artist"):
        shuffled[name] = tmp_path / name
        mixed = read_table(TABLES[name], tables[name]).sample(fraction=1, shuffle=True, seed=7)
        shuffled[name].mkdir()
        mixed.write_parquet(shuffled[name] / "part-00000.parquet")
    build_search(shuffled, tmp_path / "mixed")
    for path in sorted(path for path in (tmp_path / "sorted").iterdir() if path.is_file()):
        assert path.read_bytes() == (tmp_path / "mixed" / path.name).read_bytes(), path.name
