from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.remembered_texts import TextMemory

if TYPE_CHECKING:
    from pathlib import Path


class Reader:
    """A function of titles and versions that counts the rows it reads."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, texts: pl.DataFrame) -> pl.DataFrame:
        self.rows += texts.height
        return texts.with_columns(key=pl.concat_str(pl.col("title").str.to_lowercase(), pl.col("version").fill_null("none")))


def make_texts(*pairs: tuple[str, str | None]) -> pl.DataFrame:
    return pl.DataFrame(pairs, schema={"title": pl.String, "version": pl.String}, orient="row")


@pytest.fixture
def memory(tmp_path: Path) -> TextMemory:
    return TextMemory.open(tmp_path / "texts", "a" * 64, anew=False)


def test_only_new_texts_are_read(memory: TextMemory) -> None:
    reader = Reader()
    memory.recall("titles", make_texts(("One", None), ("Two", "Live")), reader)
    found = memory.recall("titles", make_texts(("Two", None), ("Two", "Live"), ("One", None)), reader)
    assert found.rows() == [("Two", None, "twonone"), ("Two", "Live", "twoLive"), ("One", None, "onenone")]
    assert reader.rows == 3


def test_texts_of_any_nights_have_the_results_of_reading_them_anew(memory: TextMemory) -> None:
    chance = Random(3)  # noqa: S311 - test data
    for _ in range(20):
        pairs = {(f"Title {chance.randrange(30)}", chance.choice((None, "", "Live"))) for _ in range(chance.randrange(25))}
        texts = make_texts(*sorted(pairs, key=str))
        assert memory.recall("titles", texts, Reader()).equals(Reader()(texts))


def test_forgotten_texts_are_read_again(memory: TextMemory) -> None:
    reader = Reader()
    for texts in (make_texts(("One", None)), make_texts(("Two", None)), make_texts(("One", None))):
        memory.recall("titles", texts, reader)
    assert reader.rows == 3


@pytest.mark.parametrize("place", [0, 40, -1])
def test_damaged_memory_is_ignored(memory: TextMemory, place: int) -> None:
    reader, texts = Reader(), make_texts(("One", None), ("Two", "Live"))
    memory.recall("titles", texts, reader)
    file = memory.folder / "titles.arrow"
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    assert memory.recall("titles", texts, reader).equals(Reader()(texts))
    assert reader.rows == 4


@pytest.mark.parametrize("length", [0, 20, 100])
def test_torn_memory_is_ignored(memory: TextMemory, length: int) -> None:
    reader, texts = Reader(), make_texts(("One", None))
    memory.recall("titles", texts, reader)
    file = memory.folder / "titles.arrow"
    file.write_bytes(file.read_bytes()[:length])
    assert memory.recall("titles", texts, reader).equals(Reader()(texts))
    assert reader.rows == 2


def test_another_program_reads_everything_and_removes_the_memory_of_the_last(memory: TextMemory, tmp_path: Path) -> None:
    reader, texts = Reader(), make_texts(("One", None))
    memory.recall("titles", texts, reader)
    other = TextMemory.open(tmp_path / "texts", "b" * 64, anew=False)
    other.recall("titles", texts, reader)
    assert reader.rows == 2
    assert not memory.folder.exists()


def test_a_build_anew_reads_everything_and_remembers_it(memory: TextMemory, tmp_path: Path) -> None:
    reader, texts = Reader(), make_texts(("One", None))
    memory.recall("titles", texts, reader)
    TextMemory.open(tmp_path / "texts", "a" * 64, anew=True).recall("titles", texts, reader)
    assert reader.rows == 2
    memory.recall("titles", texts, reader)
    assert reader.rows == 2


def test_names_that_are_no_longer_used_are_forgotten(memory: TextMemory) -> None:
    for name in ("titles-1-0", "titles-2-0", "titles-2-1", "others-1-0"):
        memory.recall(name, make_texts(("One", None)), Reader())
    memory.keep_only("titles", ["titles-2-0", "titles-2-1"])
    assert sorted(file.stem for file in memory.folder.iterdir()) == ["others-1-0", "titles-2-0", "titles-2-1"]


def test_a_result_is_made_once_for_each_name_and_again_by_a_full_build(memory: TextMemory) -> None:
    calls: list[str] = []

    def make(name: str) -> pl.DataFrame:
        calls.append(name)
        return make_texts((name, None))

    full = TextMemory(memory.folder, anew=True)
    for held, name in ((memory, "one"), (memory, "two"), (memory, "one"), (full, "one"), (memory, "one")):
        assert held.remember(name, lambda name=name: make(name)).equals(make_texts((name, None)))  # type: ignore[misc]
    assert calls == ["one", "two", "one"]


def test_functions_under_one_name_are_remembered_apart_and_forgotten_together(memory: TextMemory) -> None:
    one, other, texts = Reader(), Reader(), make_texts(("One", None))
    for _ in range(2):
        memory.recall("titles-1", texts, one)
        memory.recall("titles-1", texts, other, "other")
    memory.keep_only("titles", ["titles-1"])
    assert (one.rows, other.rows) == (1, 1)
    assert len(list(memory.folder.iterdir())) == 2
    memory.keep_only("titles", ["titles-2"])
    assert not list(memory.folder.iterdir())
